package pipe

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// kafkas is a shortened version of the pod of KUDO's package for Kafka.
const kafkas = `
apiVersion: v1
kind: Pod
metadata: {name: certificates, annotations: {mine: kept}}
spec:
  volumes: [{name: cert-out, emptyDir: {}}, {name: other, emptyDir: {}}, {name: settings, configMap: {name: settings}}]
  priorityClassName: high
  initContainers:
  - name: init
    image: kafka:1
    securityContext: {runAsUser: 7}
    volumeMounts:
    - {name: cert-out, mountPath: /tmp}
    - {name: other, mountPath: /tmp/deeper/, subPath: part}
    - {name: settings, mountPath: /settings}
`

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(encoded, &object.Object); err != nil { // keeps integers, as rendering does
		t.Fatal(err)
	}
	return object
}

func TestPodGetsAContainerThatWaitsBesideItsFiles(t *testing.T) {
	rendered := decode(t, kafkas)
	before := rendered.DeepCopy()
	files := []kudo.PipeSpec{{File: "/tmp/tls.key"}, {File: "/tmp/sub/tls.crt"}, {EnvFile: "/tmp/deeper/vars.env"}}
	pod, paths, err := Pod(rendered, files, "mirror.example.com/busybox:1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object, rendered.Object); diff != "" {
		t.Errorf("the input changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/pipe/cert-out/tls.key", "/pipe/cert-out/sub/tls.crt", "/pipe/other/part/vars.env"}, paths); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	want := decode(t, kafkas+`
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 1
  containers:
  - name: kudo-pipe
    image: mirror.example.com/busybox:1
    command: [sleep, "3600"]
    securityContext: {runAsUser: 7}
    resources: {requests: {cpu: 50m, memory: 32Mi}, limits: {cpu: 50m, memory: 32Mi}}
    volumeMounts:
    - {name: cert-out, mountPath: /pipe/cert-out, readOnly: true}
    - {name: other, mountPath: /pipe/other, readOnly: true}
`)
	want.SetAnnotations(map[string]string{"mine": "kept", kudo.AnnotationPipe: "true"})
	if diff := cmp.Diff(want.Object, pod.Object); diff != "" {
		t.Errorf("the pod (-want +got):\n%s", diff)
	}
}

