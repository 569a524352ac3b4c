package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	toolscache "k8s.io/client-go/tools/cache"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

// replaced lists the programs of a sandbox with OCM that the benchmark stops: the agents of the sandbox's managed cluster, and OCM's
// registration, for which the benchmark's clusters are unreachable, because no klusterlet renews their leases.
var replaced = []struct{ cluster, program string }{
	{stage.Hub, "ocm-registration"}, {stage.Managed, "ocm-registration-agent"}, {stage.Managed, "ocm-work-agent"},
}

// The label of a ManagedCluster with its wave, and the name of the Placement.
const waveLabel, placementName = "bench.tandem/wave", "bench"

// waveName returns the name of a wave: a value of the label, and the name of a decision group.
func waveName(index int) string { return fmt.Sprintf("wave%d", index+1) }

// waveNames returns the name of each cluster's wave.
func waveNames(clusters []string) map[string]string {
	names := map[string]string{}
	for i, wave := range waves(clusters) {
		for _, cluster := range wave {
			names[cluster] = waveName(i)
		}
	}
	return names
}

// placement returns the Placement, which selects all clusters of the benchmark, in a decision group for each of that many waves.
func placement(waves int) *clusterv1beta1.Placement {
	made := &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: placementName}}
	made.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{RequiredClusterSelector: clusterv1beta1.ClusterSelector{
		LabelSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: waveLabel, Operator: metav1.LabelSelectorOpExists},
		}},
	}}}
	groups := &made.Spec.DecisionStrategy.GroupStrategy
	groups.ClustersPerDecisionGroup = intstr.FromString("100%")
	for i := range waves {
		groups.DecisionGroups = append(groups.DecisionGroups, clusterv1beta1.DecisionGroup{
			GroupName: waveName(i),
			ClusterSelector: clusterv1beta1.GroupClusterSelector{
				LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{waveLabel: waveName(i)}},
			},
		})
	}
	return made
}

// rollingOut returns the install strategy with which OCM rolls a version out, one decision group after the other.
func rollingOut(version string) upstream.InstallStrategy {
	return upstream.InstallStrategy{
		Type: upstream.AddonInstallStrategyPlacements,
		Placements: []upstream.PlacementStrategy{{
			PlacementRef:    upstream.PlacementRef{Namespace: kudo.DefaultPackagesNamespace, Name: placementName},
			Configs:         []upstream.AddOnConfig{*versionConfig(version)},
			RolloutStrategy: clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup},
		}},
	}
}

// selectClusters creates the Placement, and waits until it has selected all clusters.
func (b *bench) selectClusters(ctx context.Context) error {
	binding := &clusterv1beta2.ManagedClusterSetBinding{ObjectMeta: metav1.ObjectMeta{Namespace: kudo.DefaultPackagesNamespace, Name: clusterSet}}
	binding.Spec.ClusterSet = clusterSet
	made := placement(len(waves(b.clusters)))
	for _, object := range []client.Object{binding, made} {
		if err := b.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %q: %w", object, object.GetName(), err)
		}
	}
	return program.Until(ctx, "the Placement has selected all clusters", func(ctx context.Context) (bool, error) {
		err := b.admin.Get(ctx, client.ObjectKeyFromObject(made), made)
		return int(made.Status.NumberOfSelectedClusters) == len(b.clusters), err
	})
}

// place has OCM roll out a version of the last add-on by the Placement. The version becomes the default too, so that the add-on keeps it
// without the Placement.
func (b *bench) place(ctx context.Context, version string) error {
	return b.redefine(ctx, func(definition *addonv1alpha1.ClusterManagementAddOn) {
		definition.Spec.SupportedConfigs[0].DefaultConfig = &versionConfig(version).ConfigReferent
		definition.Spec.InstallStrategy = rollingOut(version)
	})
}

// release removes the Placement from the definition of the last add-on, and waits until OCM has observed that: it re-creates add-ons that
// a Placement selects.
func (b *bench) release(ctx context.Context) error {
	err := b.redefine(ctx, func(definition *addonv1alpha1.ClusterManagementAddOn) {
		definition.Spec.InstallStrategy = upstream.InstallStrategy{Type: upstream.AddonInstallStrategyManual}
	})
	if err != nil {
		return err
	}
	return program.Until(ctx, "OCM has observed that the add-on has no Placement", func(ctx context.Context) (bool, error) {
		definition, err := b.lastDefinition(ctx)
		return err == nil && len(definition.Status.InstallProgressions) == 0, err
	})
}

// redefine changes the definition of the last add-on.
func (b *bench) redefine(ctx context.Context, change func(*addonv1alpha1.ClusterManagementAddOn)) error {
	definition, err := b.lastDefinition(ctx)
	if err != nil {
		return err
	}
	changed := definition.DeepCopy()
	change(changed)
	if err := b.admin.Patch(ctx, changed, client.MergeFrom(definition)); err != nil {
		return fmt.Errorf("changing ClusterManagementAddOn %q: %w", definition.Name, err)
	}
	return nil
}

// lastDefinition returns the definition of the last add-on.
func (b *bench) lastDefinition(ctx context.Context) (*addonv1alpha1.ClusterManagementAddOn, error) {
	definition := &addonv1alpha1.ClusterManagementAddOn{}
	if err := b.seen.Get(ctx, client.ObjectKey{Name: b.last()}, definition); err != nil {
		return nil, fmt.Errorf("reading ClusterManagementAddOn %q: %w", b.last(), err)
	}
	return definition, nil
}

