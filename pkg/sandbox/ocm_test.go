package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func ocmPlan(name string) clusterPlan {
	return testPlanOf(name, Options{Clusters: 1, Tandem: "/tandem", OCM: "/ocm"})
}

func TestProgramsOfOCM(t *testing.T) {
	hub, managed := ocmPlan(hubName), ocmPlan("cluster1")
	want := []string{"ocm-webhooks", "ocm-registration", "ocm-placement", "ocm-addon-manager"}
	if diff := cmp.Diff(want, names(hub.ocmHub())); diff != "" {
		t.Errorf("programs of the hub (-want +got):\n%s", diff)
	}
	for sentence, test := range map[string]struct {
		program program
		path    string
		want    []string
	}{
		"webhooks serve with a certificate of the hub's authority": {hub.ocmHub()[0], "/ocm/webhooks", []string{
			"--bind-address=" + loopback(hub.port("ocm-webhooks")), "--tls-cert-file=/home/hub/pki/ocm.crt",
		}},
		"the hub accepts whom the sandbox registers": {hub.ocmHub()[1], "/ocm/registration", []string{
			"controller", "--feature-gates=ManagedClusterAutoApproval=true",
			"--auto-approved-csr-users=system:serviceaccount:open-cluster-management:agent-registration-bootstrap",
			"--kubeconfig=/home/kubeconfig/identities/hub-ocm-registration.kubeconfig", "--namespace=open-cluster-management-hub",
		}},
		"Placements are decided on a port of their own": {hub.ocmHub()[2], "/ocm/placement", []string{
			"controller", "--listen=" + loopback(hub.port("ocm-placement")), "--config=/home/hub/ocm.yaml",
		}},
		"OCM's addon-manager is not Tandem's": {hub.ocmHub()[3], "/ocm/addon", []string{
			"manager", "--kubeconfig=/home/kubeconfig/identities/hub-ocm-addon-manager.kubeconfig",
		}},
		"a cluster registers with the bootstrap identity": {managed.ocmRegistrationAgent(), "/ocm/registration", []string{
			"agent", "--spoke-cluster-name=cluster1", "--namespace=open-cluster-management-agent",
			"--bootstrap-kubeconfig=/home/kubeconfig/identities/cluster1-ocm-bootstrap.kubeconfig",
			"--hub-kubeconfig-dir=/home/cluster1/hub-kubeconfig", "--spoke-external-server-urls=" + managed.server(),
		}},
		"the work agent goes by what the registration agent got": {managed.ocmWorkAgent(), "/ocm/work", []string{
			"agent", "--workload-source-config=/home/cluster1/hub-kubeconfig/kubeconfig",
			"--terminate-on-files=/home/cluster1/hub-kubeconfig/kubeconfig", "--listen=" + loopback(managed.port("ocm-work-agent")),
		}},
		"Tandem's agent leaves leases to OCM's": {managed.addonAgent(), "/tandem/addon-agent", []string{"--standalone=false"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.program.Path != test.path {
				t.Errorf("it is %s, want %s", test.program.Path, test.path)
			}
			for _, argument := range test.want {
				if !slices.Contains(test.program.Args, argument) {
					t.Errorf("%s is missing in\n%s", argument, strings.Join(test.program.Args, "\n"))
				}
			}
		})
	}
}

func TestProgramsOfOCMHaveKubeconfigsAndPorts(t *testing.T) {
	for _, plan := range []clusterPlan{ocmPlan(hubName), ocmPlan("cluster1")} {
		programs := plan.ocmHub()
		if plan.isManaged() {
			programs = []program{plan.ocmRegistrationAgent(), plan.ocmWorkAgent()}
		}
		for _, p := range programs {
			if _, has := plan.identities()[p.Name]; !has || p.Port == 0 {
				t.Errorf("%s of %s has an identity: %t, and port %d", p.Name, plan.Name, has, p.Port)
			}
		}
		if found := (clusterPlan{Name: plan.Name}).ocmIdentities(); len(found) > 0 {
			t.Errorf("%s without OCM has identities of its: %v", plan.Name, found)
		}
	}
}

