package details

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// loggedPod returns a pod with the controller KIND/NAME, and labels and annotations given as NAME=VALUE.
func loggedPod(namespace, name, apiVersion, controller string, marks ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Labels: map[string]string{}, Annotations: map[string]string{}}}
	if kind, owner, ok := strings.Cut(controller, "/"); ok {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, Controller: ptr.To(true)}}
	}
	for _, mark := range marks {
		key, value, _ := strings.Cut(mark, "=")
		pod.Labels[key], pod.Annotations[key] = value, value
	}
	return pod
}

func TestPodsOfAnInstance(t *testing.T) {
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "shop.eu"}, Spec: kudo.InstanceSpec{InstallNamespace: "data"}}
	for _, entry := range []string{"apps Deployment data web", "apps StatefulSet other db", "batch CronJob data nightly", "batch Job data init", " Pod data single", "example.com Store data db", "example.com Store stores db",
		" ConfigMap system c", "rbac.authorization.k8s.io RoleBinding system r", "networking.k8s.io Ingress edge i", "policy PodDisruptionBudget limits p"} {
		parts := strings.Split(entry, " ")
		instance.Status.Inventory = append(instance.Status.Inventory, kudo.InventoryEntry{Group: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]})
	}
	filter := newPodFilter(instance)
	if found, more := filter.namespaces(); !slices.Equal(found, []string{"data", "other", "stores"}) || more != 0 {
		t.Errorf("namespaces %v and %d more", found, more)
	}
	const label = kudo.LabelInstance + "=shop-eu"
	for sentence, test := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"of a Deployment":                             {loggedPod("data", "a", "apps/v1", "ReplicaSet/web-5d", "pod-template-hash=5d"), true},
		"of a ReplicaSet with another hash":           {loggedPod("data", "a", "apps/v1", "ReplicaSet/web-5d", "pod-template-hash=6e"), false},
		"of another Deployment":                       {loggedPod("data", "a", "apps/v1", "ReplicaSet/web-more-5d", "pod-template-hash=5d"), false},
		"of a Deployment of that name elsewhere":      {loggedPod("other", "a", "apps/v1", "ReplicaSet/web-5d", "pod-template-hash=5d"), false},
		"of a StatefulSet in another namespace":       {loggedPod("other", "a", "apps/v1", "StatefulSet/db"), true},
		"of a CronJob":                                {loggedPod("data", "a", "batch/v1", "Job/nightly-28"), true},
		"of a Job":                                    {loggedPod("data", "a", "batch/v1", "Job/init"), true},
		"of a Job that is not a CronJob's":            {loggedPod("data", "a", "batch/v1", "Job/nightly-now"), false},
		"of a custom resource":                        {loggedPod("data", "a", "example.com/v1", "Store/db"), true},
		"of a custom resource of another group":       {loggedPod("data", "a", "example.org/v1", "Store/db"), false},
		"of a custom resource in another namespace":   {loggedPod("stores", "a", "example.com/v1", "Store/db"), true},
		"applied itself":                              {loggedPod("data", "single", "", ""), true},
		"with the label":                              {loggedPod("data", "a", "", "", label), true},
		"with the label of another Instance":          {loggedPod("data", "a", "", "", kudo.LabelInstance+"=shop"), false},
		"with the label in another namespace":         {loggedPod("other", "a", "", "", label), false},
		"marked for this Instance":                    {loggedPod("other", "a", "", "", label, kudo.AnnotationInstanceNamespace+"=data"), true},
		"marked for an Instance of another namespace": {loggedPod("data", "a", "", "", label, kudo.AnnotationInstanceNamespace+"=other"), false},
		"of nothing":                                  {loggedPod("data", "a", "", ""), false},
		"of a StatefulSet of that name elsewhere":     {loggedPod("data", "a", "apps/v1", "StatefulSet/db"), false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := filter.isOwn(&test.pod); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestNamespacesOfPodsAreLimited(t *testing.T) {
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "shop"}}
	for i := range maxLogNamespaces + 20 {
		instance.Status.Inventory = append(instance.Status.Inventory, kudo.InventoryEntry{Kind: "Pod", Namespace: strings.Repeat("n", i+1), Name: "a"})
	}
	if found, more := newPodFilter(instance).namespaces(); len(found) != maxLogNamespaces || more != 21 || found[0] != "cluster1" {
		t.Errorf("%d namespaces from %s, %d more", len(found), found[0], more)
	}
}

