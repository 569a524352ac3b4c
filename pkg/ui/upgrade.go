package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/kube/content"
	"github.com/tandem-addons/tandem/pkg/text"
)

// upgradeForm is a form that changes the OperatorVersion of an Instance, or of an add-on on a cluster to choose.
type upgradeForm struct {
	// Path receives the form, Token is the value that it has to contain.
	Path, Token string
	Versions    []string
	// AddOn and Clusters are set on the page of an add-on.
	AddOn    string
	Clusters []string
	// RolledOut states that a Placement decides on the version instead, and Command is the command that changes that.
	RolledOut, Command string
}

// versionWrite returns the request that changes the version of an Instance.
func versionWrite(instance *kudo.Instance) authorizationv1.ResourceAttributes {
	if ownedByAddOn(instance) {
		return onAddOn("patch", "managedclusteraddons", instance.Namespace, instance.Name)
	}
	return patchInstance(instance.Namespace, instance.Name)
}

// upgradeForm returns the form for the version of an Instance, if the user may change it and there is another one. A child has none, because its
// parent determines its version.
func (v visit) upgradeForm(ctx context.Context, p progress.View) (upgradeForm, error) {
	instance := p.Instance
	if !instance.DeletionTimestamp.IsZero() || instance.Parent() != nil || p.Version == nil || !v.may(ctx, versionWrite(instance)) {
		return upgradeForm{}, nil
	}
	if rolledOut := v.rolloutText(ctx, instance); rolledOut != "" {
		return upgradeForm{RolledOut: rolledOut, Command: text.Command("kubectl edit clustermanagementaddon %s", instance.Name)}, nil
	}
	versions, err := v.versionsLike(ctx, []client.ObjectKey{install.VersionOf(instance)})
	versions = slices.DeleteFunc(versions, func(name string) bool { return name == p.Version.Name })
	if err != nil || len(versions) == 0 {
		return upgradeForm{}, err
	}
	return upgradeForm{Path: instancePath(instance.Namespace, instance.Name) + "/upgrade", Token: v.token, Versions: versions}, nil
}

// rolloutText returns the sentence about the Placement that decides on the version of an Instance; empty if none does, or if the user may not
// read that.
func (v visit) rolloutText(ctx context.Context, instance *kudo.Instance) string {
	definition, addOn := &addonv1alpha1.ClusterManagementAddOn{}, &addonv1alpha1.ManagedClusterAddOn{}
	if !ownedByAddOn(instance) || v.Get(ctx, client.ObjectKey{Name: instance.Name}, definition) != nil ||
		v.Get(ctx, client.ObjectKeyFromObject(instance), addOn) != nil {
		return ""
	}
	if err := change.CheckVersionNotRolledOut(definition, addOn); err != nil {
		return err.Error()
	}
	return ""
}

// addOnUpgradeForm returns the form for the version of an add-on on one of its clusters, if the user may change it on all.
func (v visit) addOnUpgradeForm(ctx context.Context, name string, clusters []clusterRow) (upgradeForm, error) {
	if len(clusters) == 0 || !v.may(ctx, onAddOn("patch", "managedclusteraddons", "", name)) {
		return upgradeForm{}, nil
	}
	var instances kudo.InstanceList
	if err := v.List(ctx, &instances, client.UnsafeDisableDeepCopy); isReadProblem(err) {
		return upgradeForm{}, err
	}
	runs := map[client.ObjectKey]bool{}
	for i := range instances.Items {
		if instance := &instances.Items[i]; instance.Name == name && ownedByAddOn(instance) {
			runs[install.VersionOf(instance)] = true
		}
	}
	versions, err := v.versionsLike(ctx, slices.Collect(maps.Keys(runs)))
	if err != nil || len(versions) == 0 {
		return upgradeForm{}, err
	}
	form := upgradeForm{Path: "/upgrade", Token: v.token, Versions: versions, AddOn: name}
	for _, row := range clusters[:min(len(clusters), maxChoices)] {
		form.Clusters = append(form.Clusters, row.Cluster)
	}
	slices.Sort(form.Clusters)
	return form, nil
}

// versionsLike returns the names of the OperatorVersions of the operators that the given ones are of, in their namespaces.
func (v visit) versionsLike(ctx context.Context, runs []client.ObjectKey) ([]string, error) {
	type operator struct{ namespace, name string }
	operators := map[operator]bool{}
	for _, key := range runs {
		version := &kudo.OperatorVersion{}
		switch err := v.Get(ctx, key, version); {
		case err == nil:
			operators[operator{key.Namespace, version.OperatorName()}] = true
		case isReadProblem(err):
			return nil, err
		}
	}
	names := map[string]bool{}
	for of := range operators {
		stored, err := read.StoredVersions(ctx, v.reader, of.namespace)
		if err != nil && !isHidden(err) {
			return nil, err
		}
		for i := range stored {
			if stored[i].OperatorName() == of.name {
				names[stored[i].Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// upgrade changes the OperatorVersion of an Instance or of the add-on that owns it, as `kubectl addon upgrade` does.
func upgrade(ctx context.Context, c client.Client, r *http.Request) (proposal, error) {
	key := client.ObjectKey{
		Namespace: cmp.Or(r.PathValue("cluster"), strings.TrimSpace(r.PostFormValue("cluster"))),
		Name:      cmp.Or(r.PathValue("instance"), strings.TrimSpace(r.PostFormValue("addon"))),
	}
	version := r.PostFormValue("version")
	if key.Namespace == "" || key.Name == "" || version == "" {
		return proposal{}, errors.New("choose a version and a cluster")
	}
	state, err := change.Gather(ctx, read.NewCachingReader(content.NewFillingReader(c)), []string{key.Namespace})
	if err != nil {
		return proposal{}, err
	}
	instance := state.FindInstance(key)
	p := upgradeProposal(key, instance, version)
	edited, err := state.Edit(ctx, change.Edit{ObjectKey: key, Upgrade: true, Choice: change.Choice{Version: version}})
	switch {
	case errors.Is(err, change.ErrAbsent):
		return proposal{}, state.NotFoundError(key)
	case err != nil:
		return p.withRefusal(err)
	}
	p.describeChange(edited)
	p.do = func(ctx context.Context) error {
		written, err := edited.Write(ctx, c, change.RequestUnchanged)
		return incomplete(written, err)
	}
	return p, nil
}

// upgradeProposal returns the proposal without the effects beside the version. The Instance is nil if the add-on has none yet.
func upgradeProposal(key client.ObjectKey, instance *kudo.Instance, version string) proposal {
	p := proposal{
		Title: fmt.Sprintf("Change the version of %s on %s", key.Name, key.Namespace), Button: "Change the version",
		Command: command("upgrade %s --cluster %s --version %s", key.Name, key.Namespace, version),
		Fields:  map[string]string{"version": version}, Path: instancePath(key.Namespace, key.Name) + "/upgrade", Back: whyPath(key.Namespace, key.Name),
	}
	if instance == nil {
		p.Effects = []string{fmt.Sprintf("OperatorVersion %s is installed once the add-on is.", version)}
		return p
	}
	p.Back, p.Seen = instancePath(key.Namespace, key.Name), seenOf(instance)
	p.Effects = []string{fmt.Sprintf("OperatorVersion: %s → %s", instance.Spec.OperatorVersion.Name, version)}
	if instance.Spec.OperatorVersion.Name == version {
		p.Effects = []string{fmt.Sprintf("OperatorVersion %s is already set; it does not change.", version)}
	}
	return p
}