func TestInvalidPodIsRefused(t *testing.T) {
	edit := func(old, replacement string) string {
		if !strings.Contains(kafkas, old) {
			t.Fatalf("%q is not in the pod", old)
		}
		return strings.Replace(kafkas, old, replacement, 1)
	}
	for sentence, test := range map[string]struct{ pod, file, want string }{
		"another kind":                      {edit("kind: Pod", "kind: Job"), "/tmp/a", "a Pipe task must run a Pod of v1, got a Job of v1"},
		"a field of the wrong type":         {edit("priorityClassName: high", "priorityClassName: [1]"), "/tmp/a", "reading the Pod"},
		"containers of its own":             {edit("  priorityClassName", "  containers: [{name: web}]\n  priorityClassName"), "/tmp/a", `no containers, only an init container that creates the files: remove "web"`},
		"no init container":                 {edit("initContainers:", "initContainers: []\n  x:"), "/tmp/a", "exactly one init container, which creates the files; it has 0"},
		"two init containers":               {edit("  initContainers:", "  initContainers:\n  - name: first"), "/tmp/a", "it has 2"},
		"an init container that never ends": {edit("image: kafka:1", "restartPolicy: Always"), "/tmp/a", `init container "init" sets restartPolicy`},
		"containers that always restart":    {edit("  priorityClassName", "  restartPolicy: Always\n  priorityClassName"), "/tmp/a", "must be OnFailure (the default) or Never, not Always"},
		"a file outside of all volumes":     {kafkas, "/var/a", `file "/var/a" is not in a volume of init container "init"`},
		"a file beside a volume":            {kafkas, "/tmpfile", "is not in a volume"},
		"a file that climbs out":            {kafkas, "/tmp/../etc/passwd", "is not in a volume"},
		"a file that is a volume":           {edit("/tmp/deeper/", "/deeper/"), "/tmp", "is not in a volume"},
		"a file in another kind of volume":  {kafkas, "/settings/a", `file "/settings/a" is in volume "settings", which is not an emptyDir of the Pod`},
		"a volume that does not exist":      {edit("{name: cert-out, emptyDir: {}}, ", ""), "/tmp/a", `volume "cert-out", which is not an emptyDir of the Pod`},
		"a part of a volume by expression":  {edit("subPath: part", "subPathExpr: $(X)"), "/tmp/deeper/a", "mounted with subPathExpr: use subPath"},
		"a file whose name cannot be a key": {kafkas, "/tmp/a b", `file "/tmp/a b": its name is not a valid key`},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, _, err := Pod(decode(t, test.pod), []kudo.PipeSpec{{File: test.file}}, DefaultImage)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	const running = "containerStatuses: [{name: kudo-pipe, image: busybox:1, state: {running: {}}}]"
	for sentence, test := range map[string]struct {
		status string
		stage  Stage
		want   string
	}{
		"a new pod": {"{}", Working, "Pod ns/p: has not started yet"},
		"a pod without a node": {"conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes}]",
			Working, "Pod ns/p: is not scheduled: Unschedulable: 0/3 nodes"},
		"the package's image cannot be pulled": {"initContainerStatuses: [{name: init, state: {waiting: {reason: ErrImagePull}}}]",
			Working, "Pod ns/p: container init is waiting: ImagePullBackOff"},
		"Tandem's image cannot be pulled": {"containerStatuses: [{name: kudo-pipe, state: {waiting: {reason: ImagePullBackOff}}}]",
			Working, "Pod ns/p: container kudo-pipe is waiting: ImagePullBackOff: image busybox:1 (--pipe-image of addon-agent)"},
		"the files are made": {"phase: Running\n" + running, Ready, ""},
		"the files are made at the second try": {"phase: Running\ninitContainerStatuses: [{name: init, lastState: {terminated: {exitCode: 1}}, " +
			"state: {terminated: {exitCode: 0}}}]\n" + running, Ready, ""},
		"the init container has failed": {"initContainerStatuses: [{name: init, state: {terminated: {exitCode: 3, reason: Error, message: \"no\\nroute\"}}}]",
			Retrying, "Pod ns/p: init container init ended with exit code 3 (Error): no route; it is restarted"},
		"the init container waits to be started again": {"initContainerStatuses: [{name: init, state: {waiting: {reason: CrashLoopBackOff}}, " +
			"lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]",
			Retrying, "Pod ns/p: init container init ended with exit code 137 (OOMKilled); it is restarted"},
		"the init container runs again": {"conditions: [{type: Ready, status: 'False', reason: ContainersNotInitialized}]\n" +
			"initContainerStatuses: [{name: init, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]",
			Working, "Pod ns/p: container init restarts: CrashLoopBackOff: exited with code 1"},
		"the init container is not started again": {"phase: Failed\ninitContainerStatuses: [{name: init, state: {terminated: {exitCode: 1, reason: Error}}}]",
			Failed, "Pod ns/p: init container init ended with exit code 1 (Error)"},
		"the pod was evicted": {"phase: Failed\nreason: Evicted\nmessage: low on memory\n" +
			"initContainerStatuses: [{name: init, state: {terminated: {exitCode: 137, reason: Error}}}]",
			Lost, "Pod ns/p: failed: Evicted: low on memory"},
		"the files were not read": {"phase: Succeeded", Lost, "Pod ns/p: ended before its files were read"},
		"sleep is missing in Tandem's image": {"containerStatuses: [{name: kudo-pipe, state: {waiting: {reason: CrashLoopBackOff}}, " +
			"lastState: {terminated: {exitCode: 128, reason: StartError}}}]",
			Retrying, "Pod ns/p: container kudo-pipe ended with exit code 128 (StartError); its image must have sleep and head (--pipe-image of addon-agent)"},
		"a status that is not one": {"phase: [1]", Working, "Pod ns/p: its status cannot be read"},
		"a long last word": {"phase: Failed\ninitContainerStatuses: [{name: init, state: {terminated: {exitCode: 1, message: \"" +
			strings.Repeat("x", 2000) + " the end\"}}}]", Failed, "the end"},
	} {
		t.Run(sentence, func(t *testing.T) {
			live := decode(t, "apiVersion: v1\nkind: Pod\nmetadata: {namespace: ns, name: p}")
			live.Object["spec"] = decode(t, "containers: [{name: kudo-pipe, image: busybox:1}]").Object
			live.Object["status"] = decode(t, test.status).Object
			stage, message := Progress(live)
			if stage != test.stage || !strings.Contains(message, test.want) || len(message) > 700 || strings.Contains(message, "\n") {
				t.Errorf("got %s %q, want %s %q", stage, message, test.stage, test.want)
			}
		})
	}
}

func TestNamesAreLabelsThatDifferForWhateverDiffers(t *testing.T) {
	long := strings.Repeat("long-", 20)
	seen := map[string]string{}
	for _, parts := range [][3]string{
		{"kafka", "certificates", "key"}, {"kafka", "certificates", "Key"}, {"kafka", "certificates", "k_ey"}, {"kafka", "certificates_", "key"},
		{"kafka-certificates", "", "key"}, {"kafka", "Ünïcode", "key"}, {"kafka", "", ""},
		{long[:63], long + "a", "key"}, {long[:63], long + "b", "key"}, {"a", "-", "_"},
	} {
		for _, name := range []string{ArtifactName(parts[0], parts[1], parts[2]), PodName(parts[0], parts[1]+parts[2])} {
			if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
				t.Errorf("%q of %q: %v", name, parts, problems)
			}
			if other, taken := seen[name]; taken {
				t.Errorf("%q is the name of %q and of %q", name, other, parts)
			}
			seen[name] = strings.Join(parts[:], "/")
		}
	}
	if got, want := ArtifactName("kafka", "generate-tls-certificates", "privatekey"), "kafka-generate-tls-certificates-privatekey-"; !strings.HasPrefix(got, want) {
		t.Errorf("%q does not begin with %q: people cannot tell what it is", got, want)
	}
}

