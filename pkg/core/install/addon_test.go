package install

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// addOn returns an add-on that can be installed: version 1.0.0, the given AddOnDeploymentConfigs, no dependencies.
func addOn(configs ...*addonv1alpha1.AddOnDeploymentConfig) AddOn {
	a := AddOn{
		Definition:        newDefinition(nil, nil),
		ManagedAddOn:      newAddOn(),
		Configuration:     Configuration{OperatorVersion: types.NamespacedName{Namespace: packages, Name: "kafka-1.0.0"}},
		Version:           version(),
		DeploymentConfigs: map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{},
	}
	a.ManagedAddOn.Spec.InstallNamespace = "default-namespace"
	for _, c := range configs {
		key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
		a.Configuration.DeploymentConfigs = append(a.Configuration.DeploymentConfigs, key)
		a.DeploymentConfigs[key] = c
	}
	return a
}

// withConfigMaps adds ConfigMaps in the cluster's namespace, in that order.
func (a AddOn) withConfigMaps(configs ...*corev1.ConfigMap) AddOn {
	a.ConfigMaps = map[types.NamespacedName]*corev1.ConfigMap{}
	for _, c := range configs {
		key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
		a.Configuration.ConfigMaps = append(a.Configuration.ConfigMaps, key)
		a.ConfigMaps[key] = c
	}
	return a
}

// configMap returns a labelled ConfigMap.
func configMap(name string, pairs ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name, Labels: map[string]string{kudo.LabelConfiguration: "true"}},
		Data:       map[string]string{},
	}
	for at := 0; at < len(pairs); at += 2 {
		c.Data[pairs[at]] = pairs[at+1]
	}
	return c
}

func (a AddOn) with(change func(*AddOn)) AddOn { change(&a); return a }

func variables(name, namespace string, pairs ...string) *addonv1alpha1.AddOnDeploymentConfig {
	c := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: name}}
	c.Spec.AgentInstallNamespace = namespace
	for at := 0; at < len(pairs); at += 2 {
		c.Spec.CustomizedVariables = append(c.Spec.CustomizedVariables, upstream.CustomizedVariable{Name: pairs[at], Value: pairs[at+1]})
	}
	return c
}

// own returns the add-on's Instance as created, judged with a reason ("" if not judged yet) at a generation.
func own(reason string, generation int64, change ...func(*kudo.Instance)) kudo.Instance {
	instance := newInstance("kafka", installedIn("default-namespace"))
	instance.OwnerReferences = []metav1.OwnerReference{{UID: "add-on", Controller: ptrTo(true)}}
	if reason != "" {
		status := metav1.ConditionFalse
		if reason == "Resolved" {
			status = metav1.ConditionTrue
		}
		instance.Status.Conditions = []metav1.Condition{{
			Type: "Resolved", Status: status, Reason: reason, Message: "said of the Instance", ObservedGeneration: generation,
		}}
	}
	for _, c := range change {
		c(instance)
	}
	return *instance
}

func ptrTo[T any](value T) *T { return &value }

func unmet(t addonv1alpha1.DependencyType) dependency.Verdict {
	return dependency.Verdict{{Name: "zookeeper", By: "zookeeper", Type: t, Cause: dependency.NotInstalled}}
}

// wanted holds the expected version, parameters and namespace of an Instance.
type wanted struct {
	Parameters map[string]string
	Namespace  string
}

