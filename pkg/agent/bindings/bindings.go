// Package bindings keeps the Roles, ClusterRoles and bindings that hold the permissions of Instances on the managed cluster. It does I/O; the
// pure package rights decides what they hold.
package bindings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// fieldManager is the field manager of Roles and bindings.
const fieldManager = "addon-agent-rights"

// Keeper keeps the Roles and bindings of Instances. It reads them from a cache.
type Keeper struct {
	client client.Client
	live   client.Reader
	// writes detect that the cache lacks a write of this process.
	writes *controller.Expectations[place]
}

// place identifies a Role or a binding.
type place struct {
	kind reflect.Type
	types.NamespacedName
}

func placeOf(o client.Object) place { return place{reflect.TypeOf(o), client.ObjectKeyFromObject(o)} }

// maxWrites is the maximum number of remembered writes. Others are only compared with the cache.
const maxWrites = 10_000

// byInstance is the index of Roles and bindings by NAMESPACE/NAME of their Instance.
const byInstance = "tandem.rights.instance"

// kinds returns an empty object and an empty list of every kind. Roles precede their bindings.
func kinds() map[client.Object]client.ObjectList {
	return map[client.Object]client.ObjectList{
		&rbacv1.Role{}: &rbacv1.RoleList{}, &rbacv1.RoleBinding{}: &rbacv1.RoleBindingList{},
		&rbacv1.ClusterRole{}: &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBinding{}: &rbacv1.ClusterRoleBindingList{},
	}
}

// New returns a Keeper for the managed cluster.
func New(ctx context.Context, local ctrl.Manager) (*Keeper, error) {
	for object := range kinds() {
		err := local.GetFieldIndexer().IndexField(ctx, object, byInstance, func(o client.Object) []string { return []string{instanceOf(o).String()} })
		if err != nil {
			return nil, fmt.Errorf("indexing Roles and bindings by Instance: %w", err)
		}
	}
	return &Keeper{client: local.GetClient(), live: local.GetAPIReader(), writes: controller.NewExpectations(placeOf, maxWrites)}, nil
}

// Watch makes a controller of Instances reconcile an Instance whose Roles or bindings were changed or deleted by another writer, or exist although
// the Instance does not.
func (k *Keeper) Watch(to *builder.Builder) *builder.Builder {
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool { return instanceOf(o).Name != "" })
	// Creation by this process is admitted, because the Instance may have been removed before the cache has the object.
	others := predicate.Funcs{UpdateFunc: k.writes.News().Update}
	request := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: instanceOf(o)}}
	})
	for object := range kinds() {
		to = to.Watches(object, request, builder.WithPredicates(ours, others))
	}
	return to
}

// instanceOf returns the Instance of a Role or binding; empty if it has other purposes.
func instanceOf(o client.Object) types.NamespacedName {
	labels := o.GetLabels()
	return types.NamespacedName{Namespace: labels[kudo.LabelRightsNamespace], Name: labels[kudo.LabelRightsInstance]}
}

// Sync makes the permissions of an Instance's user exactly those of the grants. It reports whether it wrote anything that a user gains. A grant in
// a namespace that does not exist is left out: a task may create the namespace.
func (k *Keeper) Sync(ctx context.Context, instance types.NamespacedName, grants []rights.Grant) (written bool, err error) {
	existing, err := k.objectsOf(ctx, instance)
	if err != nil {
		return false, err
	}
	var problems []error
	for _, grant := range grants {
		for _, want := range objects(instance, grant) {
			var have client.Object
			have, existing = take(existing, want)
			wrote, err := k.write(ctx, have, want)
			if apierrors.IsNotFound(err) {
				continue
			}
			written, problems = written || wrote, append(problems, err)
		}
	}
	for _, surplus := range existing {
		problems = append(problems, k.delete(ctx, surplus))
	}
	return written, errors.Join(problems...)
}

// take returns the existing object in the place of the wanted one, nil if there is none, and the others.
func take(existing []client.Object, want client.Object) (have client.Object, others []client.Object) {
	i := slices.IndexFunc(existing, func(o client.Object) bool { return placeOf(o) == placeOf(want) })
	if i < 0 {
		return nil, existing
	}
	have = existing[i] // before Delete, which overwrites it
	return have, slices.Delete(existing, i, i+1)
}

// Has reports whether the Instance's user has permissions, according to the cache.
func (k *Keeper) Has(ctx context.Context, instance types.NamespacedName) (bool, error) {
	existing, err := k.objectsOf(ctx, instance)
	return len(existing) > 0, err
}

