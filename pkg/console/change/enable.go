package change

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/text"
)

// EnableRequest is an add-on to enable on a cluster.
type EnableRequest struct {
	View  fleet.Cluster
	AddOn string
	Desired
}

// EnableResult is what enables an add-on on a cluster.
type EnableResult struct {
	// Changes lists the changes of the add-ons to write, required add-ons first.
	Changes []Change
	// Waiting states which required add-ons the add-on waits for; empty if it waits for none, or if they are enabled too.
	Waiting string
	// Remarks are about configuration without effect, or of an earlier installation, and about namespaces.
	Remarks []string
}

// Steps lists the writes.
func (e EnableResult) Steps() []Step {
	var steps []Step
	for _, c := range e.Changes {
		steps = append(steps, *c.Step)
	}
	return steps
}

// Validate returns an error if a plan of one of the add-ons would fail, see Change.
func (e EnableResult) Validate() error {
	for i := range e.Changes {
		if err := e.Changes[i].Validate(); err != nil {
			return err
		}
	}
	return nil
}

// CheckDefined returns an error unless the add-on has a definition.
func CheckDefined(definitions map[string]fleet.Definition, addOn string) error {
	if _, defined := definitions[addOn]; defined {
		return nil
	}
	names := slices.Sorted(maps.Keys(definitions))
	return fmt.Errorf("ClusterManagementAddOn %q not found%s; available add-ons: %s", addOn, text.DidYouMean(addOn, names), text.ListOrNone(names))
}

// ExplainUndefined adds to the error of CheckDefined what makes an add-on of an operator of that name, if one is pushed.
func ExplainUndefined(ctx context.Context, reader client.Reader, addOn string, undefined error) error {
	stored, err := read.StoredVersions(ctx, reader, kudo.DefaultPackagesNamespace)
	if err != nil || !slices.ContainsFunc(stored, func(v kudo.OperatorVersion) bool { return v.OperatorName() == addOn }) {
		return undefined
	}
	return fmt.Errorf("%w; operator %q is pushed, but is no add-on: create one ('kubectl addon create %[2]s --package %[2]s'), or install it without one "+
		"('kubectl addon install %[2]s')", undefined, addOn)
}

// NamespaceProblem returns why a name is not valid for a namespace on the managed clusters; empty if it is.
func NamespaceProblem(namespace string) string {
	if problems := validation.IsDNS1123Label(namespace); namespace != "" && len(problems) > 0 {
		return problems[0]
	}
	return ""
}

// Removals returns the add-ons to enable that are being removed, and can be enabled again only once they are gone.
func (e EnableRequest) Removals() []*addonv1alpha1.ManagedClusterAddOn {
	names := []string{e.AddOn}
	if e.WithDependencies {
		names = append(dependency.Prerequisites(e.AddOn, fleet.Once(e.View.Nearest)), e.AddOn)
	}
	var going []*addonv1alpha1.ManagedClusterAddOn
	for _, name := range names {
		if addOn := e.View.AddOns[name]; addOn != nil && !addOn.DeletionTimestamp.IsZero() {
			going = append(going, addOn)
		}
	}
	return going
}

// After returns the add-on to enable once the removals are complete.
func (e EnableRequest) After(removals []*addonv1alpha1.ManagedClusterAddOn) EnableRequest {
	e.View.AddOns = maps.Clone(e.View.AddOns)
	for _, removed := range removals {
		delete(e.View.AddOns, removed.Name)
	}
	return e
}

// Version returns the OperatorVersion that the add-on runs; nil if the add-on is not plan-based, or if the version cannot be read.
func (e EnableRequest) Version(ctx context.Context, reader client.Reader) (*kudo.OperatorVersion, error) {
	definition := e.View.Definitions[e.AddOn]
	if !definition.PlanManaged {
		return nil, nil
	}
	s, err := e.step(e.AddOn)
	if err != nil {
		return nil, err
	}
	resolved, wanted := resolveConfigs(definition.Object, s.Wanted)
	name, version := install.Configure(resolved, wanted, install.Namespaces{}).OperatorVersion, &kudo.OperatorVersion{}
	switch err := reader.Get(ctx, name, version); {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading OperatorVersion %s: %w", name, err)
	}
	return version, nil
}

