package install

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// version returns a minimal OperatorVersion that can run.
func version() *kudo.OperatorVersion {
	return &kudo.OperatorVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: "kafka-1.0.0", UID: "version"},
		Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "kafka"}, Version: "1.0.0",
			Parameters: []kudo.Parameter{{Name: "TEXT"}, {Name: "COUNT", Type: kudo.IntegerType}},
			Tasks:      []kudo.Task{{Name: "nothing", Kind: kudo.TaskDummy, Spec: kudo.TaskSpec{DummyTaskSpec: kudo.DummyTaskSpec{Done: true}}}},
			Plans: map[string]kudo.Plan{kudo.DeployPlan: {Phases: []kudo.Phase{{
				Name: "main", Steps: []kudo.Step{{Name: "main", Tasks: []string{"nothing"}}},
			}}}},
		},
	}
}

// newInstance returns an Instance of it on cluster1.
func newInstance(name string, change ...func(*kudo.Instance)) *kudo.Instance {
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cluster1", Name: name, UID: "instance", Generation: 7, CreationTimestamp: at(10),
	}}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: "kafka-1.0.0"}
	for _, c := range change {
		c(instance)
	}
	return instance
}

func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
}

func createdAt(minute int) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.CreationTimestamp = at(minute) }
}

func installedIn(namespace string) func(*kudo.Instance) {
	return func(i *kudo.Instance) { i.Spec.InstallNamespace = namespace }
}

// asStarted records the parameters with which the Instance was last started.
func asStarted(parameters map[string]string, i *kudo.Instance) *kudo.Instance {
	i.Status.Execution = &kudo.Execution{UID: "x", Plan: kudo.DeployPlan, Parameters: parameters}
	return i
}

// childOf returns a child of Instance shop, of the OperatorVersion with that uid.
func childOf(name string, uid types.UID, change ...func(*kudo.Instance)) *kudo.Instance {
	child := newInstance("shop."+name, change...)
	child.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "shop", UID: "shop", Controller: new(true),
	}}
	child.Spec.OperatorVersion.UID = uid
	return child
}

// parentOf returns the tree of version with one child.
func parentOf(operator string) *tree.Node {
	task := kudo.Task{Name: "child", Kind: kudo.TaskKudoOperator}
	task.Spec.Package = operator
	return &tree.Node{Version: version(), Children: []tree.Child{{Task: task, Node: &tree.Node{Version: version()}}}}
}

func TestJudgeRequiresContent(t *testing.T) {
	listed := content.List("large.yaml", make([]byte, 5*content.PartBytes))
	input := Instance{Instance: newInstance("shop"), Version: version(), PackagesNamespace: packages}
	for part := range listed.Parts {
		input.Incomplete = append(input.Incomplete, &content.Error{Namespace: packages, File: listed, Part: part})
	}
	input.Incomplete[1].Found = content.DigestOf(nil)
	const of = `of 5 (PART) of file "large.yaml" (FILE) of the package is `
	want := `the content of OperatorVersion addon-packages/kafka-1.0.0 is incomplete; push the same package again ` +
		`(kubectl addon package push DIR -n addon-packages): part 1 ` + of + `missing in namespace "addon-packages"; ` +
		`part 2 ` + of + `altered in namespace "addon-packages": it is ` + content.DigestOf(nil) + `; ` +
		`part 3 ` + of + `missing in namespace "addon-packages"; and 2 more parts`
	want = strings.NewReplacer("PART", listed.Parts[0], "FILE", listed.Digest).Replace(want)
	got := Judge(input)
	if diff := cmp.Diff(want, got.Message); diff != "" || got.Reason != kudo.ReasonContentIncomplete || got.Status != metav1.ConditionFalse {
		t.Errorf("%s, %s: %s", got.Status, got.Reason, diff)
	}
	input.Instance = childOf("kafka", "another")
	if got := Judge(input); got.Reason != kudo.ReasonOperatorVersionNotFound || strings.Contains(got.Message, "content") {
		t.Errorf("of a replaced version: %s: %s", got.Reason, got.Message)
	}
}

