package rights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Use is what a task does with an object.
type Use string

// The uses of objects, and the verbs that the engine needs for them. Objects are read with the agent's own permissions, and what the inventory
// lists is removed with them.
const (
	Applies Use = "Applies" // server-side apply, which also creates objects
	Deletes Use = "Deletes"
	Toggles Use = "Toggles" // applies or deletes
	Hooks   Use = "Hooks"   // hooks of charts: applies them, and deletes them by their delete policy
	Pipes   Use = "Pipes"   // the pod of a Pipe task: it is created, read by a command, and deleted
)

var verbsOf = map[Use][]string{
	Applies: {"create", "patch"},
	Deletes: {"delete"},
	Toggles: {"create", "delete", "patch"},
	Hooks:   {"create", "delete", "patch"},
	Pipes:   {"create", "delete", "patch"},
}

// maxAtoms limits the permissions of a package: those of a Role are a product of lists.
const maxAtoms = 5000

// scope is a namespace, the Instance's if the name is empty, or the whole cluster.
type scope struct {
	cluster   bool
	namespace string
}

// atom is a single permission.
type atom struct{ group, resource, name, url, verb string }

// getSecret is the permission that a reference to a Secret needs.
var getSecret = atom{resource: "secrets", verb: "get"}

// readLog is the optional permission with which messages about failed pods quote the logs of their containers.
var readLog = atom{resource: "pods/log", verb: "get"}

// Needs collects the permissions that the objects of a package require.
type Needs struct {
	// namespace is the Instance's namespace in the rendered objects.
	namespace string
	defined   map[schema.GroupKind]resource
	// tasks holds the task that first needs each permission.
	tasks map[scope]map[atom]string
	// unknown are notes about what depends on the cluster or on parameters.
	unknown map[string]bool
	size    int
	// references are the parameters whose values are read from Secrets.
	references []string
	// roles are the Roles (NAMESPACE/NAME) and ClusterRoles (/NAME) of the package.
	roles map[string]bool
}

// NewNeeds returns Needs for objects that are rendered for an Instance in that namespace. all are all objects of the package, which may define
// kinds and roles.
func NewNeeds(namespace string, all []*unstructured.Unstructured) *Needs {
	n := &Needs{
		namespace: namespace, defined: map[schema.GroupKind]resource{}, tasks: map[scope]map[atom]string{}, unknown: map[string]bool{},
		roles: map[string]bool{},
	}
	for _, object := range all {
		if kind, defined, ok := definition(object); ok {
			n.defined[kind] = defined
		}
		switch object.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}:
			n.roles[cmp.Or(object.GetNamespace(), namespace)+"/"+object.GetName()] = true
		case schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}:
			n.roles["/"+object.GetName()] = true
		}
	}
	return n
}

// Note records something about which no permission can be worked out.
func (n *Needs) Note(format string, args ...any) { n.unknown[fmt.Sprintf(format, args...)] = true }

// Add adds the permissions that a task needs to use an object.
func (n *Needs) Add(task string, use Use, object *unstructured.Unstructured) {
	kind := object.GroupVersionKind()
	at := n.scopeOf(n.resource(kind), object.GetNamespace())
	n.kind(task, use, kind, at)
	if use == Deletes {
		return
	}
	switch kind.GroupKind() {
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "Role"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}:
		n.role(task, object, at)
	case schema.GroupKind{Group: rbacv1.GroupName, Kind: "RoleBinding"}, schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}:
		n.noteBinding(object)
	}
}

// AddKind adds the permissions that a task needs for objects of a kind that it renders only with other parameters, in the Instance's namespace
// if it is namespaced.
func (n *Needs) AddKind(task string, use Use, kind schema.GroupVersionKind) {
	n.kind(task, use, kind, n.scopeOf(n.resource(kind), ""))
}

// AddLookup adds the permissions that a task needs to look up an object of a kind, or all objects if it is not named: in all namespaces if none is
// given.
func (n *Needs) AddLookup(task string, kind schema.GroupVersionKind, namespace string, named bool) {
	r, verb := n.resource(kind), "list"
	if named {
		verb = "get"
	}
	at := n.scopeOf(r, namespace)
	if namespace == "" {
		at = scope{cluster: true}
	}
	n.addAtom(task, at, atom{group: kind.Group, resource: r.name, verb: verb})
}

func (n *Needs) kind(task string, use Use, kind schema.GroupVersionKind, at scope) {
	r := n.resource(kind)
	for _, verb := range verbsOf[use] {
		n.addAtom(task, at, atom{group: kind.Group, resource: r.name, verb: verb})
	}
	if use == Applies && kind.GroupKind() == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		n.addAtom(task, at, atom{group: kind.Group, resource: r.name, verb: "delete"}) // a changed Job is replaced
	}
	if use == Pipes {
		for _, verb := range []string{"create", "get"} { // by SPDY and by WebSocket
			n.addAtom(task, at, atom{resource: "pods/exec", verb: verb})
		}
	}
}

// resource returns the resource of a kind, and notes a guess.
func (n *Needs) resource(kind schema.GroupVersionKind) resource {
	r := resourceOf(kind, n.defined)
	if !r.known {
		n.Note("%s is not one of Kubernetes' kinds, and the package does not define it: resource %s in a namespace is a guess "+
			"(kubectl api-resources lists it)", kind.GroupKind(), r.name)
	}
	return r
}

