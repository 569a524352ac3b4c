package check

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tandem-addons/tandem/pkg/core/suspension"
)

var (
	now          = time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "x", errors.New("no role"))
)

// healthy returns the observations of a hub without problems.
func healthy() Observations {
	permissions := NeededPermissions()
	for i := range permissions {
		permissions[i].Allowed = true
	}
	return Observations{
		Now: now, Client: "v1.3.0", Namespace: "tandem-system", Hub: Hub{Version: "v1.36.0"}, Clock: Clock{Known: true},
		Definitions: Objects{Wanted: 8}, Admission: Objects{Wanted: 21},
		Leader:  Leader{Exists: true, Holder: "pod_1", Renewed: now.Add(-2 * time.Second), Duration: 15 * time.Second},
		Manager: Manager{Exists: true, Version: "v1.3.0"},
		Agents: Agents{Agents: []Agent{
			{Cluster: "cluster1", Seen: true, Version: "v1.3.0", Renewed: now.Add(-time.Minute), Timeout: time.Minute},
			{Cluster: "cluster2", Seen: true, Version: "v1.3.0", Klusterlet: metav1.ConditionTrue},
		}},
		Permissions: Permissions{Reviewed: permissions},
	}
}

func TestJudge(t *testing.T) {
	for name, of := range map[string]struct {
		change func(*Observations)
		want   []string
	}{
		"a healthy hub": {func(*Observations) {}, nil},
		"an API server that does not respond": {func(o *Observations) { o.Hub.Problem = errors.New("dial tcp: connection\nrefused\x1b[2J") }, []string{
			`failed hub: the API server does not respond: dial tcp: connection refused^[[2J | kubectl cluster-info`}},
		"expired credentials": {func(o *Observations) { o.Hub.Problem = apierrors.NewUnauthorized("x") }, []string{
			"failed hub: the API server rejects your credentials: log in again, or select another user with --user or --context"}},
		"a version that may not be read": {func(o *Observations) { o.Hub.Problem = errForbidden }, []string{
			"unknown hub: unknown: forbidden: your user may not read its version"}},
		"a clock ahead": {func(o *Observations) { o.Clock.Ahead = 5 * time.Minute }, []string{
			"warning clock: the clock of the hub is 5m ahead of the local one: synchronize both, for example with NTP"}},
		"a clock behind": {func(o *Observations) { o.Clock.Ahead = -61 * time.Second }, []string{
			"warning clock: the clock of the hub is 61s behind the local one: synchronize both, for example with NTP"}},
		"a clock that differs little": {func(o *Observations) { o.Clock.Ahead = -59 * time.Second }, nil},
		"no time":                     {func(o *Observations) { o.Clock.Known = false }, []string{"unknown clock: unknown: responses of the API server have no Date header"}},
		"missing definitions": {func(o *Observations) { o.Definitions.Missing = []string{"a", "b", "c", "d", "e"} }, []string{
			"failed definitions: the hub does not serve a, b, c and 2 more: apply manifests/crds of the version of addon-manager on the hub | kubectl get crds"}},
		"no discovery": {func(o *Observations) { o.Definitions.Problem = errForbidden }, []string{
			"unknown definitions: unknown: forbidden: your user may not read the kinds that the hub serves"}},
		"a missing policy, and kinds of a later API server": {func(o *Observations) {
			o.Admission.Missing, o.Admission.Unserved = []string{"ValidatingAdmissionPolicy tandem-children"}, []string{"MutatingAdmissionPolicy"}
		}, []string{
			"failed admission: missing on the hub: ValidatingAdmissionPolicy tandem-children; apply manifests/admission on the hub",
			"warning admission: the API server does not serve MutatingAdmissionPolicy, so their rules are not enforced: upgrade the hub"}},
		"admission that may not be read": {func(o *Observations) { o.Admission.Problem = errForbidden }, []string{
			"unknown admission: unknown: forbidden: your user may not read webhooks and admission policies"}},
		"a Lease that may not be read": {func(o *Observations) { o.Leader = Leader{Problem: errForbidden} }, []string{
			"unknown addon-manager: unknown: forbidden: your user may not read its Lease in namespace tandem-system"}},
		"no addon-manager": {func(o *Observations) { o.Leader, o.Manager = Leader{}, Manager{} }, []string{
			"failed addon-manager: not installed in namespace tandem-system: it has no Lease and no ConfigMap addon-manager-webhooks there; install it, or name " +
				"its namespace with -n | kubectl -n tandem-system get pods -l app.kubernetes.io/name=addon-manager",
			"unknown version: unknown: addon-manager has not reported its version"}},
		"no Lease": {func(o *Observations) { o.Leader = Leader{} }, []string{
			"warning addon-manager: unknown whether it runs: namespace tandem-system has no Lease tandem-addon-manager, because it runs without " +
				"--leader-elect, keeps its Lease in another namespace, or has never run | kubectl -n tandem-system get pods -l app.kubernetes.io/name=addon-manager"}},
		"a dead leader with a hostile name": {func(o *Observations) {
			o.Leader.Renewed, o.Leader.Holder = now.Add(-5*time.Minute), "pod\x1b[2J\n✓ all is well"
		}, []string{
			`failed addon-manager: does not run: its Lease was last renewed 5m ago, by "pod\x1b[2J\n✓ all is well"; inspect its pods, then restart them with ` +
				"'kubectl -n tandem-system rollout restart deployment/addon-manager' | kubectl -n tandem-system get pods -l app.kubernetes.io/name=addon-manager"}},
		"a leader that was stopped": {func(o *Observations) {
			o.Leader.Renewed, o.Leader.Holder, o.Leader.Duration = now.Add(-5*time.Minute), "", time.Second
		}, []string{"warning addon-manager: the last one with --leader-elect stopped 5m ago: none runs, or one runs without --leader-elect | " +
			"kubectl -n tandem-system get pods -l app.kubernetes.io/name=addon-manager"}},
		"a Lease without a renewal": {func(o *Observations) { o.Leader.Renewed = time.Time{} }, []string{
			"failed addon-manager: does not run: it never renewed its Lease | kubectl -n tandem-system get pods -l app.kubernetes.io/name=addon-manager"}},
		"a leader whose replica may still take over": {func(o *Observations) { o.Leader.Renewed = now.Add(-75 * time.Second) }, nil},
		"a Lease from the future": {func(o *Observations) { o.Leader.Renewed = now.Add(3 * time.Minute) }, []string{
			"warning addon-manager: its Lease was renewed 3m in the future: synchronize the clocks of the hub's nodes"}},
		"another version of the plugin": {func(o *Observations) { o.Client = "v1.2.0" }, []string{
			"warning version: the plugin is v1.2.0 and addon-manager is v1.3.0: upgrade the older one | kubectl addon version"}},
		"a version of addon-manager that may not be read": {func(o *Observations) { o.Manager = Manager{Problem: errForbidden} }, []string{
			"unknown version: unknown: forbidden: your user may not read the version of addon-manager"}},
		"agents with every problem": {func(o *Observations) {
			o.Agents.Agents = append(o.Agents.Agents,
				Agent{Cluster: "silent", Seen: true, Version: "v1.2.0", Renewed: now.Add(-time.Hour), Timeout: time.Minute},
				Agent{Cluster: "late", Seen: true, Renewed: now.Add(-119 * time.Second), Timeout: time.Minute},
				Agent{Cluster: "new"}, Agent{Cluster: "detached", Seen: true, Klusterlet: metav1.ConditionUnknown})
		}, []string{
			"failed agents: addon-agent of cluster silent has not renewed its Lease for up to 60m: check whether it runs on the managed cluster and reaches the " +
				"hub | kubectl -n tandem-system logs deployment/addon-agent --context silent",
			"failed agents: the klusterlet of cluster detached is not in contact with the hub: check whether it runs there and reaches the hub | kubectl describe managedcluster detached",
			"warning agents: no addon-agent of cluster new has ever contacted the hub: install it there | kubectl addon join --help",
			"warning agents: addon-manager is v1.3.0, and addon-agent of cluster silent has another version: upgrade addon-manager first, then the agents | " +
				"kubectl addon version -o wide"}},
		"a thousand clusters without agents": {func(o *Observations) {
			for i := range 1000 {
				o.Agents.Agents = append(o.Agents.Agents, Agent{Cluster: fmt.Sprintf("edge%d", i)})
			}
		}, []string{"warning agents: no addon-agent of 1000 clusters (edge0, edge1, edge2 and 997 more) has ever contacted the hub: install it there | " +
			"kubectl addon join --help"}},
		"agents that may not be read": {func(o *Observations) { o.Agents = Agents{Problem: errForbidden} }, []string{
			"unknown agents: unknown: forbidden: your user may not read the Leases of agents; select clusters with --cluster"}},
		"a suspension of everything, with a hostile reason": {func(o *Observations) {
			o.Suspensions.Origins = []suspension.Origin{{Kind: suspension.KindEverything, Name: "tandem-system/tandem-suspend", Reason: "x\x1b[2J\n✓"}}
		}, []string{`warning suspensions: everything is suspended by ConfigMap tandem-system/tandem-suspend ("x\x1b[2J\n✓"): no plan starts | ` +
			"kubectl addon resume --all --everywhere"}},
		"many suspensions": {func(o *Observations) {
			for _, name := range []string{"d", "c", "b", "a"} {
				o.Suspensions.Origins = append(o.Suspensions.Origins, suspension.Origin{Kind: suspension.KindCluster, Name: name})
			}
			o.Suspensions.Origins = append(o.Suspensions.Origins, suspension.Origin{Kind: suspension.KindAddOn, Name: "kafka", Reason: "bad release"})
			o.Suspensions.Instances, o.Suspensions.First = []string{"a/x", "b/y"}, Suspended{"a", "x"}
		}, []string{
			"warning suspensions: 4 clusters are suspended by ManagedCluster a, ManagedCluster b, ManagedCluster c and 1 more: no plan starts | " +
				"kubectl addon resume --all --cluster a",
			`warning suspensions: 1 add-on is suspended by ClusterManagementAddOn kafka ("bad release"): no plan starts | kubectl addon resume kafka --everywhere`,
			"warning suspensions: 2 Instances are suspended by spec.suspend: a/x, b/y | kubectl addon resume x --cluster a",
		}},
		"suspensions that may not be read": {func(o *Observations) {
			o.Suspensions.Problems = []Unread{{"ConfigMap tandem-suspend in namespace tandem-system", errForbidden}}
		}, []string{"unknown suspensions: unknown: forbidden: your user may not read ConfigMap tandem-suspend in namespace tandem-system"}},
		"PackageSources without problems": {func(o *Observations) {
			o.Sources.Sources = []Source{
				{Namespace: "addon-packages", Name: "kafka", Conditions: readySource(metav1.ConditionTrue, "Stored")},
				{Namespace: "addon-packages", Name: "new", Created: now.Add(-time.Minute)},
			}
		}, nil},
		"PackageSources with problems": {func(o *Observations) {
			for _, name := range []string{"d", "c", "b", "a"} {
				o.Sources.Sources = append(o.Sources.Sources, Source{Namespace: "addon-packages", Name: name, Conditions: readySource(metav1.ConditionFalse, "PullFailed")})
			}
			o.Sources.Sources = append(o.Sources.Sources,
				Source{Namespace: "elsewhere", Name: "old", Created: now.Add(-2 * time.Minute)},
				Source{Namespace: "elsewhere", Name: "edited", Generation: 2, Conditions: readySource(metav1.ConditionTrue, "Stored")},
				Source{Namespace: "a", Name: "z", Conditions: readySource(metav1.ConditionFalse, "x\x1b[2J\n✓")},
				Source{Namespace: "a", Name: "y", Suspended: true, Conditions: readySource(metav1.ConditionFalse, "Suspended")})
		}, []string{
			"warning sources: 2 PackageSources are not attempted yet, or not since the last change: elsewhere/edited, elsewhere/old: if that stays, check whether " +
				"package-controller runs, and with --namespaces that include theirs | " +
				"kubectl get pods -A -l app.kubernetes.io/name=package-controller",
			"warning sources: 5 PackageSources are not ready: a/z (x^[[2J ✓), addon-packages/a (PullFailed), addon-packages/b (PullFailed) and 2 more | " +
				"kubectl describe packagesource z -n a",
			"warning sources: 1 PackageSource is suspended by spec.suspend: a/y | kubectl describe packagesource y -n a",
		}},
		"PackageSources that may not be read": {func(o *Observations) { o.Sources.Problem = errForbidden }, []string{
			"unknown sources: unknown: forbidden: your user may not read PackageSources"}},
		"a user who may not enable": {func(o *Observations) {
			o.Permissions.Namespace, o.Permissions.Reviewed[5].Allowed = "cluster1", false
		}, []string{"warning permissions: your user may not create managedclusteraddons (enable) in namespace cluster1: " +
			"ask an administrator of the hub if you need these commands"}},
		"a tenant who may not list clusters": {func(o *Observations) {
			o.Permissions.Namespace, o.Permissions.Reviewed[4].Allowed = "cluster1", false
		}, []string{"warning permissions: your user may not list managedclusters (--selector, --all-clusters) at the cluster scope: " +
			"ask an administrator of the hub if you need these commands"}},
		"a tenant who may do neither": {func(o *Observations) {
			o.Permissions.Namespace, o.Permissions.Reviewed[1].Allowed, o.Permissions.Reviewed[8].Allowed = "cluster1", false, false
		}, []string{"warning permissions: your user may not create addondeploymentconfigs (enable -p) in namespace cluster1; nor " +
			"list clustermanagementaddons (tree, why) at the cluster scope: ask an administrator of the hub if you need these commands"}},
		"permissions that cannot be reviewed": {func(o *Observations) { o.Permissions.Problem = errors.New(strings.Repeat("x", 1000)) }, []string{
			"unknown permissions: unknown: your permissions cannot be reviewed: " + strings.Repeat("x", 297) + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			of.change(&o)
			var got []string
			levels := map[Level]int{}
			for _, finding := range Judge(o).Findings {
				levels[finding.Level]++
				if finding.Level == OK {
					continue
				}
				line := string(finding.Level) + " " + finding.Subject + ": " + finding.Message
				if finding.Command != "" {
					line += " | " + finding.Command
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(of.want, got); diff != "" {
				t.Error(diff)
			}
			report := Judge(o)
			if report.Failed != levels[Failed] || report.Warnings != levels[Warning] || report.Unknown != levels[Unknown] {
				t.Errorf("counted %+v, want %v", report, levels)
			}
		})
	}
}

func TestHint(t *testing.T) {
	lease := Leader{Exists: true, Holder: "pod", Renewed: now.Add(-5 * time.Minute), Duration: 15 * time.Second}
	dead := "addon-manager has not renewed its Lease for 5m: nothing on the hub changes until it runs; see 'kubectl addon check'"
	for name, of := range map[string]struct {
		change func(*Leader)
		want   string
	}{
		"dead":                       {func(*Leader) {}, dead},
		"not if it was stopped":      {func(l *Leader) { l.Holder = "" }, ""},
		"alive":                      {func(l *Leader) { l.Renewed = now.Add(-10 * time.Second) }, ""},
		"not if there is no Lease":   {func(l *Leader) { l.Exists = false }, ""},
		"not if it was not renewed":  {func(l *Leader) { l.Renewed = time.Time{} }, ""},
		"not if it may not be read":  {func(l *Leader) { l.Problem = errForbidden }, ""},
		"not if the Lease is longer": {func(l *Leader) { l.Duration = time.Hour }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := lease
			of.change(&l)
			if got := Hint(l, now); got != of.want {
				t.Errorf("got %q, want %q", got, of.want)
			}
		})
	}
}

func TestNeededPermissionsAreDistinct(t *testing.T) {
	all := NeededPermissions()
	for i, one := range all {
		if slices.Contains(all[i+1:], one) {
			t.Errorf("%+v is listed twice", one)
		}
	}
}

// readySource returns the conditions of a PackageSource.
func readySource(status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason}}
}