func TestKeysAreThoseOfTheArtifacts(t *testing.T) {
	task := kudo.Task{Name: "make", Kind: kudo.TaskPipe}
	task.Spec.Pipe = []kudo.PipeSpec{{File: "/a", Kind: "Secret", Key: "A"}, {EnvFile: "/b", Kind: "ConfigMap", Key: "B"}}
	other := kudo.Task{Name: "other", Kind: kudo.TaskApply}
	other.Spec.Pipe = task.Spec.Pipe[:1] // no Apply task creates it
	version := &kudo.OperatorVersionSpec{Tasks: []kudo.Task{other, task}}
	var names []string
	for _, artifact := range Artifacts("i", task) {
		names = append(names, artifact.GetKind()+" "+artifact.GetName())
	}
	keys := Keys(version, "i")
	if diff := cmp.Diff([]string{"Secret " + keys["A"], "ConfigMap " + keys["B"]}, names); diff != "" || len(keys) != 2 {
		t.Errorf("%d keys; artifacts (-keys +got):\n%s", len(keys), diff)
	}
}

func TestFill(t *testing.T) {
	whole := strings.Repeat("x", MaxBytes)
	for sentence, test := range map[string]struct {
		kind    string
		file    kudo.PipeSpec
		content string
		want    map[string]any
		problem string
	}{
		"a file in a Secret":     {"Secret", kudo.PipeSpec{File: "/tmp/tls.key"}, "hi", map[string]any{"data": map[string]any{"tls.key": "aGk="}}, ""},
		"text in a ConfigMap":    {"ConfigMap", kudo.PipeSpec{File: "/index.html"}, "<ö>\r\n", map[string]any{"data": map[string]any{"index.html": "<ö>\r\n"}}, ""},
		"bytes in a ConfigMap":   {"ConfigMap", kudo.PipeSpec{File: "/a"}, "\xff", map[string]any{"binaryData": map[string]any{"a": "/w=="}}, ""},
		"control in a ConfigMap": {"ConfigMap", kudo.PipeSpec{File: "/a"}, "\x00", map[string]any{"binaryData": map[string]any{"a": "AA=="}}, ""},
		"an empty file":          {"Secret", kudo.PipeSpec{File: "/a"}, "", map[string]any{"data": map[string]any{"a": ""}}, ""},
		"variables in a Secret": {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "A=1\n\n# no\n B=x=y \r\nC=", map[string]any{"data": map[string]any{
			"A": "MQ==", "B": "eD15IA==", "C": ""}}, ""},
		"variables in a ConfigMap":      {"ConfigMap", kudo.PipeSpec{EnvFile: "/e"}, "\ufeffA=1", map[string]any{"data": map[string]any{"A": "1"}}, ""},
		"no variables":                  {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "#", map[string]any{}, ""},
		"as large as can be":            {"ConfigMap", kudo.PipeSpec{File: "/a"}, whole, map[string]any{"data": map[string]any{"a": whole}}, ""},
		"larger":                        {"Secret", kudo.PipeSpec{File: "/tmp/a"}, whole + "x", nil, `file "/tmp/a" is larger than the 1048576 bytes that a Secret can hold`},
		"a line that is no variable":    {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "A=1\nhidden", nil, `file "/e", line 2: must be NAME=VALUE`},
		"a name that is none":           {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "#\nhid den=x", nil, `file "/e", line 2: the text before =`},
		"a name twice":                  {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "HIDDEN=1\nHIDDEN=2", nil, `file "/e", line 2: the name is already set on an earlier line`},
		"a name that climbs":            {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "..=hidden", nil, `file "/e", line 1: the text before =`},
		"variables that are not UTF-8":  {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "A=1\nB=hidden\xff", nil, `file "/e", line 2: must be UTF-8`},
		"a key of a lost private file!": {"Secret", kudo.PipeSpec{EnvFile: "/e"}, "-----BEGIN HIDDEN-----\nhidden==", nil, `file "/e", line 1: must be NAME=VALUE`},
	} {
		t.Run(sentence, func(t *testing.T) {
			artifact := &unstructured.Unstructured{Object: map[string]any{"kind": test.kind}}
			filled, err := Fill(artifact, test.file, []byte(test.content))
			if len(artifact.Object) != 1 {
				t.Error("the input changed")
			}
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) || strings.Contains(strings.ToLower(err.Error()), "hidden") {
					t.Errorf("the error is %v, want one with %q that tells nothing", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			delete(filled.Object, "kind")
			if diff := cmp.Diff(test.want, filled.Object); diff != "" {
				t.Errorf("it holds (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzEnvironment: for any output of a container, each name is valid in a Secret, no value is lost, and no error contains a value.
func FuzzEnvironment(f *testing.F) {
	for _, seed := range []string{"A=1\n", "\ufeff A=x=y\r\n#c\n\nB=", "A", "=\n", "A=1\nA=2", "\xff=1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := parseEnvironment(content)
		if err != nil {
			if entries != nil || len(err.Error()) > 120 {
				t.Errorf("with %d entries: %v", len(entries), err)
			}
			return
		}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if problems := validation.IsConfigMapKey(name); len(problems) > 0 {
				t.Errorf("%q: %v", name, problems)
			}
			if line := append([]byte(name+"="), entries[name]...); !bytes.Contains(content, line) {
				t.Errorf("%q is not in the file", line)
			}
		}
	})
}
