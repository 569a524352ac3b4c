package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
)

// strict returns a version with a parameter for every kind of rule.
func strict() *kudo.OperatorVersion {
	v := version()
	v.Spec.Parameters = []kudo.Parameter{
		{Name: "TEXT"}, {Name: "COUNT", Type: kudo.IntegerType},
		{Name: "COLOUR", Enum: []string{"red", "blue"}},
		{Name: "NEEDED", Required: new(true)},
		{Name: "FIXED", Default: new("small"), Immutable: new(true)},
		{Name: "SCALE", Trigger: "scale"}, {Name: "SCALE_TO", Trigger: "scale"},
		{Name: "BACKUP", Trigger: "backup"},
	}
	for _, name := range []string{"scale", "backup"} {
		v.Spec.Plans[name] = v.Spec.Plans[kudo.DeployPlan]
	}
	return v
}

// later returns a version with another default for FIXED, and without BACKUP and its plan.
func later() *kudo.OperatorVersion {
	v := strict()
	v.Name = "kafka-2.0.0"
	delete(v.Spec.Plans, "backup")
	v.Spec.Parameters[4].Default = new("large")
	v.Spec.Parameters = v.Spec.Parameters[:7]
	return v
}

// versionWithoutFixed returns a version without FIXED.
func versionWithoutFixed() *kudo.OperatorVersion {
	v := later()
	v.Name = "kafka-3.0.0"
	v.Spec.Parameters = v.Spec.Parameters[:4]
	return v
}

// versionWithoutDeploy returns a version without plan deploy.
func versionWithoutDeploy() *kudo.OperatorVersion {
	v := strict()
	v.Name, v.UID = "kafka-4.0.0", "upgrading"
	v.Spec.Plans[kudo.UpgradePlan] = v.Spec.Plans[kudo.DeployPlan]
	delete(v.Spec.Plans, kudo.DeployPlan)
	return v
}

// versions are the existing versions.
var versions = []*kudo.OperatorVersion{strict(), later(), versionWithoutFixed(), versionWithoutDeploy()}

// with returns a running Instance of strict with parameters NAME, VALUE, NAME, VALUE.
func with(pairs ...string) *kudo.Instance {
	return newInstance("kafka", func(i *kudo.Instance) {
		i.Spec.Parameters = map[string]string{"NEEDED": "x"}
		for at := 0; at < len(pairs); at += 2 {
			i.Spec.Parameters[pairs[at]] = pairs[at+1]
		}
	})
}

func of(version string, i *kudo.Instance) *kudo.Instance {
	i.Spec.OperatorVersion.Name = version
	return i
}

func without(name string, i *kudo.Instance) *kudo.Instance {
	delete(i.Spec.Parameters, name)
	return i
}

func asks(request kudo.PlanExecution, i *kudo.Instance) *kudo.Instance {
	i.Spec.PlanExecution = request
	return i
}

// withExecution returns the Instance of with, after plan deploy was started and reached that status.
func withExecution(uid types.UID, status kudo.ExecutionStatus, pairs ...string) *kudo.Instance {
	i := with(pairs...)
	i.Status.Execution = &kudo.Execution{
		UID: uid, Plan: kudo.DeployPlan, Parameters: with().Spec.Parameters, OperatorVersion: i.Spec.OperatorVersion,
	}
	i.Status.PlanStatus = map[string]kudo.PlanStatus{kudo.DeployPlan: {UID: uid, Status: status}}
	return i
}

// asOwned makes an add-on the owner of the Instance.
func asOwned(i *kudo.Instance) *kudo.Instance {
	i.OwnerReferences = []metav1.OwnerReference{{Kind: "ManagedClusterAddOn", Name: "kafka", Controller: new(true)}}
	return i
}

// gather returns the Instance together with the existing versions.
func gather(i *kudo.Instance) Instance {
	state := Instance{Instance: i, PackagesNamespace: packages}
	for _, v := range versions {
		if VersionOf(i).Name == v.Name {
			state.Version = v
		}
	}
	return state
}