// objectsOf returns the Roles and bindings of an Instance in the cache, bindings first, so that a user loses permissions before Roles
// disappear.
func (k *Keeper) objectsOf(ctx context.Context, instance types.NamespacedName) ([]client.Object, error) {
	var existing []client.Object
	for _, list := range kinds() {
		if err := k.client.List(ctx, list, client.MatchingFields{byInstance: instance.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the Roles and bindings of Instance %q: %w", instance, err)
		}
		existing = append(existing, items(list)...)
	}
	slices.SortFunc(existing, func(a, b client.Object) int {
		return cmp.Or(-cmp.Compare(reflect.TypeOf(a).String(), reflect.TypeOf(b).String()), cmp.Compare(a.GetNamespace(), b.GetNamespace()))
	})
	return existing, nil
}

func items(list client.ObjectList) []client.Object {
	var all []client.Object
	switch list := list.(type) {
	case *rbacv1.RoleList:
		all = pointers(list.Items, func(o *rbacv1.Role) client.Object { return o })
	case *rbacv1.RoleBindingList:
		all = pointers(list.Items, func(o *rbacv1.RoleBinding) client.Object { return o })
	case *rbacv1.ClusterRoleList:
		all = pointers(list.Items, func(o *rbacv1.ClusterRole) client.Object { return o })
	case *rbacv1.ClusterRoleBindingList:
		all = pointers(list.Items, func(o *rbacv1.ClusterRoleBinding) client.Object { return o })
	}
	return all
}

func pointers[T any](list []T, as func(*T) client.Object) []client.Object {
	all := make([]client.Object, len(list))
	for i := range list {
		all[i] = as(&list[i])
	}
	return all
}

// objects returns the Role and the binding of a grant.
func objects(instance types.NamespacedName, grant rights.Grant) []client.Object {
	name := rights.User(instance.Namespace, instance.Name)
	metadata := metav1.ObjectMeta{Namespace: grant.Namespace, Name: name, Labels: map[string]string{
		kudo.LabelHeritage: kudo.Heritage, kudo.LabelRightsNamespace: instance.Namespace, kudo.LabelRightsInstance: instance.Name,
	}}
	role := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	of := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}
	if grant.Namespace == "" {
		return []client.Object{
			&rbacv1.ClusterRole{TypeMeta: of("ClusterRole"), ObjectMeta: metadata, Rules: grant.Rules},
			&rbacv1.ClusterRoleBinding{TypeMeta: of("ClusterRoleBinding"), ObjectMeta: metadata, RoleRef: role("ClusterRole"), Subjects: subjects},
		}
	}
	return []client.Object{
		&rbacv1.Role{TypeMeta: of("Role"), ObjectMeta: metadata, Rules: grant.Rules},
		&rbacv1.RoleBinding{TypeMeta: of("RoleBinding"), ObjectMeta: metadata, RoleRef: role("Role"), Subjects: subjects},
	}
}

// write applies an object unless it is up to date; have is the object in the cache, nil if there is none. It re-creates an object whose other
// fields apply cannot correct.
func (k *Keeper) write(ctx context.Context, have, want client.Object) (written bool, err error) {
	if have, err = k.readFresh(ctx, have, want); err != nil {
		return false, err
	}
	same, correctable := compare(have, want)
	if same {
		return false, nil
	}
	if !correctable {
		if err := k.delete(ctx, have); err != nil {
			return false, err
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", describe(want), err)
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	applied, err := apply.Object(ctx, k.client, &unstructured.Unstructured{Object: content}, fieldManager)
	if err != nil {
		return false, fmt.Errorf("applying %s: %w", describe(want), err)
	}
	want.SetResourceVersion(applied.GetResourceVersion())
	k.writes.NoteIfNewer(want)
	return true, nil
}

// readFresh returns the object in the cache, or on the API server if the cache lacks the last write.
func (k *Keeper) readFresh(ctx context.Context, have, want client.Object) (client.Object, error) {
	cached := have
	if cached == nil {
		cached = want // without a resource version, it is older than any write
	}
	if upToDate, known := k.writes.UpToDate(cached); upToDate || !known {
		return have, nil
	}
	live := reflect.New(reflect.TypeOf(want).Elem()).Interface().(client.Object)
	err := k.live.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		k.writes.Forget(placeOf(want))
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", describe(want), err)
	}
	return live, nil
}

// compare reports whether an object is as wanted, and otherwise whether an apply makes it so: it changes no role reference, and no aggregation.
func compare(have, want client.Object) (same, correctable bool) {
	if have == nil {
		return false, true
	}
	content, fixed := contentOf(have)
	wanted, fixedWanted := contentOf(want)
	correctable = equality.Semantic.DeepEqual(fixed, fixedWanted)
	return correctable && equality.Semantic.DeepEqual(content, wanted), correctable
}

// contentOf returns what an object grants, and the part of it that an apply does not change.
func contentOf(object client.Object) (content, fixed any) {
	switch o := object.(type) {
	case *rbacv1.Role:
		return o.Rules, nil
	case *rbacv1.ClusterRole:
		return o.Rules, o.AggregationRule
	case *rbacv1.RoleBinding:
		return o.Subjects, o.RoleRef
	case *rbacv1.ClusterRoleBinding:
		return o.Subjects, o.RoleRef
	default:
		return nil, nil
	}
}

func (k *Keeper) delete(ctx context.Context, surplus client.Object) error {
	uid := surplus.GetUID()
	err := k.client.Delete(ctx, surplus.DeepCopyObject().(client.Object), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", describe(surplus), err)
	}
	k.writes.Forget(placeOf(surplus))
	return nil
}

func describe(o client.Object) string {
	if o.GetNamespace() == "" {
		return fmt.Sprintf("%s %s", reflect.TypeOf(o).Elem().Name(), o.GetName())
	}
	return fmt.Sprintf("%s %s", reflect.TypeOf(o).Elem().Name(), client.ObjectKeyFromObject(o))
}