// rollout moves the last add-on of the chain to the second version by the Placement.
func (b *bench) rollout() change {
	return change{
		do: func(ctx context.Context, o *observation) error {
			o.progress = newProgress(b.last(), operatorVersion(secondVersion).Name, waves(b.clusters))
			if err := b.follow(ctx, o.progress); err != nil {
				return err
			}
			return b.place(ctx, secondVersion)
		},
		done: func(ctx context.Context, o *observation) (bool, error) {
			if !o.progress.complete() {
				return false, nil
			}
			return b.isRolledOut(ctx, secondVersion)
		},
	}
}

// isRolledOut reports whether OCM counts the rollout of a version as completed, and all add-ons are available.
func (b *bench) isRolledOut(ctx context.Context, version string) (bool, error) {
	definition, err := b.lastDefinition(ctx)
	if err != nil || !isCompleted(definition, version) {
		return false, err
	}
	return b.areAvailable(ctx, nil)
}

// isCompleted reports whether OCM has completed the rollout of a version.
func isCompleted(definition *addonv1alpha1.ClusterManagementAddOn, version string) bool {
	for _, progression := range definition.Status.InstallProgressions {
		condition := meta.FindStatusCondition(progression.Conditions, upstream.ManagedClusterAddOnConditionProgressing)
		if condition == nil || condition.Reason != upstream.ProgressingReasonCompleted {
			continue
		}
		for _, config := range progression.ConfigReferences {
			if last := config.LastAppliedConfig; last != nil && last.ConfigReferent == versionConfig(version).ConfigReferent {
				return true
			}
		}
	}
	return false
}

// follow records the hub's events about Instances until ctx ends.
func (b *bench) follow(ctx context.Context, p *progress) error {
	informer, err := b.seen.GetInformer(ctx, &kudo.Instance{})
	if err != nil {
		return fmt.Errorf("watching Instances: %w", err)
	}
	note := func(object any) {
		if i, ok := object.(*kudo.Instance); ok {
			p.note(i, time.Now())
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, object any) { note(object) }})
	return err
}

// progress records the order in which a rollout reaches the clusters. The hub's events about objects of one kind arrive in the order of
// the writes.
type progress struct {
	addOn, version string
	waves          [][]string

	mu     sync.Mutex
	events int
	// began and ended hold the event with which a cluster's Instance has the version, and is ready with it.
	began, ended map[string]event
}

// event is the number of an event, from 1, and its arrival.
type event struct {
	number int
	at     time.Time
}

func newProgress(addOn, version string, waves [][]string) *progress {
	return &progress{addOn: addOn, version: version, waves: waves, began: map[string]event{}, ended: map[string]event{}}
}

// note records an event about an Instance.
func (p *progress) note(i *kudo.Instance, now time.Time) {
	if i.Name != p.addOn || i.Spec.OperatorVersion.Name != p.version {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events++
	current := event{number: p.events, at: now}
	if _, known := p.began[i.Namespace]; !known {
		p.began[i.Namespace] = current
	}
	if _, known := p.ended[i.Namespace]; !known && isReady(i) {
		p.ended[i.Namespace] = current
	}
}

// complete reports whether all clusters run the version.
func (p *progress) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	want := 0
	for _, clusters := range p.waves {
		want += len(clusters)
	}
	return len(p.ended) == want
}

// wave holds the results of a wave.
type wave struct {
	Clusters int `json:"clusters"`
	// Began is the time from the change until the first cluster has the version, Ended until the last one is ready with it.
	Began float64 `json:"beganSeconds"`
	Ended float64 `json:"endedSeconds"`
}

// results returns the results of all waves of a complete rollout, and the clusters that began before all earlier waves had ended.
func (p *progress) results(changed time.Time) (measured []wave, early []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var before event // the last one of the earlier waves
	for _, clusters := range p.waves {
		var first, last event
		for _, cluster := range clusters {
			began, ended := p.began[cluster], p.ended[cluster]
			if began.number <= before.number {
				early = append(early, cluster)
			}
			if first.number == 0 || began.number < first.number {
				first = began
			}
			if ended.number > last.number {
				last = ended
			}
		}
		if len(clusters) > 0 {
			measured = append(measured, wave{len(clusters), first.at.Sub(changed).Seconds(), last.at.Sub(changed).Seconds()})
			before = last
		}
	}
	return measured, early
}

// applyWorks reports every ManifestWork as applied, as OCM's work agents on the clusters would, until the agents have ended. All of them are
// Tandem's marks, which deliver nothing.
func (b *bench) applyWorks(ctx context.Context, ended <-chan struct{}) error {
	informer, err := b.seen.GetInformer(ctx, &workv1.ManifestWork{})
	if err != nil {
		return fmt.Errorf("watching ManifestWorks: %w", err)
	}
	works := make(chan *workv1.ManifestWork)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if work, ok := object.(*workv1.ManifestWork); ok {
			select {
			case works <- work:
			case <-ended:
			}
		}
	}})
	if err != nil {
		return fmt.Errorf("watching ManifestWorks: %w", err)
	}
	for {
		select {
		case work := <-works:
			if err := b.applyWork(ctx, work); err != nil {
				return err
			}
		case <-ended:
			return nil
		}
	}
}

// applyWork reports a ManifestWork as applied.
func (b *bench) applyWork(ctx context.Context, work *workv1.ManifestWork) error {
	applied := work.DeepCopy()
	for _, condition := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		meta.SetStatusCondition(&applied.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: "Benchmark", ObservedGeneration: work.Generation,
		})
	}
	if err := b.admin.Status().Patch(ctx, applied, client.MergeFrom(work)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reporting ManifestWork %s as applied: %w", client.ObjectKeyFromObject(work), err)
	}
	return nil
}