func TestAdmit(t *testing.T) {
	const (
		start    = "Instance cluster1/kafka: "
		reverted = `the Instance is owned by ManagedClusterAddOn "kafka", and addon-manager reverts edits of its parameters, image registries and OperatorVersion: ` +
			"change the owner's configuration instead"
	)
	deleting := with("COUNT", "many", "FIXED", "huge")
	deleting.DeletionTimestamp = new(at(20))
	labelled := with("COUNT", "many", "TYPO", "x")
	labelled.Labels = map[string]string{"a": "b"}
	backup := kudo.PlanExecution{PlanName: "backup", UID: "mine"}
	fly := kudo.PlanExecution{PlanName: "fly", UID: "mine"}

	for name, test := range map[string]struct {
		before, after *kudo.Instance
		want          string // the error; empty for none
		warnings      []string
	}{
		"a valid Instance is created": {after: with("TEXT", "a", "COUNT", "3", "COLOUR", "red", "FIXED", "huge")},
		"every parameter that is wrong is named, in the package's order": {
			after: without("NEEDED", with("COUNT", "many", "COLOUR", "green", "TYPO", "x")),
			want: start + `parameter "COUNT": value "many": must be an integer, such as 3; ` +
				`parameter "COLOUR": value "green": must be one of "red", "blue"; ` +
				`parameter "NEEDED": required, but has neither a value nor a default: set it; ` +
				`parameter "TYPO": not defined: the operator has TEXT, COUNT, COLOUR, NEEDED, FIXED, SCALE, SCALE_TO, BACKUP`,
		},
		"a value that becomes wrong": {
			before: with("COUNT", "3"), after: with("COUNT", "many"), want: start + `parameter "COUNT": value "many": must be an integer, such as 3`,
		},
		"a required value that goes": {
			before: with(), after: without("NEEDED", with()),
			want: start + `parameter "NEEDED": required, but has neither a value nor a default: set it`,
		},
		"a wrong value becomes another wrong one": {
			before: with("COUNT", "many"), after: with("COUNT", "few"), want: start + `parameter "COUNT": value "few": must be an integer, such as 3`,
		},
		"nothing but a label changes on what is wrong already": {before: with("COUNT", "many", "TYPO", "x"), after: labelled},
		"one of two wrong values is mended":                    {before: with("COUNT", "many", "TYPO", "x"), after: with("TYPO", "x")},
		"another value changes beside a wrong one":             {before: with("COUNT", "many"), after: with("COUNT", "many", "TEXT", "b")},
		"whatever is written to what is being deleted":         {before: with(), after: deleting},
		"another version judges all parameters": {
			before: with("BACKUP", "x"), after: of("kafka-2.0.0", with("BACKUP", "x", "FIXED", "small")),
			want: start + `parameter "BACKUP": not defined: the operator has TEXT, COUNT, COLOUR, NEEDED, FIXED, SCALE, SCALE_TO ` +
				`(only the current version defines it: remove it in the same change, as 'kubectl addon upgrade --unset BACKUP' does)`,
		},

		"an immutable parameter is changed": {
			before: with(), after: with("FIXED", "huge"),
			want: start + `parameter "FIXED": immutable, and its current value is "small": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is changed together with the version": {
			before: with(), after: of("kafka-2.0.0", with("FIXED", "huge")),
			want: start + `parameter "FIXED": immutable, and its current value is "small": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is changed by the default of another version": {
			before: with(), after: of("kafka-2.0.0", with()),
			want: start + `parameter "FIXED": value "large": immutable, and its current value is "small": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is written out with another version":  {before: with(), after: of("kafka-2.0.0", with("FIXED", "small"))},
		"it falls to a default of the same value": {before: of("kafka-2.0.0", with("FIXED", "small")), after: of("kafka-1.0.0", with())},
		"it is not defined by another version": {
			before: with(), after: of("kafka-3.0.0", with()),
			want: start + `parameter "FIXED": immutable, and its current value is "small", but the other OperatorVersion does not define it: use one that does`,
		},
		"it is changed on the way to a version that does not exist": {
			before: with(), after: of("kafka-9.0.0", with("FIXED", "huge")),
			want: start + `parameter "FIXED": immutable, and its current value is "small": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
			warnings: []string{"the Instance cannot run yet: OperatorVersion addon-packages/kafka-9.0.0 does not exist: " +
				"push its package (kubectl addon package push DIR -n addon-packages), or use another version"},
		},
		"it is changed on the way back from one": {
			before: of("kafka-9.0.0", with()), after: with("FIXED", "huge"),
			want: start + `parameter "FIXED": immutable, and its current value is "small": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},

		"it got another value past admission, and goes back to what was started": {
			before: asStarted(nil, with("FIXED", "huge")), after: asStarted(nil, with("FIXED", "small")),
		},
		"it got another value past admission, and gets a third": {
			before: asStarted(nil, with("FIXED", "huge")), after: asStarted(nil, with("FIXED", "tiny")),
			want: start + `parameter "FIXED": immutable, and its current value is "small": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it got another value past admission, and something else changes": {
			before: asStarted(nil, with("FIXED", "huge")), after: asStarted(nil, with("FIXED", "huge", "TEXT", "b")),
		},
		"it got another value on the way to a version that does not exist, and goes back to what was started": {
			before: asStarted(nil, of("kafka-9.0.0", with("FIXED", "huge"))), after: asStarted(nil, with()),
		},
		"what was started is changed after its version was lost": {
			before: asStarted(map[string]string{"FIXED": "huge"}, of("kafka-9.0.0", with("FIXED", "huge"))), after: asStarted(map[string]string{"FIXED": "huge"}, with("FIXED", "tiny")),
			want: start + `parameter "FIXED": immutable, and its current value is not shown: set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},

		"one trigger, and parameters without": {before: with(), after: with("SCALE", "2", "SCALE_TO", "3", "TEXT", "b")},
		"two triggers": {
			before: with("SCALE", "2"), after: with("BACKUP", "x", "SCALE_TO", "3", "TEXT", "b"),
			want: start + `the changed parameters trigger 2 plans, "scale" (SCALE, SCALE_TO) and "backup" (BACKUP): change the parameters of one plan at a time`,
		},
		"two triggers at the start, when all runs anyway": {after: with("SCALE", "2", "BACKUP", "x")},
		"two triggers with another version, which runs a plan of its own": {
			before: of("kafka-2.0.0", with("FIXED", "small")), after: with("SCALE", "2", "BACKUP", "x"),
		},

		"a version without plan deploy is installed": {
			after: of("kafka-4.0.0", with()), want: start + "OperatorVersion addon-packages/kafka-4.0.0 has no plan deploy, which the first " +
				"installation runs: use another version, and upgrade to this one when plan deploy of the other is complete",
		},
		"a version without plan deploy got past admission, and something else changes": {
			before: of("kafka-4.0.0", with()), after: of("kafka-4.0.0", with("TEXT", "b")),
		},
		"it is upgraded to a version without plan deploy": {
			before: withExecution("u", kudo.Complete), after: of("kafka-4.0.0", withExecution("u", kudo.Complete)),
		},
		"it is upgraded to one before plan deploy is complete": {
			before: withExecution("u", kudo.InProgress), after: of("kafka-4.0.0", withExecution("u", kudo.InProgress)),
			want: start + "OperatorVersion addon-packages/kafka-4.0.0 has no plan deploy, which the first " +
				"installation runs: use another version, and upgrade to this one when plan deploy of the other is complete",
		},

		"a plan that exists is asked for": {before: with(), after: asks(backup, with())},
		"a plan that does not exist is asked for": {
			before: with(), after: asks(fly, with()),
			want: start + `spec.planExecution.planName is "fly", but OperatorVersion addon-packages/kafka-1.0.0 has no such plan: ` +
				"use one of its plans (backup, deploy, scale), or remove spec.planExecution",
		},
		"it was asked for before": {before: asks(fly, with()), after: asks(fly, with("TEXT", "b"))},
		"it is asked for of another version": {
			before: asks(backup, with("FIXED", "small")), after: of("kafka-2.0.0", asks(backup, with("FIXED", "small"))),
			want: start + `spec.planExecution.planName is "backup", but OperatorVersion addon-packages/kafka-2.0.0 has no such plan: ` +
				"use one of its plans (deploy, scale), or remove spec.planExecution",
		},

		"what runs is cancelled": {before: withExecution("u", kudo.InProgress), after: asks(kudo.PlanExecution{UID: "u", Cancel: true}, withExecution("u", kudo.InProgress))},
		"what failed and is tried again is cancelled": {
			before: withExecution("u", kudo.Error), after: asks(kudo.PlanExecution{UID: "u", Cancel: true}, withExecution("u", kudo.Error)),
		},
		"what has ended is cancelled": {
			before: withExecution("u", kudo.Complete), after: asks(kudo.PlanExecution{UID: "u", Cancel: true}, withExecution("u", kudo.Complete)),
			warnings: []string{`nothing to cancel: no execution with uid "u" is running`},
		},
		"something else than what runs is cancelled": {
			before: withExecution("u", kudo.InProgress), after: asks(kudo.PlanExecution{UID: "w", Cancel: true}, withExecution("u", kudo.InProgress)),
			warnings: []string{`nothing to cancel: no execution with uid "w" is running`},
		},
		"a plan is asked for where cancel was left behind, as KUDO's client does": {
			before: asks(kudo.PlanExecution{UID: "u", Cancel: true}, withExecution("u", kudo.FatalError)),
			after:  asks(kudo.PlanExecution{UID: "w", Cancel: true, PlanName: "backup"}, withExecution("u", kudo.FatalError)),
			warnings: []string{`nothing to cancel: no execution with uid "w" is running; ` +
				`to run plan "backup", set spec.planExecution.cancel to false`},
		},
		"something else changes where cancel was left behind": {
			before: asks(kudo.PlanExecution{UID: "u", Cancel: true}, withExecution("u", kudo.FatalError)),
			after:  asks(kudo.PlanExecution{UID: "u", Cancel: true}, withExecution("u", kudo.FatalError, "TEXT", "b")),
		},

		"a failed execution is resumed": {
			before: withExecution("u", kudo.FatalError), after: asks(kudo.PlanExecution{UID: "w", PlanName: "deploy", Resume: "u"}, withExecution("u", kudo.FatalError)),
		},
		"an execution that has not failed is resumed": {
			before:   withExecution("u", kudo.Complete),
			after:    asks(kudo.PlanExecution{UID: "w", PlanName: "deploy", Resume: "u"}, withExecution("u", kudo.Complete)),
			warnings: []string{`execution "u" cannot be resumed: it is complete: remove spec.planExecution.resume to run the whole plan`},
		},
		"an execution is resumed without a plan": {
			before: withExecution("u", kudo.FatalError), after: asks(kudo.PlanExecution{UID: "w", Resume: "u"}, withExecution("u", kudo.FatalError)),
			warnings: []string{"spec.planExecution.resume has no effect without spec.planExecution.planName"},
		},

		"an add-on's Instance is edited":                      {before: asOwned(with()), after: asOwned(with("TEXT", "b")), warnings: []string{reverted}},
		"an add-on's Instance gets a version":                 {before: asOwned(with()), after: asOwned(of("kafka-2.0.0", with("FIXED", "small"))), warnings: []string{reverted}},
		"a plan of an add-on's Instance is asked for by hand": {before: asOwned(with()), after: asOwned(asks(backup, with()))},

		"the version does not exist": {
			after: of("kafka-9.0.0", with("TYPO", "x")),
			warnings: []string{"the Instance cannot run yet: OperatorVersion addon-packages/kafka-9.0.0 does not exist: " +
				"push its package (kubectl addon package push DIR -n addon-packages), or use another version"},
		},
		"it did not exist before either": {before: of("kafka-9.0.0", with()), after: of("kafka-9.0.0", with("TEXT", "b"))},
	} {
		t.Run(name, func(t *testing.T) {
			var before *Instance
			if test.before != nil {
				before = new(gather(test.before))
			}
			warnings, err := Admit(before, gather(test.after))
			var got string
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.warnings, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// An upgrade of an Instance with existing parameters.
func TestAdmitOfAnUpgrade(t *testing.T) {
	defining := func(name string, parameters ...kudo.Parameter) *kudo.OperatorVersion {
		v := version()
		v.Name, v.Spec.Parameters = name, parameters
		return v
	}
	size := func(edit func(*kudo.Parameter)) kudo.Parameter {
		p := kudo.Parameter{Name: "SIZE"}
		if edit != nil {
			edit(&p)
		}
		return p
	}
	for name, test := range map[string]struct {
		before, after kudo.Parameter
		given, gives  map[string]string
		want          string
	}{
		"a parameter appears with a default": {
			before: kudo.Parameter{Name: "OLD"}, after: size(func(p *kudo.Parameter) { p.Default, p.Required = new("1"), new(true) }),
		},
		"a required one appears without": {
			before: kudo.Parameter{Name: "OLD"}, after: size(func(p *kudo.Parameter) { p.Required = new(true) }),
			want: `parameter "SIZE": required, but has neither a value nor a default: set it`,
		},
		"it is set together with the version": {
			before: kudo.Parameter{Name: "OLD"}, after: size(func(p *kudo.Parameter) { p.Required = new(true) }), gives: map[string]string{"SIZE": "1"},
		},
		"one that is set disappears": {
			before: kudo.Parameter{Name: "SIZES"}, after: size(nil), given: map[string]string{"SIZES": "1"}, gives: map[string]string{"SIZES": "1"},
			want: `parameter "SIZES": not defined: did you mean SIZE? ` +
				`(only the current version defines it: remove it in the same change, as 'kubectl addon upgrade --unset SIZES' does)`,
		},
		"one that is not set disappears": {before: kudo.Parameter{Name: "OLD"}, after: size(nil)},
		"one becomes required": {
			before: size(nil), after: size(func(p *kudo.Parameter) { p.Required = new(true) }),
			want: `parameter "SIZE": required, but has neither a value nor a default: set it`,
		},
		"one that is set becomes required": {
			before: size(nil), after: size(func(p *kudo.Parameter) { p.Required = new(true) }),
			given: map[string]string{"SIZE": "1"}, gives: map[string]string{"SIZE": "1"},
		},
		"one becomes immutable, and gets its last value": {
			before: size(nil), after: size(func(p *kudo.Parameter) { p.Immutable = new(true) }),
			given: map[string]string{"SIZE": "1"}, gives: map[string]string{"SIZE": "2"},
		},
		"one gets another type, which its value fits": {
			before: size(nil), after: size(func(p *kudo.Parameter) { p.Type = kudo.IntegerType }),
			given: map[string]string{"SIZE": "1"}, gives: map[string]string{"SIZE": "1"},
		},
		"one gets another type, which its value does not fit": {
			before: size(nil), after: size(func(p *kudo.Parameter) { p.Type = kudo.IntegerType }),
			given: map[string]string{"SIZE": "big"}, gives: map[string]string{"SIZE": "big"},
			want: `parameter "SIZE": value "big": must be an integer, such as 3`,
		},
		"one gets an enum without its value": {
			before: size(nil), after: size(func(p *kudo.Parameter) { p.Enum = []string{"s", "m"} }),
			given: map[string]string{"SIZE": "l"}, gives: map[string]string{"SIZE": "l"},
			want: `parameter "SIZE": value "l": must be one of "s", "m"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := newInstance("kafka"), of("kafka-2.0.0", newInstance("kafka"))
			was.Spec.Parameters, is.Spec.Parameters = test.given, test.gives
			var got string
			if _, err := Admit(&Instance{Instance: was, Version: defining("kafka-1.0.0", test.before)},
				Instance{Instance: is, Version: defining("kafka-2.0.0", test.after), PackagesNamespace: packages}); err != nil {
				got = strings.TrimPrefix(err.Error(), "Instance cluster1/kafka: ")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// The error names the parameter that can be shortened most, whichever one was changed.
// The hub writes the version and the parameters of a child in one edit, which may trigger two plans of the former version.
func TestAdmitOfAChildWhoseVersionWasReplaced(t *testing.T) {
	write := func(uid types.UID, pairs ...string) Instance {
		child := childOf("kafka", uid)
		child.Spec.Parameters = with(pairs...).Spec.Parameters
		return gather(child)
	}
	before := write("before")
	for sentence, test := range map[string]struct {
		after Instance
	}{
		"the parent's plan chooses the new one": {write(strict().UID, "SCALE", "2", "BACKUP", "x")},
		"an edit while it is replaced":          {write("before", "SCALE", "2")},
	} {
		t.Run(sentence, func(t *testing.T) {
			if warnings, err := Admit(&before, test.after); err != nil {
				t.Errorf("got %q, %v", warnings, err)
			}
		})
	}
	same := write(strict().UID)
	if _, err := Admit(&same, write(strict().UID, "SCALE", "2", "BACKUP", "x")); err == nil || !strings.Contains(err.Error(), "trigger 2 plans") {
		t.Errorf("two triggers of the same version: got %v", err)
	}
	if warnings, err := Admit(nil, write("before")); err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "was replaced") {
		t.Errorf("a new child of a replaced version: got %q, %v", warnings, err)
	}
}

func TestAdmitOfMoreThanAnInstanceHolds(t *testing.T) {
	large := strings.Repeat("x", parameter.MaxBytes-100)
	before, after := with("TEXT", large), with("TEXT", large, "SCALE", strings.Repeat("y", 100))
	labelled := after.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	if _, err := Admit(nil, gather(before)); err != nil {
		t.Errorf("what fits: %v", err)
	}
	_, err := Admit(new(gather(before)), gather(after))
	if err == nil || !strings.Contains(err.Error(), `parameter "TEXT": all parameters together have`) || len(err.Error()) > 1000 {
		t.Errorf("what does not fit: got %v", err)
	}
	if _, err := Admit(new(gather(after)), gather(labelled)); err != nil {
		t.Errorf("nothing but a label: %v", err)
	}
}

// A value that cannot switch a task is rejected before it fails the task.
func TestAdmitOfAValueThatSwitchesATask(t *testing.T) {
	v := strict()
	v.Spec.Tasks = append(v.Spec.Tasks, kudo.Task{Name: "t", Kind: kudo.TaskToggle, Spec: kudo.TaskSpec{
		ToggleTaskSpec: kudo.ToggleTaskSpec{Parameter: "TEXT"},
	}})
	const want = `parameter "TEXT": value "yes": must be true or false`
	given := Instance{Instance: with("TEXT", "yes"), Version: v, PackagesNamespace: packages}
	if _, err := Admit(nil, given); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("admission: got %v", err)
	}
	if got := Judge(given); got.Message != want || got.Reason != kudo.ReasonParametersInvalid {
		t.Errorf("Resolved: got %s: %s", got.Reason, got.Message)
	}
	given.Instance = with("TEXT", "true")
	if _, err := Admit(nil, given); err != nil {
		t.Errorf("a value that does: %v", err)
	}
}

// A version with a child that an undefined parameter enables does not run on any cluster, even if the version was admitted (KEP-36).
func TestAdmitOfAnEnablingParameterThatDoesNotExist(t *testing.T) {
	v := strict()
	v.Spec.Tasks = append(v.Spec.Tasks, kudo.Task{Name: "t", Kind: kudo.TaskKudoOperator, Spec: kudo.TaskSpec{
		KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{Package: "bb", EnablingParameter: "ON"},
	}})
	given := Instance{Instance: with(), Version: v, PackagesNamespace: packages}
	const want = `parameter "ON": enables task "t", but is not defined in the OperatorVersion`
	if _, err := Admit(nil, given); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("admission: got %v", err)
	}
	if got := Judge(given); got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, want) {
		t.Errorf("Resolved: got %s: %s", got.Status, got.Message)
	}
	if _, err := Admit(new(given), given); err != nil {
		t.Errorf("an edit of something else: %v", err)
	}
}

