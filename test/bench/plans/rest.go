package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

// resting is what addon-agent requests and all programs compute while all Instances are at rest.
type resting struct {
	Instances int     `json:"instances"`
	Charts    int     `json:"charts"`
	Objects   int     `json:"objects"`
	Drift     string  `json:"drift"`
	Minutes   float64 `json:"minutes"`
	// Requests are those of addon-agent to the managed cluster, of which DryRuns compare, and HubRequests those to the hub.
	Requests int `json:"requests"`
	DryRuns  int `json:"dryRuns"`
	Writes   int `json:"writes"`
	// RequestsByResource counts the requests to the managed cluster that compare nothing, as VERB RESOURCE.
	RequestsByResource map[string]int `json:"requestsByResource"`
	HubRequests        int            `json:"hubRequests"`
	CPUSeconds         stage.CPU      `json:"cpuSeconds"`
}

// chartPackage is the package with a chart, and chartVersion the name of its OperatorVersion.
const chartPackage, chartVersion = "test/bench/charts/package", "web-1.0.0"

// atRest deploys Instances and charts, and measures them in each mode of drift, and after another writer has changed a field of each ConfigMap of rules.
func (b *bench) atRest(ctx context.Context, count int) ([]resting, error) {
	command := exec.CommandContext(ctx, filepath.Join(b.programs, "kubectl-addon"), "package", "push", chartPackage, "--kubeconfig", b.Hub.Kubeconfig())
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pushing the package of a chart: %w: %s", err, out)
	}
	var instances []*kudo.Instance
	for i := range count {
		instances = append(instances, instance(fmt.Sprintf("bench-%03d", i)))
	}
	for i := range b.charts {
		chart := instance(fmt.Sprintf("chart-%03d", i))
		chart.Spec.OperatorVersion.Name = chartVersion
		instances = append(instances, chart)
	}
	if err := program.Each(ctx, inFlight, instances, func(ctx context.Context, i *kudo.Instance) error { return b.Hub.Create(ctx, i) }); err != nil {
		return nil, fmt.Errorf("making Instances: %w", err)
	}
	var measured []resting
	for _, drift := range []string{"Off", "Warn", "Warn, each ConfigMap of rules drifted"} {
		b.say("at rest for %s: %s", b.rest, drift)
		m, err := b.restWith(ctx, drift)
		if err != nil {
			return measured, fmt.Errorf("at rest, %s: %w", drift, err)
		}
		m.Instances, m.Charts = count, b.charts
		measured = append(measured, m)
	}
	return measured, nil
}

// restWith sets the mode of drift of all Instances, and measures what is requested and computed afterwards.
func (b *bench) restWith(ctx context.Context, drift string) (resting, error) {
	r := resting{Drift: drift, Minutes: b.rest.Minutes(), RequestsByResource: map[string]int{}}
	mode, change, _ := strings.Cut(drift, ", ")
	if err := b.setDrift(ctx, mode); err != nil {
		return r, err
	}
	if change != "" {
		if err := b.intrude(ctx); err != nil {
			return r, err
		}
	}
	if err := b.awaitRest(ctx, change != "", &r); err != nil {
		return r, err
	}
	if err := b.forget(); err != nil {
		return r, err
	}
	var err error
	r.CPUSeconds, err = b.MeasureCPU(func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(b.rest):
			return nil
		}
	})
	if err != nil {
		return r, err
	}
	entries, err := b.Managed.Log.Next()
	if err != nil {
		return r, err
	}
	for i := range entries {
		r.count(&entries[i])
	}
	toHub, err := b.Hub.Log.Next()
	r.HubRequests = len(toHub)
	return r, err
}

func (r *resting) count(e *audit.Entry) {
	isDryRun := strings.Contains(e.RequestURI, "dryRun=All")
	r.Requests++
	if !isDryRun {
		r.RequestsByResource[e.Verb+" "+strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")]++
	}
	switch {
	case isDryRun:
		r.DryRuns++
	case e.Verb == "patch", e.Verb == "create", e.Verb == "update", e.Verb == "delete":
		r.Writes++
	}
}

// setDrift sets the mode of drift of all Instances.
func (b *bench) setDrift(ctx context.Context, mode string) error {
	var list kudo.InstanceList
	if err := b.Hub.List(ctx, &list, client.InNamespace(stage.Managed)); err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"drift":{"mode":%q}}}`, mode))
	return program.Each(ctx, inFlight, list.Items, func(ctx context.Context, i kudo.Instance) error { return b.Hub.Patch(ctx, &i, patch) })
}

// intrude changes a field that addon-agent has applied in an object of each Instance.
func (b *bench) intrude(ctx context.Context) error {
	var list corev1.ConfigMapList
	if err := b.Managed.List(ctx, &list, client.InNamespace(instance("").Spec.InstallNamespace)); err != nil {
		return err
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"size":"another"}}`))
	return program.Each(ctx, inFlight, list.Items, func(ctx context.Context, c corev1.ConfigMap) error {
		if !strings.HasSuffix(c.Name, "-rules") {
			return nil
		}
		return b.Managed.Patch(ctx, &c, patch, client.FieldOwner("intruder"))
	})
}

// awaitRest waits until all Instances are Ready and, if they are, drifted, and the agent does nothing, and counts their objects.
func (b *bench) awaitRest(ctx context.Context, drifted bool, r *resting) error {
	err := program.Until(ctx, "all Instances are at rest", func(ctx context.Context) (bool, error) {
		var list kudo.InstanceList
		err := b.Hub.List(ctx, &list, client.InNamespace(stage.Managed))
		r.Objects = 0
		for _, i := range list.Items {
			r.Objects += len(i.Status.Inventory)
			isPlain := i.Spec.OperatorVersion.Name != chartVersion
			if !isReady(&i) || drifted && isPlain && !meta.IsStatusConditionTrue(i.Status.Conditions, kudo.ConditionDrifted) {
				return false, err
			}
		}
		return len(list.Items) > 0, err
	})
	if err != nil {
		return err
	}
	return b.caughtUp(ctx)
}

// isReady reports whether the agent says that an Instance is Ready as its spec is now.
func isReady(i *kudo.Instance) bool {
	ready := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == i.Generation
}
