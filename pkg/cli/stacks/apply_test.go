package stacks

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

// TestMain makes the test's program also the one that renders charts.
func TestMain(m *testing.M) {
	chart.ServeChild()
	os.Exit(m.Run())
}

// applyOffline runs the command without a hub, and returns what it prints.
func applyOffline(t *testing.T, typed string, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	f := clitest.Factory(typed)
	cmd := NewCmdApply(f, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return f.Out.(*bytes.Buffer).String(), err
}

const example = "../../../examples/stack/stack.yaml"

func TestStacksArePrintedWithoutAHub(t *testing.T) {
	output, err := applyOffline(t, "", "-f", example, "-o", "yaml")
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "apply-yaml", withoutData(output))
	again, err := applyOffline(t, "", "-f", example, "-o", "yaml")
	if err != nil || again != output {
		t.Errorf("a second run prints something else: %v", err)
	}
	annotated, err := applyOffline(t, "", "-f", example, "-o", "yaml", "--annotate-dependencies")
	if err != nil || strings.Contains(annotated, "  dependencies:\n") || !strings.Contains(annotated, `addon.open-cluster-management.io/dependencies: '[{"name":"certificates"`) {
		t.Errorf("%v\n%s", err, annotated)
	}
	kinds, err := applyOffline(t, "", "-f", example, "-o", "jsonpath={.kind} {.items[*].kind}")
	if err != nil || !strings.HasPrefix(kinds, "List Operator OperatorVersion ") || strings.Count(kinds, "ManagedClusterAddOn") != 6 {
		t.Errorf("%v: %s", err, kinds)
	}
}

// The tutorial about charts promises one command and at most twelve lines an add-on.
func TestPublishedChartsNeedTwelveLinesAnAddOnAtMost(t *testing.T) {
	const file = "../../../examples/delivery/stack.yaml"
	kinds, err := applyOffline(t, "", "-f", file, "-o", "jsonpath={.items[*].kind}")
	if err != nil || strings.Count(kinds, "ManagedClusterAddOn") != 6 || strings.Count(kinds, "OperatorVersion") != 3 {
		t.Fatalf("%v: %s", err, kinds)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	addOns := strings.Split(string(content), "\n  - name: ")[1:]
	if len(addOns) != 3 {
		t.Errorf("the stack has %d add-ons, not 3", len(addOns))
	}
	for _, addOn := range addOns {
		if lines := len(strings.Split(strings.TrimSpace(addOn), "\n")); lines > 12 {
			t.Errorf("an add-on has %d lines:\n%s", lines, addOn)
		}
	}
}

func TestAStackIsReadFromTheStandardInput(t *testing.T) {
	const stack = "apiVersion: kudo.dev/v1beta1\nkind: Stack\nmetadata: {name: drinks}\nspec:\n  addOns:\n  - {name: tea, package: ../../../examples/stack/certificates, parameters: {ISSUER: a}}\n"
	output, err := applyOffline(t, stack, "-f", "-", "-o", "yaml")
	if err != nil || !strings.Contains(output, "kudo.dev/stack: drinks") {
		t.Errorf("%v: %s", err, output)
	}
	_, err = applyOffline(t, stack+"  - {nam: x}\n", "-f", "-", "-o", "yaml")
	if err == nil || !strings.Contains(err.Error(), "\nstandard input:7:6: error: unknown field \"nam\" of an add-on: did you mean name?") {
		t.Errorf("got %v", err)
	}
}

func TestStackFilesAreBounded(t *testing.T) {
	_, err := applyOffline(t, strings.Repeat("#", maxFileBytes+1), "-f", "-", "-o", "yaml")
	if err == nil || err.Error() != "stack file standard input has more than 1048576 bytes: divide it" {
		t.Errorf("got %v", err)
	}
}

var digests = regexp.MustCompile(`(sha256:|-s|\.|'|")[0-9a-f]{10,}`)

// withoutData returns the output without archives of charts, and without their digests.
func withoutData(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "data: ") {
			line = "data: …\n"
		}
		lines = append(lines, digests.ReplaceAllString(line, "${1}DIGEST"))
	}
	return strings.Join(lines, "")
}

func TestVersionsOfChartsDependOnTheChartAndOnWhichValuesAreSet(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "secrets"), os.DirFS("../../../examples/stack/secrets")); err != nil {
		t.Fatal(err)
	}
	version := func(values string) string {
		t.Helper()
		file := filepath.Join(dir, "stack.yaml")
		bundletest.WriteFile(t, file, []byte("apiVersion: kudo.dev/v1beta1\nkind: Stack\nmetadata: {name: s}\nspec: {addOns: [{name: a, chart: ./secrets, values: "+values+"}]}\n"))
		output, err := applyOffline(t, "", "-f", file, "-o", `jsonpath={.items[?(@.kind=="OperatorVersion")].metadata.name}`)
		if err != nil {
			t.Fatal(err)
		}
		return output
	}
	first := version("{replicas: 1}")
	if again := version("{replicas: 2}"); again != first {
		t.Errorf("another value is another version: %s and %s", first, again)
	}
	if other := version("{rotation: 1h}"); other == first {
		t.Errorf("another value that is set has version %s, too", first)
	}
	if none := version("{}"); none == first {
		t.Errorf("no value that is set has version %s, too", first)
	}
	bundletest.WriteFile(t, filepath.Join(dir, "secrets", "templates", "more.yaml"), []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"))
	if other := version("{replicas: 1}"); other == first {
		t.Errorf("another chart has version %s, too", first)
	}
}
