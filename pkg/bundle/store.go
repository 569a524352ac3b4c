package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// Hub is where packages are stored.
type Hub struct {
	Client    client.Client
	Namespace string
	// FieldManager is the name under which objects are written.
	FieldManager string
	// KeepsEqual sends no request for an object that has the desired content already, also if another writer has set it.
	KeepsEqual bool
	// Report is called for each object with its kind as in messages (operatorversion), its name, and what happened: created, configured, unchanged,
	// replaced, signed, or why it is not signed.
	Report func(kind, name, did string) error
}

// Push stores a package and its dependencies, dependencies first, and what is too large for each OperatorVersion after it. It stores nothing if one
// of the versions exists on the hub with different content.
func (h *Hub) Push(ctx context.Context, b *Bundle, signed Signatures) error {
	members := b.Distinct()
	exists, err := h.findExisting(ctx, members)
	if err != nil {
		return err
	}
	describing, err := h.highestVersions(ctx, members)
	if err != nil {
		return err
	}
	if err := h.checkServesContent(members); err != nil {
		return err
	}
	for _, m := range members {
		operator, version := m.Objects(h.Namespace)
		if describing[version.Name] {
			err = h.store(ctx, "operator", &kudo.Operator{}, operator)
		}
		switch {
		case err != nil:
		case exists[version.Name]:
			err = h.Report("operatorversion", version.Name, "unchanged")
		default:
			stored, _ := pack.Divide(version)
			err = h.store(ctx, "operatorversion", &kudo.OperatorVersion{}, stored)
		}
		if err == nil {
			err = h.storeContent(ctx, version, m.Charts, exists[version.Name])
		}
		if err == nil {
			err = h.sign(ctx, version, signed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Absent returns the OperatorVersions of a package that the hub does not have, and an error if it has another one of the same name.
func (h *Hub) Absent(ctx context.Context, b *Bundle) ([]client.ObjectKey, error) {
	members := b.Distinct()
	exists, err := h.findExisting(ctx, members)
	if err != nil {
		return nil, err
	}
	if err := h.checkServesContent(members); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(b.VersionKeys(h.Namespace), func(key client.ObjectKey) bool { return exists[key.Name] }), nil
}

// findExisting reports for each member whether its OperatorVersion exists on the hub. It returns an error if one exists with different
// content.
func (h *Hub) findExisting(ctx context.Context, members []*Member) (map[string]bool, error) {
	exists := map[string]bool{}
	var conflicts []error
	for _, m := range members {
		_, version := m.Objects(h.Namespace)
		stored := &kudo.OperatorVersion{}
		err := h.Client.Get(ctx, client.ObjectKeyFromObject(version), stored)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
		}
		if exists[version.Name] = err == nil; !exists[version.Name] {
			continue
		}
		if changed := pack.ChangedFields(stored.NamedSpec(), &version.Spec); len(changed) > 0 {
			conflicts = append(conflicts, &ConflictError{Version: client.ObjectKeyFromObject(version), Changed: changed, file: m.file("operator.yaml")})
		}
	}
	return exists, errors.Join(conflicts...)
}

// ConflictError is the error of an OperatorVersion that exists with other content.
type ConflictError struct {
	Version client.ObjectKey
	// Changed are the fields that differ.
	Changed []string
	file    string
}

func (e *ConflictError) Error() string { return e.Text() + ": raise operatorVersion in " + e.file }

// Text returns the error without what fixes it.
func (e *ConflictError) Text() string {
	return fmt.Sprintf("OperatorVersion %q already exists in namespace %q with different content (%s) and is immutable",
		e.Version.Name, e.Version.Namespace, strings.Join(e.Changed, ", "))
}

// highestVersions returns the OperatorVersions with the packages that provide the Operator: the highest existing version of each operator,
// because all its versions share one Operator. If the user may not list the versions on the hub, it is the highest of the members.
func (h *Hub) highestVersions(ctx context.Context, members []*Member) (map[string]bool, error) {
	versions, err := read.StoredVersions(ctx, h.Client, h.Namespace)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	for _, m := range members {
		_, version := m.Objects(h.Namespace)
		if !slices.ContainsFunc(versions, func(v kudo.OperatorVersion) bool { return v.Name == version.Name }) {
			versions = append(versions, *version)
		}
	}
	highest := map[string]bool{}
	for _, version := range versions {
		var task kudo.Task
		task.Spec.Package = version.OperatorName()
		if chosen, err := tree.Choose(task, versions); err == nil {
			highest[chosen.Name] = true
		}
	}
	return highest, nil
}

// store applies one object and reports the result; current is an empty object of the same type.
func (h *Hub) store(ctx context.Context, kind string, current, want client.Object) error {
	err := h.Client.Get(ctx, client.ObjectKeyFromObject(want), current)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %q: %w", kind, want.GetName(), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return fmt.Errorf("converting %s %q: %w", kind, want.GetName(), err)
	}
	delete(content, "status")
	if h.KeepsEqual && current.GetResourceVersion() != "" {
		existing, err := runtime.DefaultUnstructuredConverter.ToUnstructured(current)
		if err != nil {
			return fmt.Errorf("converting %s %q: %w", kind, want.GetName(), err)
		}
		if delete(existing, "status"); contains(existing, content) {
			return h.Report(kind, want.GetName(), "unchanged")
		}
	}
	applied, err := apply.Object(ctx, h.Client, &unstructured.Unstructured{Object: content}, h.FieldManager)
	if err != nil {
		return fmt.Errorf("applying %s %q: %w", kind, want.GetName(), err)
	}
	did := "configured"
	switch current.GetResourceVersion() {
	case "":
		did = "created"
	case applied.GetResourceVersion():
		did = "unchanged"
	}
	return h.Report(kind, want.GetName(), did)
}

// contains reports whether an object has all fields of another one with the same values. The kind and what is empty do not count: the typed client drops them.
func contains(existing, want map[string]any) bool {
	for name, value := range want {
		if name == "apiVersion" || name == "kind" || value == nil {
			continue
		}
		fields, isMap := value.(map[string]any)
		found, _ := existing[name].(map[string]any)
		if isMap && !contains(found, fields) || !isMap && !equality.Semantic.DeepEqual(existing[name], value) {
			return false
		}
	}
	return true
}
