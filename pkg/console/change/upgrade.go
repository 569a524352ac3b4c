package change

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/console/whatif"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/pkg/text"
)

// WhatIfUpgrade returns what the upgrade of an add-on to a version would do on a cluster. It returns ErrAbsent if the cluster does not have the add-on,
// or is removing it. Another error is why the upgrade is refused; it is in the result as well.
func (s *State) WhatIfUpgrade(ctx context.Context, key client.ObjectKey, choice Choice) (whatif.Upgrade, error) {
	addOn := s.fleet[key.Namespace].AddOns[key.Name]
	if addOn == nil || !addOn.DeletionTimestamp.IsZero() {
		return whatif.Upgrade{}, ErrAbsent
	}
	u := whatif.Upgrade{AddOn: key.Name, Cluster: whatif.Cluster{Cluster: s.viewWithInstances(key.Namespace)}}
	found, err := s.configureAddOn(ctx, Edit{ObjectKey: key, Upgrade: true, Choice: choice, WhatIf: true})
	switch {
	case apierrors.IsForbidden(err):
		u.Unread = text.JoinMessage(err.Error())
		return u, nil
	case err != nil:
		u.Problem = text.JoinMessage(err.Error())
		return u, err
	}
	effects := preview.Of(found.Change)
	if problem := preview.DataOf(effects).Err(); problem != nil && len(found.Step.Objects()) > 0 {
		err = fmt.Errorf("a plan would fail: %s", text.JoinMessage(problem.Error()))
		u.Problem = err.Error()
		return u, err
	}
	u.To, u.Unsupported, u.Warnings = found.Version, effects.Waits(), slices.Concat(found.Warnings, found.Remarks, s.rolloutRemarks(key))
	if found.Version == nil {
		u.Problem = "the OperatorVersion does not exist"
		return u, nil
	}
	u.Cluster = s.orderView(key.Namespace, key.Name, found.Version)
	u.NotRead = s.notRead(ctx, u, found)
	return u, nil
}

// notRead states what was not looked at for an upgrade.
func (s *State) notRead(ctx context.Context, u whatif.Upgrade, found Change) []string {
	var missing []string
	if found.KubernetesVersion == "" && compatibility.IsConstrained(&found.Version.Spec) {
		why := "the cluster does not report it"
		if cluster, err := read.SelectorCluster(ctx, s.reader, u.Name); err != nil || cluster == nil {
			why = fmt.Sprintf("you are not allowed to get ManagedCluster %s", text.Word(u.Name))
		}
		missing = append(missing, "whether the version supports the Kubernetes version, because "+why)
	}
	for _, name := range u.AddOnNames() {
		undecided := u.Undecided(name)
		if name == u.AddOn && len(undecided) > 0 || slices.Contains(undecided, u.AddOn) {
			missing = append(missing, fmt.Sprintf("whether %s requires %s, because you are not allowed to get ManagedCluster %s", name, text.List(undecided, maxListed), text.Word(u.Name)))
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(u.Versions.Unread)) {
		missing = append(missing, "which other versions exist, because you are not allowed to list OperatorVersions in namespace "+text.Word(namespace))
	}
	return missing
}