func (n *Needs) scopeOf(r resource, namespace string) scope {
	switch {
	case !r.namespaced:
		return scope{cluster: true}
	case namespace == n.namespace:
		return scope{}
	default:
		return scope{namespace: namespace}
	}
}

// role adds the permissions in a Role: no user may create a Role with permissions that it does not have.
func (n *Needs) role(task string, object *unstructured.Unstructured, at scope) {
	var role struct {
		Rules           []rbacv1.PolicyRule     `json:"rules"`
		AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
		n.Note("%s %s has invalid rules: %v", object.GetKind(), object.GetName(), err)
		return
	}
	if role.AggregationRule != nil {
		n.Note("ClusterRole %s aggregates the rules of other ClusterRoles, for which its user must have all permissions", object.GetName())
	}
	for _, rule := range role.Rules {
		if n.size > maxAtoms {
			return
		}
		for _, a := range atoms(rule) {
			n.addAtom(task, at, a)
		}
	}
}

// noteBinding notes a binding to a role of the cluster: its user must have the permissions of that role, too.
func (n *Needs) noteBinding(object *unstructured.Unstructured) {
	kind, _, _ := unstructured.NestedString(object.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(object.Object, "roleRef", "name")
	role := "/" + name
	if kind == "Role" {
		role = cmp.Or(object.GetNamespace(), n.namespace) + role
	}
	if !n.roles[role] {
		n.Note("%s %s refers to %s %s, which is not part of the package: declare its rules as well", object.GetKind(), object.GetName(), kind, name)
	}
}

func (n *Needs) addAtom(task string, at scope, a atom) {
	if n.tasks[at] == nil {
		n.tasks[at] = map[atom]string{}
	}
	if _, known := n.tasks[at][a]; known {
		return
	}
	if n.size++; n.size > maxAtoms {
		n.Note("the package needs more than %d permissions: the others are left out", maxAtoms)
		return
	}
	n.tasks[at][a] = task
}

// atoms returns the permissions of a rule, at most maxAtoms and one.
func atoms(rule rbacv1.PolicyRule) []atom {
	var all []atom
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, url := range rule.NonResourceURLs {
			all = append(all, atom{url: url, verb: verb})
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					if len(all) > maxAtoms {
						return all
					}
					all = append(all, atom{group: group, resource: resource, name: name, verb: verb})
				}
			}
		}
	}
	return all
}

// AddReference adds a parameter whose value is read from a Secret in the Instance's namespace.
func (n *Needs) AddReference(parameter string) { n.references = append(n.references, parameter) }

// maxReferences is the maximum number of parameters that a note lists.
const maxReferences = 5

// Unknown returns the sorted notes, and one about the Secrets that Instances refer to.
func (n *Needs) Unknown() []string {
	notes := slices.Sorted(maps.Keys(n.unknown))
	if len(n.references) > 0 {
		notes = append(notes, fmt.Sprintf("sensitive parameters are read from Secrets (%s): add the names of these Secrets as resourceNames to the rule "+
			"with verb get, or Instances may refer to any Secret in their namespace", text.List(n.references, maxReferences)))
	}
	return notes
}

// Permissions returns the needed permissions in their shortest form.
func (n *Needs) Permissions() *kudo.Permissions {
	p := &kudo.Permissions{}
	for at, tasks := range n.tasks {
		rules := rulesOf(slices.Collect(maps.Keys(tasks)))
		switch {
		case at.cluster:
			p.ClusterRules = rules
		case at.namespace == "":
			p.Rules = rules
		default:
			p.Namespaces = append(p.Namespaces, kudo.NamespacePermissions{Name: at.namespace, Rules: rules})
		}
	}
	slices.SortFunc(p.Namespaces, func(a, b kudo.NamespacePermissions) int { return cmp.Compare(a.Name, b.Name) })
	if _, known := n.tasks[scope{}][getSecret]; len(n.references) > 0 && !known { // a rule of its own, to which names can be added
		p.Rules = append(p.Rules, rulesOf([]atom{getSecret})...)
		slices.SortStableFunc(p.Rules, compareRules)
	}
	return p
}

// rulesOf combines permissions into rules: first the verbs of each resource, then the resources of an API group with equal verbs.
func rulesOf(atoms []atom) []rbacv1.PolicyRule {
	verbs := map[atom][]string{}
	for _, a := range atoms {
		verb := a.verb
		a.verb = ""
		verbs[a] = append(verbs[a], verb)
	}
	type row struct{ group, name, url, verbs string }
	resources := map[row][]string{}
	for a, list := range verbs {
		slices.Sort(list)
		r := row{a.group, a.name, a.url, strings.Join(list, " ")}
		resources[r] = append(resources[r], a.resource)
	}
	var rules []rbacv1.PolicyRule
	for r, list := range resources {
		rule := rbacv1.PolicyRule{Verbs: strings.Fields(r.verbs)}
		if r.url != "" {
			rule.NonResourceURLs = []string{r.url}
		} else {
			slices.Sort(list)
			rule.APIGroups, rule.Resources = []string{r.group}, list
		}
		if r.name != "" {
			rule.ResourceNames = []string{r.name}
		}
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, compareRules)
	return rules
}

func compareRules(a, b rbacv1.PolicyRule) int {
	return cmp.Or(slices.Compare(a.APIGroups, b.APIGroups), slices.Compare(a.Resources, b.Resources),
		slices.Compare(a.ResourceNames, b.ResourceNames), slices.Compare(a.NonResourceURLs, b.NonResourceURLs), slices.Compare(a.Verbs, b.Verbs))
}
