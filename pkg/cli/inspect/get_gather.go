package inspect

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/text"
)

// unreadTo returns a function that writes a warning about Instances that the user may not read.
func unreadTo(out io.Writer) func(error) {
	return func(err error) { fmt.Fprintf(out, "Warning: Instances are not shown: %v\n", err) }
}

// source visits the add-ons and Instances of clusters, with nil for all, without children: the hub, or a watch of it.
type source interface {
	EachAddOn(ctx context.Context, clusters []string, visit func(*addonv1alpha1.ManagedClusterAddOn)) error
	EachInstance(ctx context.Context, clusters []string, visit func(*kudo.Instance), unreadable func(error)) error
}

// listing selects the add-ons and independent Instances to list: those of the clusters, with nil for all, and of a name unless it is empty.
type listing struct {
	clusters    []string
	name        string
	definitions map[string]fleet.Definition
}

// listAddOns returns the list, sorted by cluster and name. If nothing of the name is on the clusters, the error lists what is. unread gets
// the error if the user may not read Instances.
func (l listing) listAddOns(ctx context.Context, from source, unread func(error)) (addOnList, error) {
	list, others, err := l.list(ctx, from, unread)
	if err != nil {
		return list, err
	}
	if _, defined := l.definitions[l.name]; list.lacks(l.name) {
		return list, notEnabled(l.name, defined, others)
	}
	return list, nil
}

// list returns the list, and the sorted names of all other add-ons.
func (l listing) list(ctx context.Context, from source, unread func(error)) (addOnList, []string, error) {
	list, others := addOnList{AddOns: []addOnItem{}, Instances: []instanceItem{}}, map[string]bool{}
	isMeant := func(found string) bool { return l.name == "" || l.name == found }
	reports, notices := map[client.ObjectKey]fleet.Report{}, map[client.ObjectKey][]notice.Kind{}
	err := from.EachInstance(ctx, l.clusters, func(instance *kudo.Instance) {
		switch {
		case !isMeant(instance.Name):
		case fleet.IsOfAddOn(instance):
			key := client.ObjectKeyFromObject(instance)
			reports[key], notices[key] = fleet.ReportOf(instance), notice.KindsOf(instance)
		case fleet.Independent(instance):
			list.Instances = append(list.Instances, instanceItemOf(instance))
		}
	}, unread)
	if err != nil {
		return list, nil, err
	}
	err = from.EachAddOn(ctx, l.clusters, func(addOn *addonv1alpha1.ManagedClusterAddOn) {
		if isMeant(addOn.Name) {
			key := client.ObjectKeyFromObject(addOn)
			list.AddOns = append(list.AddOns, itemOf(addOn, l.definitions[addOn.Name], reports[key], notices[key]))
		} else {
			others[addOn.Name] = true
		}
	})
	list.sort()
	return list, slices.Sorted(maps.Keys(others)), err
}

// clustersOf returns the selected clusters; nil if all are.
func clustersOf(ctx context.Context, h hubclient.Hub, where hubclient.Selection) ([]string, error) {
	if where.IsAll() {
		return nil, nil
	}
	return where.Clusters(ctx, h)
}

// notEnabled returns the error that a selected add-on is not enabled, given whether it is defined and the names of those that are enabled.
func notEnabled(name string, defined bool, enabled []string) error {
	if !defined {
		return fmt.Errorf("add-on %q%s is not enabled on the selected clusters, and no ClusterManagementAddOn has that name; "+
			"enabled add-ons: %s", name, text.DidYouMean(name, enabled), text.ListOrNone(enabled))
	}
	return fmt.Errorf("add-on %q is not enabled on the selected clusters: run 'kubectl addon enable %s --cluster CLUSTER'; "+
		"enabled add-ons: %s", name, name, text.ListOrNone(enabled))
}