// Decide returns what enables the add-on. It returns an error if the add-on cannot be enabled.
func (e EnableRequest) Decide(ctx context.Context, reader Reader) (EnableResult, error) {
	found, names, err := e.names()
	if err != nil {
		return found, err
	}
	for _, name := range names {
		s, err := e.step(name)
		if err == nil && name == e.AddOn && len(e.Parameters) > 0 {
			s, err = s.withConfig(ctx, reader, e.View.Definitions[name].Object, e.Desired)
		}
		change := Change{}
		if err == nil {
			change, err = e.change(ctx, reader, s)
		}
		change.Remarks = append(change.Remarks, e.namespaceWarnings(change)...)
		if err == nil {
			change.Remarks = append(change.Remarks, s.keptRemarks(ctx, reader, e.View.Definitions[name].Object)...)
		}
		for _, remark := range change.Remarks {
			found.Remarks = append(found.Remarks, name+": "+remark)
		}
		if err != nil {
			found.Changes = nil
			return found, err
		}
		found.Changes = append(found.Changes, change)
	}
	return found, nil
}

// names returns the add-ons to write: the requested one, preceded by its missing required add-ons if they are to be enabled too. Otherwise
// it states the missing add-ons.
func (e EnableRequest) names() (EnableResult, []string, error) {
	found := EnableResult{Waiting: e.undecidedText()}
	if !e.WithDependencies {
		missing := slices.DeleteFunc(e.View.Judge(e.AddOn).NotReady(), func(j dependency.Judgement) bool {
			return j.Automatic || j.Cause == "" && !j.Updating
		})
		if len(missing) > 0 {
			found.Waiting = fmt.Sprintf("%s is waiting for required add-ons: %s", e.AddOn, dependency.Summary(missing))
		}
		return found, []string{e.AddOn}, nil
	}
	all := append(dependency.Prerequisites(e.AddOn, fleet.Once(e.View.Nearest)), e.AddOn)
	for _, name := range all {
		if err := e.checkInstallable(name); err != nil {
			return EnableResult{}, nil, err
		}
	}
	return found, slices.DeleteFunc(all, func(name string) bool { return name != e.AddOn && e.View.AddOns[name] != nil }), nil
}

// undecidedText states which required add-ons are not known to be required on the cluster; empty if that is known of all.
func (e EnableRequest) undecidedText() string {
	names := e.View.Undecided(e.AddOn)
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("%s requires %s on some clusters. Whether it does on this one is unknown, because you are not allowed to get ManagedCluster %s", e.AddOn,
		strings.Join(names, ", "), e.View.Name)
}

// checkInstallable returns an error if a required add-on cannot be enabled.
func (e EnableRequest) checkInstallable(name string) error {
	if problem := e.View.Definitions[name].Malformed; problem != nil {
		return fmt.Errorf("the dependencies of add-on %q cannot be read: %w", name, problem)
	}
	for _, j := range e.View.Judge(name).NotReady() {
		switch j.Cause {
		case dependency.Circular:
			return fmt.Errorf("add-on %q cannot be installed: circular dependency: %s; see 'kubectl addon why %s --cluster %s'",
				name, dependency.Way(j.Cycle), name, e.View.Name)
		case dependency.NoSuchAddOn:
			return fmt.Errorf("add-on %q requires %q, but there is no ClusterManagementAddOn of that name; create it, or correct the "+
				"dependencies ('kubectl edit clustermanagementaddon %s')", name, j.By, name)
		}
	}
	return nil
}

// step returns the write of the add-on of that name.
func (e EnableRequest) step(name string) (Step, error) {
	s, cluster := Step{Current: e.View.AddOns[name]}, e.View.Name
	if s.Current == nil {
		if err := checkPlacement(e.View.Definitions[name].Object, cluster); err != nil {
			return s, err
		}
		s.Wanted = &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster}}
		s.Wanted.Spec.InstallNamespace = e.namespaceOf(name)
		return s, nil
	}
	s.Wanted = s.Current.DeepCopy()
	if name == e.AddOn { // it stays without its dependents, too
		delete(s.Wanted.Annotations, addonv1alpha1.AnnotationInstalledFor)
	}
	current := s.Current.Spec.InstallNamespace
	switch {
	case !s.Current.DeletionTimestamp.IsZero():
		return s, fmt.Errorf("add-on %q is being removed from cluster %s; 'kubectl addon enable %[1]s --cluster %[2]s' waits until it is "+
			"gone and enables it again", name, cluster)
	case e.Namespace != "" && e.Namespace != current:
		return s, fmt.Errorf("add-on %q is already enabled on cluster %s in namespace %q; to move it, disable it first "+
			"('kubectl addon disable %s --cluster %s')", name, cluster, current, name, cluster)
	}
	return s, nil
}

// namespaceOf returns the namespace to install an add-on in. A plan-based add-on is installed in the namespace of the add-on that
// requires it.
func (e EnableRequest) namespaceOf(name string) string {
	if name != e.AddOn && !e.View.Definitions[name].PlanManaged {
		return ""
	}
	if current := e.View.AddOns[e.AddOn]; current != nil {
		return current.Spec.InstallNamespace
	}
	return e.Namespace
}

