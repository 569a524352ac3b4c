package read

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// Doubts tracks the add-ons with doubtful variables. Their judgement depends on other OperatorVersions and other add-ons, whose changes
// affect no other add-on this way.
type Doubts struct {
	mutex sync.RWMutex
	// configs are those that set doubtful variables, by add-on.
	configs map[types.NamespacedName][]install.Reference
}

// NewDoubts returns Doubts without add-ons.
func NewDoubts() *Doubts {
	return &Doubts{configs: map[types.NamespacedName][]install.Reference{}}
}

// learn records the doubtful variables of an add-on. Without Doubts (nil) it does nothing. It is called before the objects that explain
// the variables are read: a change of those is in the cache by then, or causes a request.
func (d *Doubts) learn(addOn types.NamespacedName, doubts []install.Doubt) {
	if d == nil {
		return
	}
	if len(doubts) == 0 {
		d.Forget(addOn)
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.configs[addOn] = configsOf(doubts)
}

// Forget drops an add-on that does not exist any more.
func (d *Doubts) Forget(addOn types.NamespacedName) {
	d.mutex.RLock()
	_, known := d.configs[addOn]
	d.mutex.RUnlock()
	if known {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		delete(d.configs, addOn)
	}
}

// All returns the add-ons with doubtful variables: any OperatorVersion and any ClusterManagementAddOn may explain them.
func (d *Doubts) All(context.Context, client.Object) ([]reconcile.Request, error) {
	return d.requests(func(types.NamespacedName, []install.Reference) bool { return true }), nil
}

// SharersOf returns those with doubtful variables in a config that a changed ManagedClusterAddOn of another name uses.
func (d *Doubts) SharersOf(_ context.Context, changed client.Object) ([]reconcile.Request, error) {
	named := configKeys(changed)
	return d.requests(func(addOn types.NamespacedName, configs []install.Reference) bool {
		return addOn.Name != changed.GetName() && slices.ContainsFunc(configs, func(config install.Reference) bool {
			return slices.Contains(named, configKey(config.Resource, config.NamespacedName))
		})
	}), nil
}

func (d *Doubts) requests(concerns func(addOn types.NamespacedName, configs []install.Reference) bool) []reconcile.Request {
	d.mutex.RLock()
	defer d.mutex.RUnlock()
	var requests []reconcile.Request
	for addOn, configs := range d.configs {
		if concerns(addOn, configs) {
			requests = append(requests, reconcile.Request{NamespacedName: addOn})
		}
	}
	return requests
}

// configsOf returns the configs that set the variables.
func configsOf(doubts []install.Doubt) []install.Reference {
	var configs []install.Reference
	for _, doubt := range doubts {
		for _, config := range doubt.Configs {
			if !slices.Contains(configs, config) {
				configs = append(configs, config)
			}
		}
	}
	return configs
}

// definedElsewhere returns the doubtful variables that serve another purpose.
func (a *AddOns) definedElsewhere(ctx context.Context, state install.AddOn, doubts []install.Doubt) (map[string]bool, error) {
	others, err := a.usersOf(ctx, configsOf(doubts))
	if err != nil {
		return nil, err
	}
	operators := map[string]bool{state.Version.OperatorName(): true}
	read := map[types.NamespacedName]bool{}
	for _, user := range others.Users(state.ManagedAddOn.Name, configsOf(doubts)) {
		for _, name := range user.Versions {
			if read[name] {
				continue
			}
			read[name] = true
			version, err := Version(ctx, a.Client, name)
			if err != nil {
				return nil, err
			}
			if version != nil {
				operators[version.OperatorName()] = true
			}
		}
	}
	for operator := range operators {
		var versions kudo.OperatorVersionList
		if err := a.Client.List(ctx, &versions, client.MatchingFields{byOperator: operator}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the versions of operator %q: %w", operator, err)
		}
		others.Versions = append(others.Versions, versions.Items...)
	}
	return others.Define(state.ManagedAddOn.Name, state.Version.OperatorName(), doubts), nil
}

// usersOf returns the add-ons that use one of the configs, with their definitions.
func (a *AddOns) usersOf(ctx context.Context, configs []install.Reference) (install.Others, error) {
	var others install.Others
	for _, config := range configs {
		key := client.MatchingFields{byConfig: configKey(config.Resource, config.NamespacedName)}
		var definitions addonv1alpha1.ClusterManagementAddOnList
		if err := a.Client.List(ctx, &definitions, key, client.UnsafeDisableDeepCopy); err != nil {
			return others, fmt.Errorf("listing the ClusterManagementAddOns that use %s: %w", config.Describe(), err)
		}
		var addOns addonv1alpha1.ManagedClusterAddOnList
		if err := a.Client.List(ctx, &addOns, key, client.UnsafeDisableDeepCopy); err != nil {
			return others, fmt.Errorf("listing the ManagedClusterAddOns that use %s: %w", config.Describe(), err)
		}
		others.Definitions = append(others.Definitions, definitions.Items...)
		others.AddOns = append(others.AddOns, addOns.Items...)
	}
	known := map[string]bool{}
	for i := range others.Definitions {
		known[others.Definitions[i].Name] = true
	}
	for i := range others.AddOns {
		name := others.AddOns[i].Name
		if known[name] {
			continue
		}
		known[name] = true
		definition, err := Definition(ctx, a.Client, name)
		if err != nil {
			return others, err
		}
		if definition != nil {
			others.Definitions = append(others.Definitions, *definition)
		}
	}
	return others, nil
}