func TestDecide(t *testing.T) {
	fresh := &wanted{Parameters: map[string]string{}, Namespace: "default-namespace"}

	for name, tc := range map[string]struct {
		addOn    AddOn
		instance *wanted // nil: left unchanged
		reason   string  // of Resolved; "" if left unchanged
		mentions []string
	}{
		"a new add-on gets an Instance, and nothing is said until that is judged": {addOn: addOn(), instance: fresh},
		"later variables win": {
			addOn:    addOn(variables("a", "", "TEXT", "one", "COUNT", "1"), variables("b", "", "TEXT", "two")),
			instance: &wanted{map[string]string{"TEXT": "two", "COUNT": "1"}, "default-namespace"},
		},
		"the last install namespace of the AddOnDeploymentConfigs wins over the add-on's": {
			addOn:    addOn(variables("a", "first"), variables("b", "second"), variables("c", "")),
			instance: &wanted{map[string]string{}, "second"},
		},
		"OCM's default names none beside an earlier AddOnDeploymentConfig that does": {
			addOn:    addOn(variables("a", "first"), variables("b", DefaultInstallNamespace)),
			instance: &wanted{map[string]string{}, "first"},
		},
		"nor beside the add-on's install namespace": {
			addOn:    addOn(variables("a", DefaultInstallNamespace)),
			instance: &wanted{map[string]string{}, "default-namespace"},
		},
		"OCM's default on the add-on gives way to what an AddOnDeploymentConfig names": {
			addOn: addOn(variables("a", "first")).with(func(a *AddOn) {
				a.ManagedAddOn.Spec.InstallNamespace = DefaultInstallNamespace
			}),
			instance: &wanted{map[string]string{}, "first"},
		},
		"OCM's default holds where nothing else is named": {
			addOn:    addOn(variables("a", DefaultInstallNamespace)).with(func(a *AddOn) { a.ManagedAddOn.Spec.InstallNamespace = "" }),
			instance: &wanted{map[string]string{}, DefaultInstallNamespace},
		},
		"an existing Instance keeps its install namespace": {
			addOn: addOn(variables("a", "moved")).with(func(a *AddOn) {
				a.Instances = []kudo.Instance{own("Resolved", 7, installedIn("old"))}
			}),
			instance: &wanted{map[string]string{}, "old"}, reason: "Resolved",
			mentions: []string{`stays in namespace "old"`, `to move it to "moved"`},
		},
		"undefined variables that are close to no parameter are ignored, and named once the Instance is judged": {
			addOn: addOn(variables("a", "", "TYPO", "x", "TEXT", "one", "ALSO", "y")).with(func(a *AddOn) {
				a.Instances = []kudo.Instance{own("Resolved", 7, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"TEXT": "one"} })}
			}),
			instance: &wanted{map[string]string{"TEXT": "one"}, "default-namespace"},
			reason:   "Resolved", mentions: []string{"said of the Instance\nvariables that OperatorVersion " +
				`"kafka-1.0.0" does not define are ignored: ALSO, TYPO`},
		},
		"a misspelt parameter starts nothing": {
			addOn:  addOn(variables("a", "", "COUNTS", "3", "TEXT", "one")),
			reason: "ConfigurationInvalid", mentions: []string{
				`AddOnDeploymentConfig cluster1/a sets variable COUNTS, which OperatorVersion "kafka-1.0.0" does not define: did you mean COUNT? ` +
					"Correct or remove the variable"},
		},
		"a misspelt parameter leaves the Instance unchanged, and what is ignored is named too": {
			addOn: addOn(variables("a", "", "COUNTS", "3", "TYPO", "x")).with(func(a *AddOn) {
				a.Instances = []kudo.Instance{own("Resolved", 7)}
			}),
			reason: "ConfigurationInvalid", mentions: []string{"did you mean COUNT?", "are ignored: TYPO"},
		},
		"a variable that is close to a parameter that is set is ignored": {
			addOn:    addOn(variables("a", "", "COUNTS", "3"), variables("b", "", "COUNT", "4")),
			instance: &wanted{map[string]string{"COUNT": "4"}, "default-namespace"},
		},
		"a variable that serves another purpose is ignored": {
			addOn:    addOn(variables("a", "", "COUNTS", "3")).with(func(a *AddOn) { a.DefinedElsewhere = map[string]bool{"COUNTS": true} }),
			instance: fresh,
		},
		"a misspelt parameter of a change that is not rolled out yet waits": {
			addOn: addOn(variables("a", "", "COUNTS", "3")).with(func(a *AddOn) {
				a.Configuration.Hashes = map[Reference]string{{deploymentConfigs.Resource, types.NamespacedName{Namespace: "cluster1", Name: "a"}}: "before"}
			}),
			reason: "WaitingForConfiguration",
		},
		"ConfigMaps win over variables, and later ones over earlier ones": {
			addOn: addOn(variables("a", "", "TEXT", "variable", "COUNT", "1")).withConfigMaps(
				configMap("one", "TEXT", "first"), configMap("two", "TEXT", strings.Repeat("long ", 10000))),
			instance: &wanted{map[string]string{"TEXT": strings.Repeat("long ", 10000), "COUNT": "1"}, "default-namespace"},
		},
		"a ConfigMap that does not exist is named": {
			addOn:  addOn().withConfigMaps(configMap("one")).with(func(a *AddOn) { clear(a.ConfigMaps) }),
			reason: "ConfigurationNotFound", mentions: []string{"ConfigMap cluster1/one does not exist, or has no label kudo.dev/configuration=true"},
		},
		"a ConfigMap without the label counts as missing": {
			addOn:  addOn().withConfigMaps(configMap("one", "TEXT", "a")).with(func(a *AddOn) { a.ConfigMaps[types.NamespacedName{Namespace: "cluster1", Name: "one"}].Labels = nil }),
			reason: "ConfigurationNotFound", mentions: []string{"has no label kudo.dev/configuration=true"},
		},
		"binary values of a ConfigMap are invalid": {
			addOn: addOn().withConfigMaps(configMap("one")).with(func(a *AddOn) {
				a.ConfigMaps[types.NamespacedName{Namespace: "cluster1", Name: "one"}].BinaryData = map[string][]byte{"TEXT": {0}}
			}),
			reason: "ConfigurationInvalid", mentions: []string{"ConfigMap cluster1/one has binary values (TEXT)"},
		},
		"a misspelt key of a ConfigMap starts nothing": {
			addOn:  addOn().withConfigMaps(configMap("one", "COUNTS", "3")),
			reason: "ConfigurationInvalid", mentions: []string{"ConfigMap cluster1/one sets variable COUNTS", "did you mean COUNT?"},
		},
		"parameters beyond what an Instance can hold start nothing": {
			addOn:  addOn().withConfigMaps(configMap("one", "TEXT", strings.Repeat("x", 600<<10))),
			reason: "ConfigurationInvalid", mentions: []string{"the parameters have 614404 bytes, and an Instance holds at most 524288"},
		},
		"a ConfigMap with another content than a rollout has reached waits": {
			addOn: addOn().withConfigMaps(configMap("one", "TEXT", "a")).with(func(a *AddOn) {
				a.Configuration.Hashes = map[Reference]string{{configMaps.Resource, types.NamespacedName{Namespace: "cluster1", Name: "one"}}: "before"}
			}),
			reason: "WaitingForConfiguration", mentions: []string{"ConfigMap cluster1/one has changed"},
		},
		"another install namespace than that of the Instance is named": {
			addOn: addOn().with(func(a *AddOn) {
				a.ManagedAddOn.Spec.InstallNamespace = "elsewhere"
				a.Instances = []kudo.Instance{own("Resolved", 7)}
			}),
			instance: fresh, reason: "Resolved", mentions: []string{"\nthe add-on stays in namespace \"default-namespace\" of the managed cluster: " +
				"to move it to \"elsewhere\", disable it, and enable it again after its removal"},
		},
		"a missing OperatorVersion and a missing AddOnDeploymentConfig are both named": {
			addOn: addOn(variables("a", "")).with(func(a *AddOn) {
				a.Version, a.DeploymentConfigs = nil, nil
			}),
			reason: "OperatorVersionNotFound", mentions: []string{"addon-packages/kafka-1.0.0", "cluster1/a does not exist"},
		},
		"an unusable configuration does not change an existing Instance": {
			addOn: addOn().with(func(a *AddOn) {
				a.Configuration = Configuration{Problems: []Problem{{"WaitingForConfiguration", "OCM is at it"}}}
				a.Version, a.Instances = nil, []kudo.Instance{own("Resolved", 7)}
			}),
			reason: "WaitingForConfiguration", mentions: []string{"OCM is at it"},
		},
		"a namespace that is no managed cluster's": {
			addOn:  addOn().with(func(a *AddOn) { a.Unmanaged = true }),
			reason: "ManagedClusterNotFound", mentions: []string{`"cluster1"`},
		},
		"a name that no Instance can have": {
			addOn:  addOn().with(func(a *AddOn) { a.ManagedAddOn.Name = strings.Repeat("a", 64) }),
			reason: "NameInvalid",
		},
		"an Instance of another owner is not taken over": {
			addOn:  addOn().with(func(a *AddOn) { a.Instances = []kudo.Instance{*newInstance("kafka")} }),
			reason: "NameCollision", mentions: []string{"cluster1/kafka"},
		},
		"an Instance of a previous add-on of the same name has another owner": {
			addOn: addOn().with(func(a *AddOn) {
				a.Instances = []kudo.Instance{own("Resolved", 7, func(i *kudo.Instance) { i.OwnerReferences[0].UID = "former" })}
			}),
			reason: "NameCollision",
		},
		"a name that is taken once dots are dashes is not even tried": {
			addOn: addOn().with(func(a *AddOn) {
				a.ManagedAddOn.Name = "a.b"
				a.Instances = []kudo.Instance{*newInstance("a-b", installedIn("default-namespace"), createdAt(50))}
			}),
			reason: "NameCollision",
		},
		"an Instance on its way out is left alone": {
			addOn: addOn().with(func(a *AddOn) {
				a.Instances = []kudo.Instance{own("Resolved", 7, func(i *kudo.Instance) { i.DeletionTimestamp = ptrTo(at(20)) })}
			}),
		},

		"gate: an unmet Required dependency holds the first install": {
			addOn:  addOn().with(func(a *AddOn) { a.Dependencies = unmet("Required") }),
			reason: "WaitingForDependencies", mentions: []string{"available on the cluster: zookeeper"},
		},
		"gate: so does one that is held, whatever it was": {
			addOn: addOn().with(func(a *AddOn) {
				a.Dependencies = dependency.Verdict{{Name: "zookeeper", By: "zookeeper", Type: "Required", Satisfied: true, Held: true}}
			}),
			reason: "WaitingForDependencies", mentions: []string{"available on the cluster: zookeeper"},
		},
		"gate: so does one that a plan updates": {
			addOn: addOn().with(func(a *AddOn) {
				a.Dependencies = dependency.Verdict{{Name: "zookeeper", By: "zookeeper", Type: "Required", Satisfied: true, Updating: true}}
			}),
			reason: "WaitingForDependencies", mentions: []string{"available on the cluster: zookeeper (a plan updates it)"},
		},
		"gate: an Optional one does not": {
			addOn: addOn().with(func(a *AddOn) { a.Dependencies = unmet("Optional") }), instance: fresh,
		},
		"gate: a malformed declaration does": {
			addOn:  addOn().with(func(a *AddOn) { a.DependencyProblem = errors.New("no JSON") }),
			reason: "WaitingForDependencies", mentions: []string{"no JSON"},
		},
		"gate: undefined variables are named beside it": {
			addOn:  addOn(variables("a", "", "TYPO", "x")).with(func(a *AddOn) { a.Dependencies = unmet("Required") }),
			reason: "WaitingForDependencies", mentions: []string{"zookeeper", "TYPO"},
		},
		"gate: a misspelt parameter comes first": {
			addOn:  addOn(variables("a", "", "COUNTS", "x")).with(func(a *AddOn) { a.Dependencies = unmet("Required") }),
			reason: "ConfigurationInvalid", mentions: []string{"COUNTS", "zookeeper"},
		},
		"gate: an update passes it": {
			addOn: addOn(variables("a", "", "TEXT", "new")).with(func(a *AddOn) {
				a.Dependencies, a.Instances = unmet("Required"), []kudo.Instance{own("Resolved", 7)}
			}),
			instance: &wanted{map[string]string{"TEXT": "new"}, "default-namespace"},
		},

		"follow: the Instance's True": {
			addOn:    addOn().with(func(a *AddOn) { a.Instances = []kudo.Instance{own("Resolved", 7)} }),
			instance: fresh, reason: "Resolved", mentions: []string{"said of the Instance"},
		},
		"follow: the Instance's problem": {
			addOn:    addOn().with(func(a *AddOn) { a.Instances = []kudo.Instance{own("OperatorVersionInvalid", 7)} }),
			instance: fresh, reason: "OperatorVersionInvalid", mentions: []string{"said of the Instance"},
		},
		"follow: not the word over another generation": {
			addOn:    addOn().with(func(a *AddOn) { a.Instances = []kudo.Instance{own("Resolved", 6)} }),
			instance: fresh,
		},
		"follow: the problem comes before undefined variables, and both are named": {
			addOn: addOn(variables("a", "", "TYPO", "x")).with(func(a *AddOn) {
				a.Instances = []kudo.Instance{own("NameCollision", 7)}
			}),
			instance: fresh, reason: "NameCollision", mentions: []string{"said of the Instance", "TYPO"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(tc.addOn)
			checkInstance(t, tc.instance, got.Instance)
			if got.Resolved == nil {
				if tc.reason != "" {
					t.Fatalf("condition Resolved is left alone, want reason %s", tc.reason)
				}
				return
			}
			if got.Resolved.Reason != tc.reason || got.Resolved.ObservedGeneration != 3 ||
				(got.Resolved.Status == metav1.ConditionTrue) != (tc.reason == "Resolved") {
				t.Errorf("got %+v, want reason %q at generation 3", got.Resolved, tc.reason)
			}
			for _, text := range tc.mentions {
				if !strings.Contains(got.Resolved.Message, text) {
					t.Errorf("message %q does not mention %q", got.Resolved.Message, text)
				}
			}
		})
	}
}