// checkPlacement returns an error for an add-on that OCM enables by Placements: OCM would remove one that was created manually.
func checkPlacement(definition *addonv1alpha1.ClusterManagementAddOn, cluster string) error {
	return CheckNotPlaced(definition, fmt.Sprintf("make one of them select cluster %s, for example with a label that it requires "+
		"('kubectl label managedcluster %[1]s NAME=VALUE')", cluster))
}

// change returns the change of an add-on. It returns an error if the add-on is plan-based and the hub would not install it in this state, or
// if a given parameter is not defined. The change has its remarks also then.
func (e EnableRequest) change(ctx context.Context, reader Reader, s Step) (Change, error) {
	found := Change{Cluster: e.View.Name, Step: &s}
	definition := e.View.Definitions[s.Wanted.Name]
	if !definition.PlanManaged {
		return found, nil
	}
	a, err := gatherInstall(ctx, reader, definition.Object, s)
	if err == nil {
		err = readNamesake(ctx, reader, &a)
	}
	if apierrors.IsForbidden(err) {
		found.Unknown = text.JoinMessage(err.Error()) // the hub checks it later
		return found, nil
	}
	if err != nil {
		return found, err
	}
	if s.Current == nil { // the Instance of an earlier add-on of that name is deleted with it
		a.Instances = slices.DeleteFunc(a.Instances, func(i kudo.Instance) bool { return belongsToAddOn(&i, s.Wanted.Name) })
	}
	if err := e.checkGiven(a, s); err != nil { // before the remark that the hub ignores it
		return found, err
	}
	found.Remarks = install.Decide(a).Remarks
	if err := e.judge(a, s); err != nil {
		return found, err
	}
	return reader.foresee(ctx, found, a)
}

// checkGiven returns an error if a given parameter is not defined.
func (e EnableRequest) checkGiven(a install.AddOn, s Step) error {
	if s.Wanted.Name != e.AddOn {
		return nil
	}
	return e.checkParameters(a.Version)
}

// judge returns an error if the hub would not install the add-on.
func (e EnableRequest) judge(a install.AddOn, s Step) error {
	if s.Current != nil {
		a.Instances = nil
	}
	_, err := decide(a, nil)
	return err
}

// readNamesake reads the Instance that has the name of the add-on, whether or not it belongs to the add-on.
func readNamesake(ctx context.Context, reader client.Reader, a *install.AddOn) error {
	key, instance := client.ObjectKeyFromObject(a.ManagedAddOn), &kudo.Instance{}
	switch err := reader.Get(ctx, key, instance); {
	case err == nil:
		a.Instances = []kudo.Instance{*instance}
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Instance %s: %w", key, err)
	}
	return nil
}

// belongsToAddOn reports whether the Instance belongs to an add-on of that name.
func belongsToAddOn(instance *kudo.Instance, name string) bool {
	owner := metav1.GetControllerOf(instance)
	return owner != nil && owner.Kind == "ManagedClusterAddOn" && owner.Name == name
}

// checkUnset returns an error that names the parameters to unset that are neither set by the config nor defined by the version. config is
// nil if there is none.
func (e EnableRequest) checkUnset(version *kudo.OperatorVersion, config *addonv1alpha1.AddOnDeploymentConfig) error {
	isSet := func(name string) bool {
		return config != nil && slices.ContainsFunc(config.Spec.CustomizedVariables, func(v upstream.CustomizedVariable) bool { return v.Name == name })
	}
	if err := checkUnset(version, e.Unset, isSet); err != nil {
		return fmt.Errorf("add-on %q on cluster %s: %w", e.AddOn, e.View.Name, err)
	}
	return nil
}

// checkParameters returns an error that names the given parameters that the OperatorVersion does not define; version is nil if it is
// unknown. The hub ignores an undefined variable, but a user who sets one expects an effect.
func (e EnableRequest) checkParameters(version *kudo.OperatorVersion) error {
	if err := checkParameters(version, e.Parameters); err != nil {
		return fmt.Errorf("add-on %q on cluster %s: %w", e.AddOn, e.View.Name, err)
	}
	return nil
}

// namespaceWarnings returns a warning about the namespace of a new plan-based add-on.
func (e EnableRequest) namespaceWarnings(c Change) []string {
	if c.Step == nil || c.Step.Current != nil || !e.View.Definitions[c.Step.Wanted.Name].PlanManaged {
		return nil
	}
	namespace := cmp.Or(c.Step.Wanted.Spec.InstallNamespace, install.DefaultInstallNamespace)
	if c.After != nil {
		namespace = c.After.TargetNamespace()
	}
	if namespace == install.DefaultInstallNamespace {
		return []string{fmt.Sprintf("it is installed in namespace %q, OCM's default, which holds credentials of other add-ons for the hub: "+
			"to use another one, set --namespace", namespace)}
	}
	return reservedWarnings(namespace)
}