// TestJudgeRequiresSignatures checks the messages about packages that are not signed: each says what to do.
func TestJudgeRequiresSignatures(t *testing.T) {
	unsigned := UnsignedVersion{
		Name: types.NamespacedName{Namespace: packages, Name: "kafka-1.0.0"}, Reason: "it has no signature",
		Keys: types.NamespacedName{Namespace: "tandem-system", Name: "keys"},
	}
	of := func(problem string, hasKeys bool) UnsignedVersion {
		unsigned.KeysProblem, unsigned.HasKeys = problem, hasKeys
		return unsigned
	}
	const begin, end = "the hub runs only packages that are signed with a key or by an identity in ConfigMap tandem-system/keys", ": OperatorVersion addon-packages/kafka-1.0.0: it has no signature"
	const sign = "; sign the package and push it again (kubectl addon package push DIR -n addon-packages --sign-key FILE)"
	for sentence, test := range map[string]struct {
		unsigned []UnsignedVersion
		want     string
	}{
		"keys":    {[]UnsignedVersion{of("", true)}, begin + sign + end},
		"a typo":  {[]UnsignedVersion{of("a.pub contains no public key", true)}, begin + " (a.pub contains no public key)" + sign + end},
		"no keys": {[]UnsignedVersion{of("it does not exist", false)}, begin + " (it does not exist); store the public keys of the signers in it (kubectl create configmap keys -n tandem-system --from-file=cosign.pub --dry-run=client -o yaml | kubectl apply -f -)" + end},
		"signed without a key": {[]UnsignedVersion{{
			Name: unsigned.Name, Keys: unsigned.Keys, HasKeys: true, IsKeyless: true, Reason: unsigned.Reason,
		}}, begin + sign + ", or trust the identity that signed it (entries trusted_root.json and identities.yaml of the ConfigMap)" + end},
		"many":   {slices.Repeat([]UnsignedVersion{of("", true)}, 5), begin + sign + strings.Repeat(end+";", 1)},
		"signed": {nil, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := Judge(Instance{Instance: newInstance("shop"), Version: version(), PackagesNamespace: packages, Unsigned: test.unsigned})
			if (got.Reason == kudo.ReasonOperatorVersionNotSigned) != (test.want != "") || !strings.HasPrefix(got.Message, test.want) {
				t.Errorf("got %s: %s\nwant %s", got.Reason, got.Message, test.want)
			}
			if len(test.unsigned) > maxUnsigned && !strings.HasSuffix(got.Message, "and 2 more OperatorVersions") {
				t.Errorf("got %s", got.Message)
			}
		})
	}
}

func TestJudgeOutsideOfManagedClusters(t *testing.T) {
	got := Judge(Instance{Instance: newInstance("kafka", func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "secret" }), Unmanaged: true})
	want := metav1.Condition{
		Type: "Resolved", Status: "False", Reason: "ManagedClusterNotFound", ObservedGeneration: 7,
		Message: `ManagedCluster "cluster1" does not exist or is being deleted: create the Instance in the namespace of a managed cluster`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Resolved (-want +got):\n%s", diff)
	}
}