// checkInstance checks the owner and the spec of the Instance, if one is expected.
func checkInstance(t *testing.T, want *wanted, got *kudo.Instance) {
	t.Helper()
	if (want == nil) != (got == nil) {
		t.Fatalf("got Instance %+v, want %+v", got, want)
	}
	if got == nil {
		return
	}
	if diff := cmp.Diff(*want, wanted{got.Spec.Parameters, got.Spec.InstallNamespace}); diff != "" {
		t.Errorf("Instance (-want +got):\n%s", diff)
	}
	owner := metav1.GetControllerOf(got)
	if owner == nil || owner.UID != "add-on" || owner.Kind != "ManagedClusterAddOn" || got.Spec.OperatorVersion.Name != "kafka-1.0.0" {
		t.Errorf("got Instance %+v, want one of kafka-1.0.0 that the add-on controls", got)
	}
}

func TestDecideAboutAnAddOnThatDoesNotRunByPlans(t *testing.T) {
	judged := func(a *AddOn) {
		a.ManagedAddOn.Status.Conditions = []metav1.Condition{{Type: "Resolved", Status: metav1.ConditionTrue, Reason: "Resolved"}}
	}
	existing := func(i kudo.Instance) func(*AddOn) {
		return func(a *AddOn) { a.Instances = []kudo.Instance{i} }
	}
	for name, tc := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		changes    []func(*AddOn)
		release    bool
		reason     string // of Resolved; "" if left unchanged
	}{
		"it never did: it is left alone": {definition: supportingOther()},
		"it never had a definition":      {},
		"it has an Instance, which stays": {
			definition: supportingOther(), changes: []func(*AddOn){judged, existing(own("Resolved", 7))}, reason: "ConfigurationInvalid",
		},
		"its definition is gone, and its Instance stays": {
			changes: []func(*AddOn){judged, existing(own("Resolved", 7))}, reason: "ConfigurationInvalid",
		},
		"it was waiting to be installed": {
			definition: supportingOther(), changes: []func(*AddOn){judged}, release: true,
		},
		"its definition is gone, and it was never installed": {changes: []func(*AddOn){judged}, release: true},
		"an Instance of its name has another owner": {
			definition: supportingOther(), changes: []func(*AddOn){judged, existing(*newInstance("kafka"))}, release: true,
		},
		"its Instance is on its way out": {
			changes: []func(*AddOn){judged, existing(own("Resolved", 7, func(i *kudo.Instance) { i.DeletionTimestamp = ptrTo(at(20)) }))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			input := addOn()
			input.Definition = tc.definition
			for _, change := range tc.changes {
				change(&input)
			}
			got := Decide(input)
			if got.Instance != nil || got.Release != tc.release {
				t.Errorf("got %+v, want no Instance and release %v", got, tc.release)
			}
			reason := ""
			if got.Resolved != nil {
				reason = got.Resolved.Reason
			}
			if reason != tc.reason {
				t.Errorf("got reason %q, want %q", reason, tc.reason)
			}
		})
	}
}

