package audit

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/core/selector"
)

// fleet is what the log of a hub says of a cluster and of the add-ons that are defined.
type fleet struct {
	declared map[string][]declaration
	// clusters are the states of the cluster, as far as the log has them.
	clusters []selector.Cluster
	enabled  map[string][]presence
}

// declaration is what a ClusterManagementAddOn declared from a time on; nothing once it is deleted.
type declaration struct {
	from    time.Time
	needs   []addonv1alpha1.AddonDependency
	deleted bool
}

// presence is whether an add-on was enabled on the cluster, and not being deleted, from a time on.
type presence struct {
	from time.Time
	is   bool
}

// fleetOf reads the log of the hub.
func fleetOf(hub []Entry, cluster string) fleet {
	f := fleet{declared: map[string][]declaration{}, enabled: map[string][]presence{}}
	for i := range hub {
		e := &hub[i]
		if !e.IsSuccess() || !e.writes() {
			continue
		}
		switch e.ObjectRef.Resource {
		case "clustermanagementaddons":
			f.declare(e)
		case "managedclusters":
			f.describe(e, cluster)
		case "managedclusteraddons":
			f.enable(e, cluster)
		}
	}
	return f
}

// describe notes the write of a ManagedCluster.
func (f *fleet) describe(e *Entry, cluster string) {
	var stored clusterv1.ManagedCluster
	if e.ObjectRef.Name == cluster && json.Unmarshal(e.ResponseObject, &stored) == nil && stored.Name == cluster {
		f.clusters = append(f.clusters, selector.ClusterOf(&stored))
	}
}

// enable notes the creation or deletion of a ManagedClusterAddOn on the cluster.
func (f *fleet) enable(e *Entry, cluster string) {
	isDeletion := e.Verb == "delete"
	if e.ObjectRef.Namespace == cluster && e.ObjectRef.Subresource == "" && (isDeletion || e.ResponseStatus.Code == http.StatusCreated) {
		f.enabled[e.ObjectRef.Name] = append(f.enabled[e.ObjectRef.Name], presence{e.RequestTime(), !isDeletion})
	}
}

// declare notes the write of a ClusterManagementAddOn.
func (f *fleet) declare(e *Entry) {
	var stored addonv1alpha1.ClusterManagementAddOn
	switch name := e.ObjectRef.Name; {
	case e.ObjectRef.Subresource != "":
	case e.Verb == "delete":
		f.declared[name] = append(f.declared[name], declaration{from: e.RequestTime(), deleted: true})
	case json.Unmarshal(e.ResponseObject, &stored) == nil && stored.Name != "":
		f.declared[stored.Name] = append(f.declared[stored.Name], declaration{from: e.RequestTime(), needs: dependency.Needs(&stored)})
	}
}

// needsAt returns what an add-on declared at a time.
func (f *fleet) needsAt(addOn string, at time.Time) []addonv1alpha1.AddonDependency {
	var needs []addonv1alpha1.AddonDependency
	for _, d := range f.declared[addOn] {
		if !d.from.After(at) {
			needs = d.needs
		}
	}
	return needs
}

// alwaysNeeds reports whether each declaration of an add-on has a dependency for which the function is true.
func (f *fleet) alwaysNeeds(addOn string, is func(addonv1alpha1.AddonDependency) bool) bool {
	isDeclared := false
	for _, d := range f.declared[addOn] {
		if !d.deleted && !slices.ContainsFunc(d.needs, is) {
			return false
		}
		isDeclared = isDeclared || !d.deleted
	}
	return isDeclared
}

// selects reports whether a selector selects the cluster in each of its states that the log has.
func (f *fleet) selects(s *addonv1alpha1.ClusterSelector) bool {
	return selector.SelectsAll(s) || len(f.clusters) > 0 &&
		!slices.ContainsFunc(f.clusters, func(c selector.Cluster) bool { return !selector.Matches(s, c) })
}

// isEnabled reports whether an add-on was enabled on the cluster at a time, and not being deleted.
func (f *fleet) isEnabled(addOn string, at time.Time) bool {
	is := false
	for _, p := range f.enabled[addOn] {
		if !p.from.After(at) {
			is = p.is
		}
	}
	return is
}

// isAlone reports whether an add-on is a candidate of a dependency, and none of the others may satisfy it: each is one for which the function is false.
func isAlone(addOn string, need addonv1alpha1.AddonDependency, may func(string) bool) bool {
	candidates := dependency.Candidates(need)
	return slices.Contains(candidates, addOn) && !slices.ContainsFunc(candidates, func(other string) bool { return other != addOn && may(other) })
}
