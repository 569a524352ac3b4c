package packages

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

const shopChart = "../../../examples/charts/shop"

// copyOfShop returns a copy of the example that supports every version of Kubernetes: in tests, Helm's default is an old one.
func copyOfShop(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "shop")
	if err := os.CopyFS(folder, os.DirFS(shopChart)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, file, regexp.MustCompile("kubeVersion:.*\n").ReplaceAll(text, nil))
	return folder
}

// fromChart runs the command in an empty folder of its own.
func fromChart(t *testing.T, args ...string) (string, error) {
	t.Helper()
	source := copyOfShop(t)
	f := clitest.Factory("")
	cmd := NewCmdFromChart(f, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "SHOP", source)
	}
	cmd.SetArgs(args)
	t.Chdir(t.TempDir()) // back at the end of the test
	err := cmd.ExecuteContext(t.Context())
	return f.Out.(*bytes.Buffer).String() + f.ErrOut.(*bytes.Buffer).String(), err
}

func TestFromChart(t *testing.T) {
	output, err := fromChart(t, "SHOP", "--param", "replicas", "--param", "image=IMAGE", "--param", "hosts", "--param", "cleanup.schedule=SCHEDULE",
		"--param", "cache.size")
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, file := range []string{"operator.yaml", "params.yaml", "templates/values.yaml"} {
		text, err := os.ReadFile(filepath.Join("shop", file))
		if err != nil {
			t.Fatal(err)
		}
		output += "--- " + file + "\n" + string(text)
	}
	clitest.Golden(t, "from-chart", output)
}

func TestFromChartErrors(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"a value that the chart does not have": {[]string{"SHOP", "--param", "replica=A"}, `chart "shop" has no value "replica" in values.yaml (did you mean replicas?)`},
		"a name that no operator can have":     {[]string{"SHOP", "--name", "My_Shop"}, `operator name "My_Shop" is not valid`},
		"a folder that is not empty":           {[]string{"SHOP", "SHOP"}, "is not empty"},
		"a chart elsewhere":                    {[]string{"oci://registry.example.com/charts/shop"}, "get the archive of the chart with 'helm pull'"},
		"a chart in a repository":              {[]string{"example/shop"}, "get the archive of the chart with 'helm pull'"},
		"no chart":                             {[]string{"./a/b/c"}, "no such file or directory"},
		"a folder without a chart":             {[]string{"SHOP/templates"}, "the folder of the chart has no Chart.yaml"},
		"a file that is no chart":              {[]string{"SHOP/values.yaml"}, "the archive of the chart is not a gzipped archive"},
		"no argument":                          {[]string{}, "expected CHART [DIR], got 0 arguments"},
	} {
		t.Run(sentence, func(t *testing.T) {
			output, err := fromChart(t, test.args...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q\n%s", err, test.want, output)
			}
			if made, _ := os.ReadDir("."); len(made) > 0 {
				t.Errorf("it has written %v", made)
			}
		})
	}
}

func TestAPackageAroundAChartWithoutParametersIsValid(t *testing.T) {
	output, err := fromChart(t, "SHOP", "web")
	if err != nil || !strings.Contains(output, "kubectl addon package push web") {
		t.Errorf("%v: %s", err, output)
	}
}
