package packages

import (
	"bytes"
	"os"
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

func TestRightsOfCharts(t *testing.T) {
	const hook = "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: %s}}\n"
	files := bundletest.WithChart(map[string]string{
		"web/crds/a.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n" +
			"spec: {group: example.com, scope: Namespaced, names: {kind: Thing, plural: things}, versions: []}\n",
		"web/templates/b.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n" + strings.Replace(hook, "%s", "pre-install", 1) +
			strings.Replace(hook, "%s", "test", 1) + "{{ if .Release.IsUpgrade }}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n{{ end }}\n",
		"web/templates/c.yaml": "{{ $_ := lookup \"v1\" \"Secret\" .Release.Namespace \"x\" }}{{ $_ := lookup \"v1\" \"Node\" \"\" \"\" }}\n" +
			"{{ $_ := lookup \"v1\" \"Pod\" \"kube-system\" \"\" }}{{ $_ := lookup \"apps/v1\" \"Deployment\" \"\" \"\" }}\n",
		"web/templates/d.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a, annotations: {helm.sh/hook: post-install}}\n" +
			"rules: [{apiGroups: [\"\"], resources: [pods], verbs: [impersonate]}]\n",
		"web/templates/e.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: kube-public}\n",
	})
	folder := t.TempDir()
	if err := os.CopyFS(folder, files); err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	b, err := verifiedBundle(t.Context(), &loader{}, &problems, folder)
	if err != nil || problems.Len() > 0 {
		t.Fatal(err, problems.String())
	}
	got, err := rightsOf(b).text()
	if err != nil {
		t.Fatal(err)
	}
	clitest.Golden(t, "rights-charts", got)
}
