package diagnose

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/inspect"
	"github.com/tandem-addons/tandem/pkg/cli/planstatus"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/pkg/text"
)

// hub reads the hub. It fails if the selected clusters do not exist, or the hub is not reachable.
func (d *diagnosis) hub(ctx context.Context, h hubclient.Hub, f *hubclient.Factory, where hubclient.Selection) error {
	clusters, err := d.fleet(ctx, h, where)
	if err != nil {
		return err
	}
	found := inspect.Versions{Client: d.version}
	if err := found.Gather(ctx, f, where); err != nil {
		d.recordFailure("versions", err)
	}
	d.print("# Versions", found.Text(false))
	at := side{Client: h.Client, name: "the hub", folder: "hub"}
	d.server(ctx, at, h.Config)
	d.collect(ctx, at, "", metav1.NamespaceAll, ofHub)
	d.collect(ctx, at, "server", metav1.NamespaceAll, ofServer)
	d.program(ctx, at, h.Config)
	if left := clusters[min(len(clusters), clustersInDetail):]; len(left) > 0 {
		d.left = append(d.left, fmt.Sprintf("details of %s, which %s in no worse state than the others: select clusters with --cluster",
			text.Plural(len(left), "cluster"), plural(len(left), "is", "are")))
		clusters = clusters[:clustersInDetail]
	}
	d.registrations(ctx, at, clusters)
	for _, cluster := range clusters {
		at := side{Client: h.Client, name: "the hub", folder: path.Join("hub", "clusters", cluster)}
		d.collect(ctx, at, "", cluster, ofCluster)
		d.judge(ctx, h, cluster)
	}
	return nil
}

// fleet summarizes the selected clusters and returns their names. Any response of the hub is enough to continue the diagnosis.
func (d *diagnosis) fleet(ctx context.Context, h hubclient.Hub, where hubclient.Selection) ([]string, error) {
	fleet, err := inspect.Glance(ctx, h, where, func(err error) { d.recordFailure("fleet", err) })
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown || meta.IsNoMatchError(err) {
		d.recordFailure("fleet", err)
		return where.Names, nil
	}
	if err != nil {
		return nil, err
	}
	d.print("# Fleet", inspect.SummaryText(fleet.Sum(), false))
	return fleet.WorstFirst(), nil
}

func plural(count int, one, more string) string {
	if count == 1 {
		return one
	}
	return more
}

// registrations reads the ManagedClusters.
func (d *diagnosis) registrations(ctx context.Context, at side, clusters []string) {
	kind := collected{group: read.ManagedClusterKind.Group, version: read.ManagedClusterKind.Version, kind: read.ManagedClusterKind.Kind}
	for _, cluster := range clusters {
		kind.options = []client.ListOption{client.MatchingFields{"metadata.name": cluster}}
		d.collect(ctx, at, "", metav1.NamespaceAll, []collected{kind})
	}
}

// judge evaluates a cluster's add-ons and Instances with the current decision logic.
func (d *diagnosis) judge(ctx context.Context, h hubclient.Hub, cluster string) {
	view, err := read.Cluster(ctx, h, cluster)
	if err == nil {
		view.Instances, err = read.Instances(ctx, h, cluster)
	}
	if err == nil {
		view.Rollouts, err = read.Rollouts(ctx, h, time.Now(), view)
	}
	if err != nil {
		d.recordFailure("add-ons of cluster "+cluster, err)
		return
	}
	var whys, plans []string
	for _, name := range view.AddOnNames() {
		explained := why.Of(view, name, time.Now())
		whys = append(whys, name+"\n\n"+explained.Text())
	}
	for _, name := range slices.Sorted(maps.Keys(view.Instances)) {
		plans = append(plans, planstatus.Text(read.View(ctx, h, view.Instances[name])))
	}
	for name, texts := range map[string][]string{"why.txt": whys, "plans.txt": plans} {
		if len(texts) > 0 {
			d.texts[path.Join("hub", "clusters", cluster, name)] = strings.Join(texts, "\n")
		}
	}
}