func TestManifestsOfOCM(t *testing.T) {
	plan := ocmPlan(hubName)
	plan.OCM = t.TempDir()
	hub := "manifests/cluster-manager/hub/"
	for file, content := range map[string]string{
		hub + "crds/0000_00_addon.open-cluster-management.io_managedclusteraddons.crd.yaml": `
kind: CustomResourceDefinition
metadata: {name: managedclusteraddons}
spec: {conversion: {webhook: {clientConfig: {caBundle: {{ .AddonAPIServiceCABundle }}, service: {path: /convert}}}}}
`,
		hub + "crds/0000_00_multicluster.x-k8s.io_clusterprofiles.crd.yaml": "kind: OfAFeatureThatIsOff\n",
		hub + "registration/clusterrole.yaml":                               "kind: ClusterRole\nmetadata: {name: '{{ .ClusterManagerName }}'}\n",
		hub + "registration/webhook-service-hosted.yaml":                    "kind: OfAnotherMode\n",
		hub + "addon-manager/token-role.yaml":                               "kind: {{ .TheTemplateOfAnAddOn }}\n",
		"manifests/klusterlet/managed/klusterlet-work-clusterrole.yaml":     "kind: OfAManagedCluster\n",
	} {
		writeManifest(t, filepath.Join(plan.OCM, file), content)
	}
	definitions, others, err := plan.ocmObjects([]byte("authority"))
	if err != nil {
		t.Fatal(err)
	}
	if len(definitions) != 1 {
		t.Fatalf("there are %d definitions", len(definitions))
	}
	got, _, _ := unstructured.NestedStringMap(definitions[0].Object, "spec", "conversion", "webhook", "clientConfig")
	want := map[string]string{"caBundle": "YXV0aG9yaXR5", "url": "https://" + loopback(plan.port("ocm-webhooks")) + "/convert"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("who converts (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, object := range others {
		kinds = append(kinds, object.GetKind()+" "+object.GetName())
	}
	if diff := cmp.Diff([]string{
		"Namespace open-cluster-management", "ServiceAccount agent-registration-bootstrap",
		"ClusterRole open-cluster-management:bootstrap", "ClusterRoleBinding open-cluster-management:bootstrap:agent-registration",
		"ClusterRole cluster-manager",
	}, kinds); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestUnknownParametersOfOCMAreEmpty(t *testing.T) {
	for sentence, test := range map[string]struct{ template, want string }{
		"a value":                        {"kind: A\ndata: {value: {{ .New }}}", ""},
		"a value in quotes":              {"kind: A\ndata: {value: '{{ .New }}'}", ""},
		"a field":                        {"kind: A\ndata: {value: {{ .NewWebhook.Port }}}", ""},
		"a field of the root":            {"kind: A\ndata: {value: {{ $.NewWebhook.Port }}}", ""},
		"a condition":                    {"kind: A\ndata: {value: {{ if .New }}new{{ else }}old{{ end }}}", "old"},
		"a condition on a field":         {"kind: A\ndata: {value: {{ if .NewWebhook.IsIPFormat }}new{{ else }}old{{ end }}}", "old"},
		"a comparison":                   {`kind: A` + "\n" + `data: {value: {{ if eq .New "on" }}new{{ else }}old{{ end }}}`, "old"},
		"a comparison of a field":        {`kind: A` + "\n" + `data: {value: {{ if eq .NewDriver.AuthType "grpc" }}new{{ else }}old{{ end }}}`, "old"},
		"a negation":                     {"kind: A\ndata: {value: {{ if and (not .New) (not .NewDriver.On) }}old{{ end }}}", "old"},
		"a list":                         {"kind: A\ndata: {value: old{{ range .New }}{{ . }}{{ end }}}", "old"},
		"a known parameter has a value":  {"kind: A\ndata: {value: {{ .ClusterManagerName }}}", "cluster-manager"},
		"as has a field of it":           {"kind: A\ndata: {value: {{ .WorkWebhook.Port }}}", "9443"},
		"and the authority of a webhook": {"kind: A\ndata: {value: {{ .WorkAPIServiceCABundle }}}", "YXV0aG9yaXR5"},
	} {
		t.Run(sentence, func(t *testing.T) {
			plan := ocmPlan(hubName)
			plan.OCM = t.TempDir()
			writeManifest(t, filepath.Join(plan.OCM, "manifests/cluster-manager/hub/work/clusterrole.yaml"), test.template)
			_, others, err := plan.ocmObjects([]byte("authority"))
			if err != nil {
				t.Fatal(err)
			}
			value := others[len(others)-1].Object["data"].(map[string]any)["value"]
			if value == nil {
				value = ""
			}
			if got := fmt.Sprint(value); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestATemplateOfOCMThatCannotBeRenderedIsNamed(t *testing.T) {
	for _, content := range []string{"kind: {{ .New | unknownFunction }}", "kind: {{ template \"missing\" }}", "kind: ["} {
		plan := ocmPlan("cluster1")
		plan.OCM = t.TempDir()
		writeManifest(t, filepath.Join(plan.OCM, "manifests/klusterlet/managed/klusterlet-new.yaml"), content)
		if _, _, err := plan.ocmObjects(nil); err == nil || !strings.Contains(err.Error(), "klusterlet-new.yaml") {
			t.Errorf("%s: the error is %v, want one that names the file", content, err)
		}
	}
}

func TestFindOCM(t *testing.T) {
	all, partial := t.TempDir(), t.TempDir()
	for _, name := range ocmPrograms() {
		addProgram(t, all, name)
	}
	addProgram(t, partial, "registration")
	cache := t.TempDir()
	built := filepath.Join(cache, "ocm-v1.2.0-0123456789ab")
	if err := os.Mkdir(built, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range ocmPrograms() {
		addProgram(t, built, name)
	}
	for sentence, test := range map[string]struct {
		variables     map[string]string
		want, problem string
	}{
		"TANDEM_OCM_ASSETS comes first":      {map[string]string{"TANDEM_OCM_ASSETS": all, "TANDEM_CACHE": cache}, all, ""},
		"the cache serves else":              {map[string]string{"TANDEM_CACHE": cache}, built, ""},
		"missing programs of a named folder": {map[string]string{"TANDEM_OCM_ASSETS": partial, "TANDEM_CACHE": cache}, "", `"webhooks"`},
		"an empty cache says what to do":     {map[string]string{"TANDEM_CACHE": partial}, "", "make ocm"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := FindOCM(func(name string) string { return test.variables[name] })
			if test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) || test.problem == "" && err != nil {
				t.Errorf("the error is %v, want %q in it", err, test.problem)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func writeManifest(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