func TestAdmitNamesSoManyFaults(t *testing.T) {
	i := with()
	for letter := 'a'; letter < 'a'+12; letter++ {
		i.Spec.Parameters[string(letter)] = "x"
	}
	_, err := Admit(nil, gather(i))
	if err == nil || strings.Count(err.Error(), "; ") != problemLimit || !strings.HasSuffix(err.Error(), `; and 2 more problems`) {
		t.Errorf("got %v, want %d problems and how many more there are", err, problemLimit)
	}
}

// Admission answers in time for the maximum number of parameters of an OperatorVersion.
func BenchmarkAdmitOfManyParameters(b *testing.B) {
	v, before, after := strict(), with(), with()
	for i := range 20000 {
		name := fmt.Sprintf("P%05d", i)
		v.Spec.Parameters = append(v.Spec.Parameters, kudo.Parameter{Name: name, Immutable: new(i%2 == 0), Trigger: name})
		before.Spec.Parameters[name], after.Spec.Parameters[name] = "a", "b"
	}
	for b.Loop() {
		if _, err := Admit(&Instance{Instance: before, Version: v}, Instance{Instance: after, Version: v}); err == nil {
			b.Fatal("nothing is wrong")
		}
	}
}

// Admission accepts a new Instance if and only if Judge finds no problem with it.
func TestAdmitAgreesWithJudge(t *testing.T) {
	for name, i := range map[string]*kudo.Instance{
		"valid": with(), "a wrong parameter": with("COUNT", "many"), "no such version": of("kafka-9.0.0", with()),
		"a plan that does not exist": asks(kudo.PlanExecution{PlanName: "fly"}, with()),
		"a wrong name":               newInstance("a_b"), "a wrong namespace": newInstance("a", func(i *kudo.Instance) { i.Spec.OperatorVersion.Namespace = "x" }),
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := Admit(nil, gather(i))
			judged := Judge(gather(i))
			if clean := err == nil && len(warnings) == 0; clean != (judged.Status == metav1.ConditionTrue) {
				t.Errorf("admission says %v %q, Resolved %s: %s", err, warnings, judged.Status, judged.Message)
			}
		})
	}
}

func TestAdmitOutsideOfManagedClusters(t *testing.T) {
	outside := Instance{Instance: newInstance("kafka"), Unmanaged: true}
	deleted := Instance{Instance: newInstance("kafka", func(i *kudo.Instance) { i.DeletionTimestamp = ptrTo(at(20)) }), Unmanaged: true}
	warning := `the Instance cannot run yet: ManagedCluster "cluster1" does not exist or is being deleted: ` +
		"create the Instance in the namespace of a managed cluster"
	for name, tc := range map[string]struct {
		before *Instance
		after  Instance
		want   []string
	}{
		"a creation":                            {nil, outside, []string{warning}},
		"an edit":                               {&outside, outside, nil},
		"the creation of one to delete already": {nil, deleted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := Admit(tc.before, tc.after)
			if err != nil {
				t.Errorf("refused: %v", err)
			}
			if diff := cmp.Diff(tc.want, warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
