package packages

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
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
	bundletest.WriteFile(t, file, regexp.MustCompile("kubeVersion:.*\n").ReplaceAll(text, nil))
	return folder
}

// fromChart runs the command in an empty folder of its own.
func fromChart(t *testing.T, args ...string) (string, error) {
	t.Helper()
	source := copyOfShop(t)
	registrytest.Alone(t)
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
		"--param", "cache.size", "--param", "cache.enabled=CACHE", "--param", "telemetry")
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
		"a value that the chart does not have": {[]string{"SHOP", "--param", "replica=A"}, `chart "shop" has no value "replica" (did you mean replicas?)`},
		"a name that no operator can have":     {[]string{"SHOP", "--name", "My_Shop"}, `operator name "My_Shop" is not valid`},
		"a folder that is not empty":           {[]string{"SHOP", "SHOP"}, "is not empty"},
		"an unknown repository":                {[]string{"example/shop"}, `there is no such folder or archive, and Helm has no repository "example"`},
		"a version of a folder":                {[]string{"SHOP", "--version", "1.0.0"}, "--version, --repo and --digest are for charts in repositories and registries"},
		"a digest of a folder":                 {[]string{"SHOP", "--digest", "x"}, "--version, --repo and --digest are for charts in repositories and registries"},
		"a digest that is none":                {[]string{"oci://registry.example.com/shop", "--digest", "x"}, `--digest "x" is not sha256: and 64 hexadecimal digits`},
		"two versions":                         {[]string{"oci://registry.example.com/shop:1.0.0", "--version", "2.0.0"}, `has a version, and --version says "2.0.0": give one of them`},
		"a URL that is none":                   {[]string{"shop", "--repo", "charts.example.com"}, `--repo: "charts.example.com" is no URL of a repository (https://) or registry (oci://)`},
		"credentials in a URL":                 {[]string{"https://a:secret@charts.example.com/shop"}, "the URL contains credentials: store them with 'helm repo add' or 'helm registry login'"},
		"no chart":                             {[]string{"./a/b/c"}, "it is neither a folder nor an archive"},
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
