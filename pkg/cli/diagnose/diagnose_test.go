package diagnose

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
)

var diagnosed = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// unpack returns the names of an archive's files in order, and their contents.
func unpack(t *testing.T, d *diagnosis) ([]string, map[string]string) {
	t.Helper()
	var packed bytes.Buffer
	if err := d.write(&packed, diagnosed); err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	files := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		files[strings.TrimPrefix(header.Name, "tandem-diagnosis/")] = string(content)
	}
}

// object parses an object from YAML.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return &unstructured.Unstructured{Object: content}
}

// A key as it is written to files, split in two so that secret scanners do not report it.
const privateKey = "-----BEGIN EC PRIVATE" + " KEY-----\nMHcCAQEEIPlanted08Key\n-----END EC PRIVATE" + " KEY-----"

// planted lists places that may hold a secret, each with a %s for the secret.
var planted = map[string]string{
	"data of a Secret":                `{kind: Secret, metadata: {name: s}, data: {whatever: %s}}`,
	"text of a Secret":                `{kind: Secret, metadata: {name: s}, stringData: {whatever: %s}}`,
	"a ConfigMap":                     `{kind: ConfigMap, metadata: {name: s}, data: {whatever: %s}}`,
	"a Secret in a ManifestWork":      `{kind: ManifestWork, metadata: {name: s}, spec: {workload: {manifests: [{kind: Secret, data: {a: %s}}]}}}`,
	"a list in a ManifestWork":        `{kind: ManifestWork, metadata: {name: s}, spec: {workload: {manifests: [{kind: List, items: [{kind: Secret, stringData: {a: %s}}]}]}}}`,
	"a ConfigMap in a ManifestWork":   `{kind: ManifestWork, metadata: {name: s}, spec: {workload: {manifests: [{kind: ConfigMap, data: {a: %s}}]}}}`,
	"what kubectl applied last":       `{kind: Instance, metadata: {name: s, annotations: {kubectl.kubernetes.io/last-applied-configuration: %s}}}`,
	"an annotation by its name":       `{kind: Instance, metadata: {name: s, annotations: {example.com/api-token: %s}}}`,
	"a parameter by its name":         `{kind: Instance, metadata: {name: s}, spec: {parameters: {ADMIN_PASSWORD: %s}}}`,
	"a parameter by any name":         `{kind: Instance, metadata: {name: s}, spec: {parameters: {GREETING: %s}}}`,
	"a parameter of an execution":     `{kind: Instance, metadata: {name: s}, status: {execution: {parameters: {GREETING: %s}}}}`,
	"a variable by its name":          `{kind: AddOnDeploymentConfig, metadata: {name: s}, spec: {customizedVariables: [{name: TOKEN, value: %s}]}}`,
	"a variable by any name":          `{kind: AddOnDeploymentConfig, metadata: {name: s}, spec: {customizedVariables: [{name: GREETING, value: %s}]}}`,
	"a proxy's address":               `{kind: AddOnDeploymentConfig, metadata: {name: s}, spec: {proxyConfig: {httpProxy: "http://user:%s@proxy.example.com:3128"}}}`,
	"a parameter's default":           `{kind: OperatorVersion, metadata: {name: s}, spec: {parameters: [{name: GREETING, default: %s}]}}`,
	"a template of a package":         `{kind: OperatorVersion, metadata: {name: s}, spec: {templates: {a.yaml: "greeting: %s"}}}`,
	"the environment of a pod":        `{kind: Deployment, metadata: {name: s}, spec: {template: {spec: {containers: [{env: [{name: GREETING, value: %s}]}]}}}}`,
	"a flag of a container":           `{kind: Pod, metadata: {name: s}, spec: {containers: [{args: ["--password=%s"]}]}}`,
	"the argument of a flag":          `{kind: Pod, metadata: {name: s}, spec: {containers: [{command: [run, --token, %s, --verbose]}]}}`,
	"a URL in a container's command":  `{kind: Pod, metadata: {name: s}, spec: {containers: [{command: ["curl https://me:%s@example.com/x"]}]}}`,
	"a shell line in a command":       `{kind: Pod, metadata: {name: s}, spec: {containers: [{command: [sh, -c, "export DB_PASSWORD=%s; run"]}]}}`,
	"a field by its name":             `{kind: Cassandra, metadata: {name: s}, spec: {superuser: {password: %s}}}`,
	"a field of an operator's object": `{kind: Kafka, metadata: {name: s}, spec: {config: {sasl.jaas.password: %s}}}`,
	"below a field by its name":       `{kind: Kafka, metadata: {name: s}, spec: {credentials: {admin: {login: %s}}}}`,
	"a list by its name":              `{kind: Kafka, metadata: {name: s}, spec: {tokens: [%s]}}`,
	"a variable that is a list":       `{kind: Kafka, metadata: {name: s}, spec: {variables: [{name: TOKENS, value: [%s]}]}}`,
	"a parameter that is a map":       `{kind: Kafka, metadata: {name: s}, spec: {parameters: {LOGIN_SECRET: {a: %s}}}}`,
	"a message of an Event":           `{kind: Event, metadata: {name: s}, message: "login failed: password=%s user=me"}`,
	"a header in a message":           `{kind: Event, metadata: {name: s}, message: "GET / Authorization: Bearer %s failed"}`,
	"JSON in a message":               `{kind: Event, metadata: {name: s}, message: 'cannot apply {"adminPassword":"%s","replicas":3}'}`,
}