func TestJudge(t *testing.T) {
	broken := version()
	broken.Spec.Plans[kudo.DeployPlan].Phases[0].Steps[0].Tasks[0] = "missing"
	given := func(parameters map[string]string) func(*kudo.Instance) {
		return func(i *kudo.Instance) { i.Spec.Parameters = parameters }
	}
	upgrade := version()
	upgrade.UID, upgrade.Spec.Plans = "upgrade", map[string]kudo.Plan{kudo.UpgradePlan: version().Spec.Plans[kudo.DeployPlan]}
	useless := version()
	useless.UID, useless.Spec.Plans = "useless", map[string]kudo.Plan{"backup": version().Spec.Plans[kudo.DeployPlan]}
	whole := func(i *kudo.Instance) {
		asStarted(nil, i).Status.Execution.OperatorVersion.UID = "version"
		i.Status.Whole = &kudo.WholeVersion{OperatorVersion: i.Status.Execution.OperatorVersion}
	}
	upgraded := func(i *kudo.Instance) {
		i.Status.Execution = &kudo.Execution{UID: "x", Plan: kudo.UpgradePlan, OperatorVersion: corev1.ObjectReference{
			Namespace: upgrade.Namespace, Name: upgrade.Name, UID: upgrade.UID,
		}}
		i.Status.Whole = &kudo.WholeVersion{OperatorVersion: i.Status.Execution.OperatorVersion}
	}
	for name, tc := range map[string]struct {
		instance  *kudo.Instance
		version   *kudo.OperatorVersion
		started   *kudo.OperatorVersion // defaults to version
		others    []kudo.Instance
		tree      *tree.Node
		treeFault *tree.Error
		reason    string
		mentions  []string // in the message
	}{
		"everything is there and valid": {
			instance: newInstance("kafka"), version: version(), reason: "Resolved", mentions: []string{"OperatorVersion addon-packages/kafka-1.0.0"},
		},
		"it is not in its own way": {
			instance: newInstance("kafka"), version: version(), others: []kudo.Instance{*newInstance("kafka")}, reason: "Resolved",
		},
		"the OperatorVersion is missing": {
			instance: newInstance("kafka"), reason: "OperatorVersionNotFound",
			mentions: []string{"addon-packages/kafka-1.0.0 does not exist", "kubectl addon package push DIR -n addon-packages"},
		},
		"no OperatorVersion is named": {
			instance: newInstance("kafka", func(i *kudo.Instance) { i.Spec.OperatorVersion = corev1.ObjectReference{} }),
			reason:   "OperatorVersionNotFound", mentions: []string{"spec.operatorVersion.name is empty"},
		},
		"without a namespace the OperatorVersion is in the Instance's namespace": {
			instance: newInstance("kafka", func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "" }),
			reason:   "OperatorVersionNotFound", mentions: []string{"OperatorVersion cluster1/kafka-1.0.0 does not exist"},
		},
		"the namespace is one that agents may not read, regardless of its content": {
			instance: newInstance("kafka", func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "cluster2" }), version: version(),
			reason: "NamespaceNotAllowed", mentions: []string{`spec.operatorVersion.namespace is "cluster2"`, packages, "cluster1"},
		},
		"the OperatorVersion cannot be run": {
			instance: newInstance("kafka"), version: broken, reason: "OperatorVersionInvalid", mentions: []string{"missing", "push a corrected version"},
		},
		"plan deploy is missing and has to run": {
			instance: newInstance("kafka"), version: upgrade, reason: "PlanMissing", mentions: []string{
				"OperatorVersion addon-packages/kafka-1.0.0 has no plan deploy, which the first installation runs", "upgrade to this one",
			},
		},
		"plan deploy is missing, and that of the previous version is not complete": {
			instance: newInstance("kafka", func(i *kudo.Instance) { asStarted(nil, i) }), version: upgrade, started: version(), reason: "PlanMissing",
			mentions: []string{"has no plan deploy, which the first installation runs"},
		},
		"plan deploy is missing, and an upgrade does not run it": {
			instance: newInstance("kafka", whole), version: upgrade, started: version(), reason: "Resolved",
		},
		"plan deploy is missing after the upgrade": {instance: newInstance("kafka", upgraded), version: upgrade, started: upgrade, reason: "Resolved"},
		"a parameter changes after the upgrade, and no plan applies it": {
			instance: newInstance("kafka", upgraded, given(map[string]string{"TEXT": "a"})), version: upgrade, started: upgrade, reason: "PlanMissing",
			mentions: []string{"has no plan for this change (deploy)"},
		},
		"every plan of an upgrade is missing": {
			instance: newInstance("kafka", whole), version: useless, started: version(), reason: "OperatorVersionInvalid",
			mentions: []string{"plan deploy is missing"},
		},
		"parameters are wrong, and all of them are named": {
			instance: newInstance("kafka", given(map[string]string{"COUNT": "many", "TYPO": "x"})), version: version(),
			reason: "ParametersInvalid", mentions: []string{"COUNT", "many", "TYPO"},
		},
		"the name is too long": {
			instance: newInstance(strings.Repeat("a", 64)), version: version(), reason: "NameInvalid", mentions: []string{"64 characters", "63"},
		},
		"the name does not make a label once its dots are dashes": {
			instance: newInstance("a_b"), version: version(), reason: "NameInvalid", mentions: []string{"DNS label"},
		},
		"an older Instance has the name": {
			instance: newInstance("a.b", installedIn("x")), version: version(),
			others: []kudo.Instance{*newInstance("a-b", createdAt(9), installedIn("x"))},
			reason: "NameCollision", mentions: []string{"cluster1/a-b", `"a-b"`, `"x"`},
		},
		"of two that are equally old the first by name has it": {
			instance: newInstance("a.b"), version: version(), others: []kudo.Instance{*newInstance("a-b")}, reason: "NameCollision",
		},
		"and the other one keeps it": {
			instance: newInstance("a-b"), version: version(), others: []kudo.Instance{*newInstance("a.b")}, reason: "Resolved",
		},
		"a younger Instance has to give way": {
			instance: newInstance("a.b"), version: version(), others: []kudo.Instance{*newInstance("a-b", createdAt(11))}, reason: "Resolved",
		},
		"a younger Instance that has executed plans keeps the name": {
			instance: asStarted(nil, newInstance("a.b")), version: version(), others: []kudo.Instance{*newInstance("a-b", createdAt(9))}, reason: "Resolved",
		},
		"an older Instance gives way to one that has executed plans": {
			instance: newInstance("a.b"), version: version(), others: []kudo.Instance{*asStarted(nil, newInstance("a-b", createdAt(11)))}, reason: "NameCollision",
		},
		"of two that have executed plans the older one has it": {
			instance: asStarted(nil, newInstance("a.b")), version: version(), others: []kudo.Instance{*asStarted(nil, newInstance("a-b", createdAt(9)))},
			reason: "NameCollision",
		},
		"the name is free in another install namespace": {
			instance: newInstance("a.b", installedIn("x")), version: version(), others: []kudo.Instance{*newInstance("a-b", createdAt(9))},
			reason: "Resolved",
		},
		"an install namespace of the cluster's own name is the same as none": {
			instance: newInstance("a.b", installedIn("cluster1")), version: version(), others: []kudo.Instance{*newInstance("a-b", createdAt(9))},
			reason: "NameCollision",
		},
		"the request names a plan that does not exist": {
			instance: instanceWithRequest("fly", "mine", 7), version: version(), reason: "RequestInvalid",
			mentions: []string{`spec.planExecution.planName is "fly"`, "addon-packages/kafka-1.0.0", "(deploy)", "remove spec.planExecution"},
		},
		"the request names one that does": {instance: instanceWithRequest("deploy", "mine", 7), version: version(), reason: "Resolved"},
		"a request that was handled is inert": {
			instance: instanceWithRequest("fly", "mine", 7, withHandledRequest("mine")), version: version(), reason: "Resolved",
		},
		"a request to cancel asks for no plan": {
			instance: instanceWithRequest("fly", "mine", 7, requestCancel), version: version(), reason: "Resolved",
		},
		"a request that has no uid yet is judged as well": {
			instance: instanceWithRequest("fly", "", 7, func(i *kudo.Instance) { i.Status.Execution = &kudo.Execution{UID: "x"} }),
			version:  version(), reason: "RequestInvalid",
		},
		"an immutable parameter has another value than was started": {
			instance: asStarted(nil, with("FIXED", "huge")), version: strict(), reason: "ParametersInvalid",
			mentions: []string{`parameter "FIXED": immutable, and its current value is "small"`},
		},
		"it has the value that was started": {
			instance: asStarted(map[string]string{"FIXED": "huge"}, with("FIXED", "huge")), version: strict(), reason: "Resolved",
		},
		"it has the default of another version than was started": {
			instance: asStarted(nil, of("kafka-2.0.0", with())), version: later(), started: strict(), reason: "ParametersInvalid",
			mentions: []string{`parameter "FIXED": value "large": immutable, and its current value is "small"`},
		},
		"a child whose name is too long, by the name of the Instance": {
			instance: newInstance(strings.Repeat("a", 60)), version: version(), tree: parentOf("zookeeper"), reason: "ChildrenInvalid",
			mentions: []string{"70 characters", "the Instance a shorter name"},
		},
		"a child whose name fits": {
			instance: newInstance(strings.Repeat("a", 53)), version: version(), tree: parentOf("zookeeper"), reason: "Resolved",
		},
		"a child whose OperatorVersion was replaced since its parent has chosen it": {
			instance: childOf("kafka", "before", given(map[string]string{"TYPO": "x"})), version: version(), reason: "OperatorVersionNotFound",
			treeFault: &tree.Error{Problems: []tree.Problem{{Reason: "CircularOperators", Message: "round"}}},
			mentions:  []string{`OperatorVersion addon-packages/kafka-1.0.0 was replaced: run a plan of Instance "shop" to use the new one`},
		},
		"a child whose OperatorVersion its parent has chosen": {
			instance: childOf("kafka", version().UID), version: version(), reason: "Resolved",
		},
		"a child of an earlier release, without a uid": {instance: childOf("kafka", ""), version: version(), reason: "Resolved"},
		"an Instance of a user that has any uid": {
			instance: newInstance("kafka", func(i *kudo.Instance) { i.Spec.OperatorVersion.UID = "before" }), version: version(), reason: "Resolved",
		},
		"a tree that is not complete": {
			instance: newInstance("kafka"), version: version(),
			treeFault: &tree.Error{Problems: []tree.Problem{{Reason: "CircularOperators", Message: "round"}, {Reason: "x", Message: "and round"}}},
			reason:    "CircularOperators", mentions: []string{"round\nand round"},
		},
		"everything that is wrong is named, the first gives the reason": {
			instance: newInstance(strings.Repeat("a", 64)), reason: "NameInvalid", mentions: []string{"64 characters", "does not exist"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := Instance{Instance: tc.instance, Version: tc.version, Instances: tc.others, PackagesNamespace: packages, Started: tc.started,
				Tree: tc.tree, TreeProblem: tc.treeFault}
			if tc.version != nil {
				input.VersionProblems = pack.Errors(pack.Check(&tc.version.Spec))
			}
			before := tc.instance.DeepCopy()
			got := Judge(input)
			wantStatus := metav1.ConditionFalse
			if tc.reason == "Resolved" {
				wantStatus = metav1.ConditionTrue
			}
			if got.Type != "Resolved" || got.Status != wantStatus || got.Reason != tc.reason || got.ObservedGeneration != 7 {
				t.Errorf("got %+v, want %s with reason %s at generation 7", got, wantStatus, tc.reason)
			}
			for _, text := range tc.mentions {
				if !strings.Contains(got.Message, text) {
					t.Errorf("message %q does not mention %q", got.Message, text)
				}
			}
			if diff := cmp.Diff(before, tc.instance); diff != "" {
				t.Errorf("input was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAConditionOfAnEarlierOperatorVersionIsStale(t *testing.T) {
	created := at(5)
	state := Instance{Version: &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: created}}}
	for what, test := range map[string]struct {
		state    Instance
		resolved *metav1.Condition
		want     bool
	}{
		"resolved before the OperatorVersion was created": {state, &metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: at(4)}, true},
		"resolved in the same second":                     {state, &metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: at(5)}, false},
		"resolved after it was created":                   {state, &metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: at(6)}, false},
		"not resolved":                                    {state, &metav1.Condition{Status: metav1.ConditionFalse, LastTransitionTime: at(4)}, false},
		"not judged":                                      {state, nil, false},
		"no OperatorVersion":                              {Instance{}, &metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: at(4)}, false},
	} {
		if got := test.state.IsStale(test.resolved); got != test.want {
			t.Errorf("%s: want %t, got %t", what, test.want, got)
		}
	}
	for what, test := range map[string]struct{ now, want metav1.Time }{
		"the clock of the API server is ahead": {at(4), created}, "it is not": {at(6), at(6)},
	} {
		again := &metav1.Condition{Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(state.ResolvedAt(test.now.Time))}
		if !again.LastTransitionTime.Equal(&test.want) || state.IsStale(again) {
			t.Errorf("%s: resolved at %s, and again afterwards: %t", what, again.LastTransitionTime, state.IsStale(again))
		}
	}
}