// gatherManaged reads a managed cluster.
func (d *diagnosis) gatherManaged(ctx context.Context, cluster string, config *rest.Config) {
	config.QPS, config.Burst = 50, 300
	c, err := hubclient.AnyClient(config)
	if err != nil {
		d.recordFailure("managed cluster", err)
		return
	}
	at := side{Client: c, name: "managed cluster " + cluster, folder: "managed"}
	d.server(ctx, at, config)
	d.collect(ctx, at, "", metav1.NamespaceAll, ofMirror)
	d.collect(ctx, at, "server", metav1.NamespaceAll, ofServer)
	d.program(ctx, at, config)
	d.collect(ctx, at, "workloads", metav1.NamespaceAll, ofWorkloads)
	for _, namespace := range d.namespacesOfInstances(at) {
		d.collect(ctx, at, "workloads", namespace, []collected{{version: "v1", kind: "Event"}})
	}
	d.redactForeign(at)
}

// redactForeign removes what others than Tandem say about workloads in the namespaces of Instances with sensitive parameters: it may quote parts
// of a value, which only the agent knows.
func (d *diagnosis) redactForeign(at side) {
	confidential := map[string]bool{}
	for _, instance := range d.objects[path.Join(at.folder, "instance.yaml")] {
		for _, part := range [][]string{{"spec"}, {"status", "execution"}} {
			from, _, _ := unstructured.NestedSlice(instance.Object, append(part, "parametersFrom")...)
			confidential[instance.GetNamespace()] = confidential[instance.GetNamespace()] || len(from) > 0
		}
	}
	for file, objects := range d.objects {
		for _, object := range objects {
			if strings.HasPrefix(file, path.Join(at.folder, "workloads")+"/") && confidential[object.GetNamespace()] {
				redactMessages(object)
			}
		}
	}
}

// namespacesOfInstances returns the namespaces of the Instances on a managed cluster.
func (d *diagnosis) namespacesOfInstances(at side) []string {
	namespaces := map[string]bool{}
	for _, instance := range d.objects[path.Join(at.folder, "instance.yaml")] {
		namespaces[instance.GetNamespace()] = true
	}
	delete(namespaces, d.namespace) // its Events are read in any case
	return slices.Sorted(maps.Keys(namespaces))
}

// server reads the version of an API server.
func (d *diagnosis) server(ctx context.Context, at side, config *rest.Config) {
	clients, err := kubernetes.NewForConfig(config)
	if err == nil {
		var body []byte
		if body, err = clients.RESTClient().Get().AbsPath("/version").DoRaw(ctx); err == nil {
			d.texts[path.Join(at.folder, "server", "version.json")] = string(body)
			return
		}
	}
	d.recordFailure(at.name+": version of the API server", err)
}

// program reads addon-manager or addon-agent, if it runs in pods.
func (d *diagnosis) program(ctx context.Context, at side, config *rest.Config) {
	d.collect(ctx, at, "program", d.namespace, ofProgram)
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		d.recordFailure(at.name+": logs", err)
		return
	}
	pods := d.objects[path.Join(at.folder, "program", "pod.yaml")]
	if len(pods) == 0 {
		d.absent = append(d.absent, fmt.Sprintf("%s: pods in namespace %s, with logs and metrics", at.name, d.namespace))
	}
	for _, object := range pods {
		pod, err := clients.CoreV1().Pods(d.namespace).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			d.recordFailure(at.name+": pod "+object.GetName(), err)
			continue
		}
		d.logs(ctx, at, clients, pod)
		d.metrics(ctx, at, config, clients, pod)
	}
}

// logs reads the last lines of each container's log, and of the previous container's if it was restarted.
func (d *diagnosis) logs(ctx context.Context, at side, clients kubernetes.Interface, pod *corev1.Pod) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, previous := range []bool{false, true} {
			if previous && status.RestartCount == 0 {
				continue
			}
			name := pod.Name + "-" + status.Name
			if previous {
				name += "-previous"
			}
			text, err := readLog(ctx, clients, pod, &corev1.PodLogOptions{
				Container: status.Name, Previous: previous, Timestamps: true, TailLines: ptr.To(int64(logLines)), LimitBytes: ptr.To(int64(logBytes)),
			})
			if err != nil {
				d.recordFailure(at.name+": log of "+name, err)
			}
			if text != "" {
				d.texts[path.Join(at.folder, "program", "logs", name+".log")] = text
			}
		}
	}
}

func readLog(ctx context.Context, clients kubernetes.Interface, pod *corev1.Pod, options *corev1.PodLogOptions) (string, error) {
	stream, err := clients.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var text bytes.Buffer
	_, err = io.Copy(&text, io.LimitReader(stream, logBytes))
	return text.String(), err
}