func TestADiagnosisHoldsNoSecret(t *testing.T) {
	for place, text := range planted {
		t.Run(place, func(t *testing.T) {
			const secret = "Tr0ub4dor-and-3"
			d := newDiagnosis("v1.0.0", "tandem-system")
			d.objects["hub/x.yaml"] = []*unstructured.Unstructured{object(t, fmt.Sprintf(text, secret))}
			none(t, d, secret)
		})
	}
}

// none checks that the archive contains the redaction, but not the secret.
func none(t *testing.T, d *diagnosis, secret string) {
	t.Helper()
	_, files := unpack(t, d)
	for name, content := range files {
		for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
			if strings.Contains(content, form) {
				t.Errorf("%s holds %q:\n%s", name, form, content)
			}
		}
	}
	if text := files["hub/x.yaml"]; !strings.Contains(text, terminal.Redacted) && !strings.Contains(text, "sha256") || !strings.Contains(text, "name: s\n") {
		t.Errorf("nothing stands in its place, or the name is gone:\n%s", text)
	}
}

func TestADiagnosisHoldsNoSecretByItsLooks(t *testing.T) {
	for sentence, secret := range map[string]string{
		"a private key":        privateKey,
		"a token":              "eyJhbGciOiJSUzI1NiIs.eyJpc3MiOiJrdWJlcm5ldGVz.c2lnbmF0dXJl",
		"a kubeconfig":         "users:\n- name: a\n  user:\n    client-key-data: TFMwdExTMUNSVWRK\n",
		"registry credentials": `{"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			d := newDiagnosis("", "tandem-system")
			d.objects["hub/x.yaml"] = []*unstructured.Unstructured{{Object: map[string]any{
				"kind": "Instance", "metadata": map[string]any{"name": "s", "annotations": map[string]any{"note": secret}}, "spec": map[string]any{"note": secret},
			}}}
			d.texts["hub/x.log"] = "before\n" + secret + "\nafter\n"
			none(t, d, secret)
		})
	}
}

// A secret found in an object is also redacted in everything else that was read.
func TestADiagnosisFindsASecretAgain(t *testing.T) {
	for sentence, test := range map[string]struct{ object, secret string }{
		"of a parameter by its name": {`{kind: Instance, metadata: {name: s}, spec: {parameters: {PASSWORD: hunter-of-two}}}`, "hunter-of-two"},
		"of a parameter by any name": {`{kind: Instance, metadata: {name: s}, spec: {parameters: {GREETING: "open: sesame"}}}`, "open: sesame"},
		"that stands encoded":        {`{kind: Secret, metadata: {name: s}, data: {a: c2VzYW1lLW9wZW4=}}`, "sesame-open"},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := newDiagnosis("", "tandem-system")
			d.objects["hub/x.yaml"] = []*unstructured.Unstructured{
				object(t, test.object),
				{Object: map[string]any{"kind": "Event", "metadata": map[string]any{"name": "e"}, "message": "it said " + test.secret + " aloud"}},
			}
			d.texts["hub/x.log"] = `{"msg":"it said ` + test.secret + ` aloud"}`
			d.print("# Why", "it said "+test.secret+" aloud")
			d.recordFailure("it", errors.New("it said "+test.secret))
			none(t, d, test.secret)
		})
	}
}

func TestADiagnosisKeepsWhatHelps(t *testing.T) {
	for sentence, text := range map[string]string{
		"plain parameters":     `{kind: Instance, metadata: {name: s}, spec: {parameters: {NODE_COUNT: "3", MEMORY: 512Mi, TLS: "true", TIMEOUT: 30s}}}`,
		"a Secret's reference": `{kind: ServiceAccount, metadata: {name: s}, imagePullSecrets: [{name: registry}]}`,
		"references":           `{kind: Pod, metadata: {name: s}, spec: {volumes: [{name: v, secret: {secretName: web-tls}}], containers: [{env: [{name: A, valueFrom: {secretKeyRef: {name: web, key: admin}}}]}]}}`,
		"names like another":   `{kind: Instance, metadata: {name: s, namespace: cluster1}, spec: {parameters: {CLUSTER: cluster1}}, status: {conditions: [{message: cluster1 is away}]}}`,
		"conditions":           `{kind: Instance, metadata: {name: s}, status: {conditions: [{type: Ready, reason: PlanFailed, message: 'Deployment a/b: 1 of 3 replicas ready'}]}}`,
		"the time":             `{kind: Lease, metadata: {name: s}, spec: {renewTime: "2026-01-02T03:04:05.000000Z"}}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			d := newDiagnosis("", "tandem-system")
			read := object(t, text)
			want := read.DeepCopy()
			if sentence == "names like another" {
				_ = unstructured.SetNestedField(want.Object, terminal.Redacted, "spec", "parameters", "CLUSTER")
			}
			d.objects["hub/x.yaml"] = []*unstructured.Unstructured{read}
			_, files := unpack(t, d)
			if diff := cmp.Diff(want.Object, object(t, strings.TrimPrefix(files["hub/x.yaml"], "---\n")).Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDiagnosisIsOrderedAndListsWhatIsMissing(t *testing.T) {
	make := func() *diagnosis {
		d := newDiagnosis("v1.0.0", "tandem-system")
		d.objects["hub/instance.yaml"] = []*unstructured.Unstructured{
			object(t, `{kind: Instance, metadata: {name: b, managedFields: [{manager: x}]}}`), object(t, `{kind: Instance, metadata: {name: a}}`),
		}
		d.texts["hub/program/logs/addon-manager-0-manager.log"] = "started\n"
		d.texts["hub/clusters/cluster1/why.txt"] = strings.Repeat("long ", maxFileBytes/4)
		d.print("# Fleet", "1 managed cluster\n")
		d.recordFailure("the hub: Instance in namespace cluster1", errors.New("forbidden"))
		d.absent = append(d.absent, `the hub: kind ManifestWork of group "work.open-cluster-management.io"`)
		return d
	}
	names, files := unpack(t, make())
	want := []string{"summary.txt", "hub/clusters/cluster1/why.txt", "hub/instance.yaml", "hub/program/logs/addon-manager-0-manager.log"}
	for i := range want {
		want[i] = "tandem-diagnosis/" + want[i]
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	if got := files["hub/instance.yaml"]; got != "---\nkind: Instance\nmetadata:\n  name: a\n---\nkind: Instance\nmetadata:\n  name: b\n" {
		t.Error(got)
	}
	clitest.Golden(t, "diagnose-summary", files["summary.txt"])
	again, _ := unpack(t, make())
	if !slices.Equal(names, again) {
		t.Errorf("another order: %q", again)
	}
}

func TestADiagnosisCannotControlATerminal(t *testing.T) {
	const evil = "\x1b[2J\u009b2J\r\u202e"
	d := newDiagnosis("", "tandem-system")
	d.objects["hub/instance.yaml"] = []*unstructured.Unstructured{{Object: map[string]any{"kind": "Instance", "status": evil}}}
	d.texts["hub/a.log"] = evil
	d.print("# Fleet", evil)
	d.recordFailure("the hub", errors.New(evil))
	_, files := unpack(t, d)
	if len(files) != 3 {
		t.Errorf("an object with such a text is omitted: %q", files)
	}
	for name, content := range files {
		if strings.ContainsAny(content, "\x1b\u009b\r\u202e") || !strings.Contains(content, "2J") {
			t.Errorf("%s: %q", name, content)
		}
	}
}

func TestADiagnosisIsBounded(t *testing.T) {
	d := newDiagnosis("", "tandem-system")
	for i := range maxArchiveBytes/maxFileBytes + 2 {
		d.texts[fmt.Sprintf("hub/%02d.log", i)] = strings.Repeat("x", maxFileBytes)
	}
	names, files := unpack(t, d)
	if len(names) != maxArchiveBytes/maxFileBytes+1 || strings.Count(files["summary.txt"], "the archive already has") != 2 {
		t.Errorf("%d files: %s", len(names), files["summary.txt"])
	}
}

func TestADiagnosisHoldsNoMessagesBesideSensitiveParameters(t *testing.T) {
	const deployment = `{kind: Deployment, metadata: {name: web, namespace: %s, labels: {heritage: kudo, kudo.dev/instance: app, owner: a-part}, ` +
		`annotations: {kudo.dev/plan: deploy, note: a-part}}, status: {conditions: [{type: Available, message: it does not know a-part}]}}`
	d := newDiagnosis("v1.0.0", "tandem-system")
	d.objects["managed/instance.yaml"] = []*unstructured.Unstructured{
		object(t, `{kind: Instance, metadata: {name: a, namespace: shown}, status: {conditions: [{message: all is well}]}}`),
		object(t, `{kind: Instance, metadata: {name: b, namespace: set}, spec: {parametersFrom: [{name: P}]}, status: {conditions: [{message: all is well}]}}`),
		object(t, `{kind: Instance, metadata: {name: b, namespace: ran}, status: {execution: {parametersFrom: [{name: P}]}}}`),
	}
	for _, namespace := range []string{"shown", "set", "ran"} {
		d.objects["managed/workloads/deployment.yaml"] = append(d.objects["managed/workloads/deployment.yaml"], object(t, fmt.Sprintf(deployment, namespace)))
		d.objects["managed/workloads/event.yaml"] = append(d.objects["managed/workloads/event.yaml"],
			object(t, fmt.Sprintf("{kind: Event, metadata: {name: e, namespace: %s}, reason: Unhealthy, message: it said a-part}", namespace)))
	}
	d.redactForeign(side{folder: "managed"})
	_, files := unpack(t, d)
	for name, want := range map[string][]int{"managed/workloads/deployment.yaml": {3, 6}, "managed/workloads/event.yaml": {1, 2}} {
		if parts, redacted := strings.Count(files[name], "a-part"), strings.Count(files[name], terminal.Redacted); parts != want[0] || redacted != want[1] {
			t.Errorf("%s: %d parts, %d redacted:\n%s", name, parts, redacted, files[name])
		}
	}
	for _, kept := range []string{"kudo.dev/instance: app", "kudo.dev/plan: deploy", "heritage: kudo", "type: Available"} {
		if strings.Count(files["managed/workloads/deployment.yaml"], kept) != 3 {
			t.Errorf("%s is lost", kept)
		}
	}
	if strings.Count(files["managed/instance.yaml"], "all is well") != 2 {
		t.Error("the messages of Instances are lost")
	}
}

func TestADiagnosisHoldsNoLogsOfPackages(t *testing.T) {
	instances := 0
	for _, kind := range slices.Concat(ofCluster, ofMirror) {
		if kind.kind != "Instance" {
			continue
		}
		instances++
		instance := object(t, `{kind: Instance, status: {diagnosis: {pods: [{name: app-1, logs: [{container: app, lines: [secret]}]}, 7], events: [{reason: BackOff}]}}}`)
		kind.shorten(instance)
		want := object(t, `{kind: Instance, status: {diagnosis: {pods: [{name: app-1}, 7], events: [{reason: BackOff}]}}}`)
		if diff := cmp.Diff(want, instance); diff != "" {
			t.Error(diff)
		}
		without := object(t, `{kind: Instance, metadata: {name: app}}`)
		kind.shorten(without)
		if diff := cmp.Diff(object(t, `{kind: Instance, metadata: {name: app}}`), without); diff != "" {
			t.Error(diff)
		}
	}
	if instances != 2 {
		t.Errorf("Instances are in %d lists", instances)
	}
}
