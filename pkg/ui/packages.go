package ui

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
)

// packagesView is what page Packages shows.
type packagesView struct {
	Packages []packageRow
	Command  string
}

// packageRow is a version of a package, with the number of Instances that run it.
type packageRow struct {
	Namespace, Name, Operator, Version, AppVersion string
	Parameters, Plans, Instances                   int
}

// packageRowOf returns the row of a version without the number of Instances.
func packageRowOf(version *kudo.OperatorVersion) packageRow {
	return packageRow{
		Namespace: version.Namespace, Name: version.Name, Operator: version.OperatorName(), Version: version.Spec.Version,
		AppVersion: version.Spec.AppVersion, Parameters: len(version.Spec.Parameters), Plans: len(version.Spec.Plans),
	}
}

// compare sorts by operator.
func (r packageRow) compare(other packageRow) int {
	return cmp.Or(cmp.Compare(r.Operator, other.Operator), cmp.Compare(r.Namespace, other.Namespace), cmp.Compare(r.Name, other.Name))
}

func packagesPage(ctx context.Context, v visit) (frame, error) {
	versions, err := read.StoredVersions(ctx, v.reader, "")
	if err != nil {
		return frame{}, err
	}
	var instances kudo.InstanceList
	if err := v.List(ctx, &instances, client.UnsafeDisableDeepCopy); err != nil && !isHidden(err) && !isMissingKind(err) {
		return frame{}, err
	}
	view := packagesView{Command: command("package list")}
	for i := range versions {
		row := packageRowOf(&versions[i])
		row.Instances = len(instanceRowsOf(instances.Items, &versions[i]))
		view.Packages = append(view.Packages, row)
	}
	slices.SortFunc(view.Packages, packageRow.compare)
	return frame{Title: "Packages", Template: "packages", View: view}, nil
}

// instanceRowsOf returns the Instances that run a version.
func instanceRowsOf(instances []kudo.Instance, version *kudo.OperatorVersion) []instanceRow {
	var rows []instanceRow
	for i := range instances {
		ref := instances[i].Spec.OperatorVersion
		if ref.Name == version.Name && cmp.Or(ref.Namespace, instances[i].Namespace) == version.Namespace {
			rows = append(rows, instanceRowOf(&instances[i]))
		}
	}
	return rows
}

// packageView is what the page of a version of a package shows.
type packageView struct {
	*kudo.OperatorVersion
	Plans      []string
	Parameters []progress.Definition
	Instances  []instanceRow
	// More is the number of Instances that are not listed.
	More    int
	Command string
}

func packagePage(ctx context.Context, v visit) (frame, error) {
	version := &kudo.OperatorVersion{}
	if err := v.Get(ctx, client.ObjectKey{Namespace: v.PathValue("namespace"), Name: v.PathValue("name")}, version); err != nil {
		return frame{}, err
	}
	var instances kudo.InstanceList
	if err := v.List(ctx, &instances, client.UnsafeDisableDeepCopy); err != nil && !isHidden(err) && !isMissingKind(err) {
		return frame{}, err
	}
	all := instanceRowsOf(instances.Items, version)
	slices.SortFunc(all, func(a, b instanceRow) int {
		return cmp.Or(a.State.Rank()-b.State.Rank(), cmp.Compare(a.Cluster, b.Cluster))
	})
	view := packageView{
		OperatorVersion: version, Parameters: progress.DefinitionsOf(&version.Spec), Plans: slices.Sorted(maps.Keys(version.Spec.Plans)), Instances: all[:min(len(all), alikeShown)],
		More: max(0, len(all)-alikeShown), Command: command("package show %s -n %s", version.Name, version.Namespace),
	}
	return frame{Title: "Package " + version.Name, Template: "package", View: view}, nil
}
