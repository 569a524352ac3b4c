package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// power is a kind of permission by which its user exceeds the declared ones.
type power struct {
	// name is the name of the power in the agent's flag --allow-escalation.
	name string
	// effect is what a permission of this kind does.
	effect string
	rights []right
}

// right selects permissions for resources of a group. Without verbs, it selects all of them.
type right struct {
	verbs, resources []string
	group            string
	// clusterWide is true if the right is a power in rules for the whole cluster only.
	clusterWide bool
	// narrow is true if verbs and resources have narrower forms, such as impersonate:user-info and userextras/scopes. Such a verb counts on
	// every resource.
	narrow bool
}

var (
	writes     = []string{"create", "update", "patch"}
	alsoDelete = []string{"create", "update", "patch", "delete", "deletecollection"}
)

// powers are the risks of privilege escalation that Kubernetes documents
// (https://kubernetes.io/docs/concepts/security/rbac-good-practices/#privilege-escalation-risks), admission policies and APIServices, which
// intercept requests as admission webhooks do, and writes to reserved namespaces.
var powers = []power{
	{"roles", "grants permissions beyond the declared ones", []right{
		{group: rbacv1.GroupName, resources: []string{"roles", "clusterroles"}, verbs: []string{"escalate", "bind"}, narrow: true},
	}},
	{"impersonation", "acts as other users", []right{
		{group: "", resources: []string{"users", "groups", "serviceaccounts"}, verbs: []string{"impersonate"}, narrow: true},
		{group: "authentication.k8s.io", resources: []string{"users", "groups", "serviceaccounts", "uids", "userextras"},
			verbs: []string{"impersonate"}, narrow: true},
	}},
	{"tokens", "issues tokens of service accounts", []right{
		{group: "", resources: []string{"serviceaccounts/token"}, verbs: []string{"create"}},
	}},
	{"certificates", "issues certificates of other users", []right{
		{group: "certificates.k8s.io", resources: []string{"signers"}, verbs: []string{"approve", "sign", "attest"}},
		{group: "certificates.k8s.io", resources: []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"},
			verbs: []string{"update", "patch"}},
	}},
	{"nodes", "controls nodes and their containers", []right{
		{group: "", resources: []string{"nodes/proxy", "nodes/log", "nodes/checkpoint"}},
		{group: "", resources: []string{"nodes", "nodes/status"}, verbs: alsoDelete},
	}},
	{"volumes", "mounts directories of nodes and volumes of others", []right{
		{group: "", resources: []string{"persistentvolumes"}, verbs: writes},
	}},
	{"admission", "intercepts or changes requests of others", []right{
		{group: "admissionregistration.k8s.io", resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations",
			"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
			verbs: alsoDelete},
	}},
	{"apis", "intercepts requests of others", []right{
		{group: "apiregistration.k8s.io", resources: []string{"apiservices"}, verbs: alsoDelete},
	}},
	{"namespaces", "changes labels by which namespaces are protected", []right{
		{group: "", resources: []string{"namespaces", "namespaces/status", "namespaces/finalize"}, verbs: writes},
	}},
	{"secrets", "reaches the Secrets of every namespace", []right{
		{group: "", resources: []string{"secrets"}, clusterWide: true},
	}},
	{"workloads", "runs or changes containers in every namespace", []right{
		{group: "", resources: []string{"pods", "pods/exec", "pods/attach", "pods/ephemeralcontainers", "pods/portforward", "pods/proxy",
			"pods/binding", "pods/resize", "bindings", "services/proxy", "replicationcontrollers", "replicationcontrollers/scale"},
			verbs: alsoDelete, clusterWide: true},
		{group: "", resources: []string{"pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy"}, verbs: []string{"get"},
			clusterWide: true},
		{group: "apps", resources: []string{"daemonsets", "deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets",
			"statefulsets/scale"}, verbs: alsoDelete, clusterWide: true},
		{group: "batch", resources: []string{"cronjobs", "jobs"}, verbs: alsoDelete, clusterWide: true},
	}},
	{"cluster-wide-writes", "changes objects in every namespace, also in kube-system and the agent's", namespacedWrites()},
}

// namespacedWrites returns the writes of Kubernetes' namespaced resources, except those of events, and of resources of other powers; of mirrors;
// and deletions of namespaces. A pod's labels can be changed by its status, and a Service's status redirects traffic.
func namespacedWrites() []right {
	other := []string{"Event", "Secret", "Pod", "ReplicationController", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "CronJob", "Job"}
	all := []right{
		{group: "", resources: []string{"namespaces"}, verbs: []string{"delete", "deletecollection"}, clusterWide: true},
		{group: "", resources: []string{"pods/status", "services/status"}, verbs: writes, clusterWide: true},
		{group: kudo.GroupVersion.Group, resources: []string{"instances", "instances/status", "operatorversions", "operatorcontents"}, verbs: alsoDelete, clusterWide: true},
	}
	for group, kinds := range builtIn {
		namespaced, _, _ := strings.Cut(kinds, "|")
		r := right{group: group, verbs: alsoDelete, clusterWide: true}
		for _, kind := range strings.Fields(namespaced) {
			if !slices.Contains(other, kind) {
				plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: group, Kind: kind})
				r.resources = append(r.resources, plural.Resource)
			}
		}
		if len(r.resources) > 0 {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b right) int { return strings.Compare(a.group, b.group) })
	return all
}