func TestWithRejection(t *testing.T) {
	for name, tc := range map[string]struct {
		addOn    AddOn
		mentions []string
	}{
		"a new Instance is refused": {addOn(), []string{"rejected the add-on's Instance: no such luck"}},
		"undefined variables are named beside the refusal": {
			addOn(variables("a", "", "TYPO", "x")), []string{"no such luck\n", "TYPO"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := Decide(tc.addOn)
			got := before.WithRejection(tc.addOn.ManagedAddOn, errors.New("no such luck"))
			if got.Resolved.Reason != "InstanceRefused" || got.Resolved.Status != metav1.ConditionFalse || got.Resolved.ObservedGeneration != 3 {
				t.Errorf("got %+v, want False with reason InstanceRefused at generation 3", got.Resolved)
			}
			for _, text := range tc.mentions {
				if !strings.Contains(got.Resolved.Message, text) {
					t.Errorf("message %q does not mention %q", got.Resolved.Message, text)
				}
			}
			if diff := cmp.Diff(Decide(tc.addOn), before); diff != "" {
				t.Errorf("the decision was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestTheGateSaysTheSameWhateverKeepsADependencyAway(t *testing.T) {
	messages := map[string]bool{}
	for _, cause := range []dependency.Cause{dependency.NoSuchAddOn, dependency.NotInstalled, dependency.NotAvailable, dependency.Unknown} {
		messages[Decide(addOn().with(func(a *AddOn) {
			a.Dependencies = dependency.Verdict{{Name: "zookeeper", By: "zookeeper", Type: "Required", Cause: cause}}
		})).Resolved.Message] = true
	}
	if len(messages) != 1 {
		t.Errorf("the message flaps: %v", messages)
	}
}

func TestMatches(t *testing.T) {
	want := own("", 0, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"TEXT": "a"} })
	for name, tc := range map[string]struct {
		change func(*kudo.Instance)
		want   bool
	}{
		"nothing differs":                         {func(*kudo.Instance) {}, true},
		"fields that others write do not matter":  {func(i *kudo.Instance) { i.Spec.PlanExecution.PlanName = "x"; i.Spec.OperatorVersion.Kind = "y" }, true},
		"another version does":                    {func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "x" }, false},
		"another namespace of the version does":   {func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "x" }, false},
		"another value does":                      {func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"TEXT": "b"} }, false},
		"a missing value does":                    {func(i *kudo.Instance) { i.Spec.Parameters = nil }, false},
		"a missing owner does":                    {func(i *kudo.Instance) { i.OwnerReferences = nil }, false},
		"an install namespace that is unset does": {func(i *kudo.Instance) { i.Spec.InstallNamespace = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			current := want.DeepCopy()
			tc.change(current)
			if got := Matches(current, &want); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