func TestLogChoice(t *testing.T) {
	pods := func() []corev1.Pod {
		web, db := loggedPod("data", "web", "", ""), loggedPod("data", "db", "", "", annotationDefaultContainer+"=store")
		web.Spec.InitContainers = []corev1.Container{{Name: "prepare"}}
		web.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "proxy"}}
		web.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
		db.Spec.Containers = []corev1.Container{{Name: "exporter"}, {Name: "store"}}
		restarted := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		web.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}, {Name: "proxy", LastTerminationState: restarted}}
		return []corev1.Pod{web, db, web}
	}
	for sentence, test := range map[string]struct {
		choice logChoice
		want   []string
		err    string
	}{
		"default containers":        {logChoice{}, []string{"db/store", "web/main"}, ""},
		"all containers":            {logChoice{all: true}, []string{"db/exporter", "db/store", "web/prepare", "web/main", "web/proxy", "web/debug"}, ""},
		"a container":               {logChoice{container: "proxy"}, []string{"web/proxy"}, ""},
		"an init container":         {logChoice{container: "prepare"}, []string{"web/prepare"}, ""},
		"a misspelt container":      {logChoice{container: "prxy"}, nil, `none of 2 pods has a container "prxy" (did you mean proxy?); containers: debug, exporter, main, prepare, proxy, store`},
		"previous runs":             {logChoice{all: true, previous: true}, []string{"web/proxy"}, ""},
		"no previous run":           {logChoice{previous: true}, nil, "none of 2 containers has a previous run: omit --previous"},
		"a previous run of another": {logChoice{container: "main", previous: true}, nil, "none of 1 container has a previous run: omit --previous"},
	} {
		t.Run(sentence, func(t *testing.T) {
			logs, err := test.choice.of(pods())
			var got []string
			for _, log := range logs {
				got = append(got, log.pod+"/"+log.container)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil || test.err != "") && (err == nil || err.Error() != test.err) {
				t.Errorf("got error %v", err)
			}
		})
	}
}

func TestLinesOfALog(t *testing.T) {
	long := strings.Repeat("x", maxLogLine-1) + "é"
	for sentence, test := range map[string]struct{ log, want string }{
		"lines":                          {"a\nb\n", "> a\n> b\n"},
		"a last line without an end":     {"a\nb", "> a\n> b\n"},
		"empty lines":                    {"\n\na", "> \n> \n> a\n"},
		"nothing":                        {"", ""},
		"lines of Windows":               {"a\r\nb\r\n", "> a\n> b\n"},
		"control characters":             {"\x1b[31mred\rnot\x07\u202e\xff\n", "> ^[[31mred\\rnot\\u0007\\u202e\\xff\n"},
		"a prefix of another container":  {"[db/store] ok\n", "> [db/store] ok\n"},
		"a line as long as it may be":    {strings.Repeat("x", maxLogLine) + "\ny\n", "> " + strings.Repeat("x", maxLogLine) + "\n> y\n"},
		"a long line, between two bytes": {long + "\n", "> " + strings.Repeat("x", maxLogLine-1) + "\n> é\n"},
		"a long line without an end":     {strings.Repeat("x", 2*maxLogLine+1), strings.Repeat("> "+strings.Repeat("x", maxLogLine)+"\n", 2) + "> x\n"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var out strings.Builder
			err := (&logPrinter{out: &out}).printLines(strings.NewReader(test.log), "> ")
			if err != nil || out.String() != test.want {
				t.Errorf("got %d bytes %.200q, %v", out.Len(), out.String(), err)
			}
		})
	}
}