// Power is a permission by which its user exceeds the declared ones.
type Power struct {
	// Name is the name of the power in --allow-escalation.
	Name string `json:"name"`
	// What names the permission and its effect.
	What string `json:"message"`
}

// Powers are the powers that permissions include, rule by rule.
type Powers []Power

// PowersOf returns the powers in declared permissions.
func PowersOf(permissions *kudo.Permissions) Powers {
	if permissions == nil {
		return nil
	}
	var all Powers
	for _, rule := range permissions.ClusterRules {
		all = append(all, powersOf(rule, true)...)
	}
	for _, grant := range Grants(&kudo.Permissions{Rules: permissions.Rules, Namespaces: permissions.Namespaces}, "") {
		for _, rule := range grant.Rules {
			all = append(all, powersOf(rule, false)...)
		}
	}
	return all
}

// powersOf returns the powers in a rule for the whole cluster, or for a namespace.
func powersOf(rule rbacv1.PolicyRule, clusterWide bool) Powers {
	var all Powers
	for _, p := range powers {
		for _, r := range p.rights {
			if r.clusterWide && !clusterWide {
				continue
			}
			if what := r.in(rule); what != "" {
				all = append(all, Power{Name: p.name, What: what + p.effect})
				break
			}
		}
	}
	return all
}

// in describes the permission of a rule that includes the right; empty if there is none.
func (r right) in(rule rbacv1.PolicyRule) string {
	for _, verb := range rule.Verbs {
		if at := slices.IndexFunc(r.verbs, func(v string) bool { return strings.HasPrefix(verb, v) }); r.narrow && at >= 0 {
			return fmt.Sprintf("verb %s ", r.verbs[at])
		}
		if verb != rbacv1.VerbAll && len(r.verbs) > 0 && !slices.Contains(r.verbs, verb) {
			continue
		}
		if resource, included := r.resourceIn(rule); resource != "" {
			return r.describe(verb, resource, included)
		}
	}
	return ""
}

// resourceIn returns the resource of a rule that includes a resource of the right, and that resource.
func (r right) resourceIn(rule rbacv1.PolicyRule) (declared, included string) {
	if !has(rule.APIGroups, r.group) {
		return "", ""
	}
	for _, declared := range rule.Resources {
		for _, resource := range r.resources {
			if coversResource(declared, resource) || r.narrow && strings.HasPrefix(declared, resource+"/") {
				return declared, resource
			}
		}
	}
	return "", ""
}

// describe names a permission, and what a wildcard in it includes.
func (r right) describe(verb, declared, included string) string {
	what := atom{group: r.group, resource: declared, verb: verb}
	if declared == included && (verb != rbacv1.VerbAll || len(r.verbs) == 0) {
		return fmt.Sprintf("%s on %s ", verb, what.describe())
	}
	if declared == rbacv1.ResourceAll {
		what.group = ""
	}
	if verb == rbacv1.VerbAll && len(r.verbs) > 0 {
		verb = r.verbs[0]
	}
	return fmt.Sprintf("%s on %s includes %s on %s, which ", what.verb, what.describe(), verb, atom{group: r.group, resource: included}.describe())
}

// maxPowers is the maximum number of powers that a message describes.
const maxPowers = 3

// String describes the powers.
func (p Powers) String() string {
	var all []string
	for _, each := range p {
		if !slices.Contains(all, each.What) {
			all = append(all, each.What)
		}
	}
	return text.List(all, maxPowers)
}

// Flag returns the agent's flag that allows the powers.
func (p Powers) Flag() string {
	var names []string
	for _, each := range p {
		if !slices.Contains(names, each.Name) {
			names = append(names, each.Name)
		}
	}
	return "--allow-escalation=" + strings.Join(names, ",")
}

// Except returns the powers whose names are not in a list; * is every name.
func (p Powers) Except(allowed []string) Powers {
	var left Powers
	for _, each := range p {
		if !has(allowed, each.Name) {
			left = append(left, each)
		}
	}
	return left
}

// PowerNames returns the names of all powers.
func PowerNames() []string {
	names := make([]string, 0, len(powers))
	for _, p := range powers {
		names = append(names, p.name)
	}
	return names
}
