package dependency

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

const (
	required = addonv1alpha1.DependencyTypeRequired
	optional = addonv1alpha1.DependencyTypeOptional
)

var (
	available   = Seen{Defined: true, Installed: true, Available: metav1.ConditionTrue, Reason: "Works"}
	unavailable = Seen{Defined: true, Installed: true, Available: metav1.ConditionFalse, Reason: "Broken"}
	silent      = Seen{Defined: true, Installed: true}
	unknown     = Seen{Defined: true, Installed: true, Available: metav1.ConditionUnknown, Reason: "ProbeMissing"}
	updating    = Seen{Defined: true, Installed: true, Available: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonUpdating}
	cutOff      = Seen{
		Defined: true, Installed: true, Available: metav1.ConditionUnknown, Reason: addonv1alpha1.ReasonClusterLeaseStopped,
	}
	deleting  = Seen{Defined: true, Installed: true, Deleting: true, Available: metav1.ConditionTrue, Reason: "Works"}
	notOnIt   = Seen{Defined: true}
	undefined = Seen{Installed: true, Available: metav1.ConditionTrue, Reason: "Works"}
)

// onCycle returns seen with the given cycle.
func onCycle(seen Seen, way ...string) Seen {
	seen.Cycle = way
	return seen
}

func degradedCondition(reason string, lines ...string) *metav1.Condition {
	return &metav1.Condition{
		Type: "Degraded", Status: metav1.ConditionTrue, Reason: reason, Message: strings.Join(lines, "\n"),
	}
}

func TestEvaluate(t *testing.T) {
	const (
		requiredA = "Required addon 'a' is not installed or not available."
		optionalB = "Optional addon 'b' is not installed or not available."
	)
	a := addonv1alpha1.AddonDependency{Name: "a", Type: required}
	b := addonv1alpha1.AddonDependency{Name: "b", Type: optional}

	for name, tc := range map[string]struct {
		needs    []addonv1alpha1.AddonDependency
		seen     map[string]Seen
		previous *metav1.Condition
		reason   string
		message  string
		causes   string // of the unmet dependencies
		notReady string
	}{
		"no dependencies ask for nothing": {},
		"all satisfied asks for nothing": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": available, "b": available},
		},
		"one that is being updated is satisfied, and holds first installations": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": updating, "b": updating}, notReady: "Required a (Updating)",
		},
		"one that is being updated no longer degrades": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": updating},
			previous: degradedCondition("RequiredDependencyNotSatisfied", requiredA), notReady: "Required a (Updating)",
		},
		"a satisfied dependency needs no definition": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": undefined},
		},
		"an unknown Required one": {
			needs: []addonv1alpha1.AddonDependency{a}, reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (NoSuchAddOn)", notReady: "Required a (NoSuchAddOn)",
		},
		"a Required one that is not enabled on the cluster": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": notOnIt},
			reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (NotInstalled)", notReady: "Required a (NotInstalled)",
		},
		"a Required one that is not available": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": unavailable},
			reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (NotAvailable)", notReady: "Required a (NotAvailable)",
		},
		"a Required one that has not said anything yet": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": silent},
			reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (NotAvailable)", notReady: "Required a (NotAvailable)",
		},
		"a Required one of which nothing is known": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": unknown},
			reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (Unknown)", notReady: "Required a (Unknown)",
		},
		"a Required one that is being deleted, although it is available": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": deleting},
			reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (Deleting)", notReady: "Required a (Deleting)",
		},
		"an unset type is Required": {
			needs: []addonv1alpha1.AddonDependency{{Name: "a"}}, reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (NoSuchAddOn)", notReady: "Required a (NoSuchAddOn)",
		},
		"only an Optional one is unmet": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": available, "b": notOnIt},
			reason: "DependencyNotSatisfied", message: optionalB, causes: "Optional b (NotInstalled)",
		},
		"Required ones come first, each kind in the order declared, with what is lost": {
			needs: []addonv1alpha1.AddonDependency{
				{Name: "z", Type: optional, Message: "No graphs"}, {Name: "d", Type: required, Message: "No storage"}, b, a,
			},
			reason: "RequiredDependencyNotSatisfied",
			message: "Required addon 'd' is not installed or not available. No storage\n" + requiredA + "\n" +
				"Optional addon 'z' is not installed or not available. No graphs\n" + optionalB,
			causes:   "Required d (NoSuchAddOn), Required a (NoSuchAddOn), Optional z (NoSuchAddOn), Optional b (NoSuchAddOn)",
			notReady: "Required d (NoSuchAddOn), Required a (NoSuchAddOn)",
		},
		"a message on several lines becomes one line": {
			needs:   []addonv1alpha1.AddonDependency{{Name: "a", Message: " one\r\ntwo\nRequired addon 'x' is\n"}},
			reason:  "RequiredDependencyNotSatisfied",
			message: requiredA + " one two Required addon 'x' is",
			causes:  "Required a (NoSuchAddOn)", notReady: "Required a (NoSuchAddOn)",
		},

		"a dependency on itself is a cycle": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": onCycle(available, "a", "a")},
			reason: "RequiredDependencyNotSatisfied", message: "circular dependency: a -> a",
			causes: "Required a (Circular)", notReady: "Required a (Circular)",
		},
		"a circular dependency is unmet although it is available": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": onCycle(available, "x", "a", "x")},
			reason: "RequiredDependencyNotSatisfied", message: "circular dependency: x -> a -> x",
			causes: "Required a (Circular)", notReady: "Required a (Circular)",
		},
		"a cycle precedes every other cause": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": onCycle(deleting, "x", "a", "y", "x")},
			reason: "RequiredDependencyNotSatisfied", message: "circular dependency: x -> a -> y -> x",
			causes: "Required a (Circular)", notReady: "Required a (Circular)",
		},
		"a circular Optional dependency has the reason of its own type, and blocks no installation": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": available, "b": onCycle(available, "x", "b", "x")},
			reason: "DependencyNotSatisfied", message: "circular dependency: x -> b -> x", causes: "Optional b (Circular)",
		},
		"a circular and a missing dependency are both named, Required first": {
			needs: []addonv1alpha1.AddonDependency{b, a}, seen: map[string]Seen{"b": onCycle(available, "x", "b", "x")},
			reason: "RequiredDependencyNotSatisfied", message: requiredA + "\ncircular dependency: x -> b -> x",
			causes: "Required a (NoSuchAddOn), Optional b (Circular)", notReady: "Required a (NoSuchAddOn)",
		},
		"two cycles through one add-on are both named": {
			needs: []addonv1alpha1.AddonDependency{a, b},
			seen: map[string]Seen{
				"a": onCycle(silent, "x", "a", "x"), "b": onCycle(silent, "x", "b", "c", "x"),
			},
			reason: "RequiredDependencyNotSatisfied", message: "circular dependency: x -> a -> x\ncircular dependency: x -> b -> c -> x",
			causes: "Required a (Circular), Optional b (Circular)", notReady: "Required a (Circular)",
		},
		"an add-on that depends on a member is not part of the cycle: it is evaluated by availability": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": available},
			previous: degradedCondition("RequiredDependencyNotSatisfied", requiredA),
		},
		"a broken cycle is forgotten": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": available},
			previous: degradedCondition("RequiredDependencyNotSatisfied", "circular dependency: x -> a -> x"),
		},

		"hold: a cycle is still reported": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": onCycle(cutOff, "x", "a", "x")},
			reason: "RequiredDependencyNotSatisfied", message: "circular dependency: x -> a -> x",
			causes: "Required a (Circular)", notReady: "Required a (Circular)",
		},
		"hold: in addition to a cycle": {
			needs:    []addonv1alpha1.AddonDependency{a, b},
			seen:     map[string]Seen{"a": onCycle(cutOff, "x", "a", "x"), "b": cutOff},
			previous: degradedCondition("RequiredDependencyNotSatisfied", "circular dependency: x -> a -> x", optionalB),
			reason:   "RequiredDependencyNotSatisfied", message: "circular dependency: x -> a -> x\n" + optionalB,
			causes: "Required a (Circular), Optional b (Unknown)", notReady: "Required a (Circular)",
		},
		"hold: a dependency outside of the broken cycle stays unmet": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": cutOff, "b": cutOff},
			previous: degradedCondition("RequiredDependencyNotSatisfied", "circular dependency: b -> a -> b"),
			reason:   "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (Unknown)", notReady: "Required a (Unknown)",
		},
		"hold: cut off and satisfied before stays satisfied": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": cutOff}, notReady: "Required a (Unknown)",
		},
		"hold: cut off and unmet before stays unmet": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": cutOff},
			previous: degradedCondition("RequiredDependencyNotSatisfied", requiredA),
			reason:   "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (Unknown)", notReady: "Required a (Unknown)",
		},
		"hold: only what was unmet before is": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": cutOff, "b": cutOff},
			previous: degradedCondition("DependencyNotSatisfied", optionalB+" No graphs"),
			reason:   "DependencyNotSatisfied", message: optionalB,
			causes: "Optional b (Unknown)", notReady: "Required a (Unknown)",
		},
		"hold: a name that begins like another one is another one": {
			needs:    []addonv1alpha1.AddonDependency{{Name: "a-b"}, a},
			seen:     map[string]Seen{"a": cutOff, "a-b": cutOff},
			previous: degradedCondition("RequiredDependencyNotSatisfied", requiredA),
			reason:   "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (Unknown)", notReady: "Required a-b (Unknown), Required a (Unknown)",
		},
		"hold: a name inside of another one's message was not unmet": {
			needs:    []addonv1alpha1.AddonDependency{a, b},
			seen:     map[string]Seen{"a": cutOff, "b": notOnIt},
			previous: degradedCondition("DependencyNotSatisfied", optionalB+" "+requiredA),
			reason:   "DependencyNotSatisfied", message: optionalB,
			causes: "Optional b (NotInstalled)", notReady: "Required a (Unknown)",
		},
		"hold: the verdict outlives a change of type": {
			needs: []addonv1alpha1.AddonDependency{{Name: "b", Type: required}}, seen: map[string]Seen{"b": cutOff},
			previous: degradedCondition("DependencyNotSatisfied", optionalB),
			reason:   "RequiredDependencyNotSatisfied", message: "Required addon 'b' is not installed or not available.",
			causes: "Required b (Unknown)", notReady: "Required b (Unknown)",
		},
		"hold: another writer's Degraded is no verdict": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": cutOff},
			previous: degradedCondition("DiskFull", requiredA), notReady: "Required a (Unknown)",
		},
		"hold: a verdict that was withdrawn is none": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": cutOff},
			previous: &metav1.Condition{Type: "Degraded", Status: "False", Reason: "RequiredDependencyNotSatisfied", Message: requiredA},
			notReady: "Required a (Unknown)",
		},
		"hold: what a message leaves out that was cut was unmet": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": cutOff, "b": cutOff},
			previous: degradedCondition("RequiredDependencyNotSatisfied", "Required addon 'z' …", "2 more dependencies are not satisfied."),
			reason:   "RequiredDependencyNotSatisfied", message: requiredA + "\n" + optionalB,
			causes: "Required a (Unknown), Optional b (Unknown)", notReady: "Required a (Unknown)",
		},
		"hold: no Required one is left out where only Optional ones were unmet": {
			needs: []addonv1alpha1.AddonDependency{a, b}, seen: map[string]Seen{"a": cutOff, "b": cutOff},
			previous: degradedCondition("DependencyNotSatisfied", "Optional addon 'z' …", "2 more dependencies are not satisfied."),
			reason:   "DependencyNotSatisfied", message: optionalB,
			causes: "Optional b (Unknown)", notReady: "Required a (Unknown)",
		},
		"hold: existence is judged all the same": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": notOnIt},
			reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (NotInstalled)", notReady: "Required a (NotInstalled)",
		},
		"hold: deletion is judged all the same": {
			needs: []addonv1alpha1.AddonDependency{a},
			seen: map[string]Seen{"a": {
				Defined: true, Installed: true, Deleting: true,
				Available: metav1.ConditionUnknown, Reason: addonv1alpha1.ReasonClusterLeaseStopped,
			}},
			reason: "RequiredDependencyNotSatisfied", message: requiredA,
			causes: "Required a (Deleting)", notReady: "Required a (Deleting)",
		},
		"hold: recovery is evaluated again": {
			needs: []addonv1alpha1.AddonDependency{a}, seen: map[string]Seen{"a": available},
			previous: degradedCondition("RequiredDependencyNotSatisfied", requiredA),
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := Evaluate(tc.needs, tc.seen, tc.previous)
			if diff := cmp.Diff(tc.reason, v.Reason()); diff != "" {
				t.Errorf("reason (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.message, v.Message()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.causes, Summary(v.Unmet())); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.notReady, Summary(v.NotReady())); diff != "" {
				t.Errorf("not ready (-want +got):\n%s", diff)
			}
			if (v.Condition() == nil) != (tc.reason == "") {
				t.Errorf("condition %v with reason %q", v.Condition(), tc.reason)
			}
		})
	}
}

func TestSee(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	addOn.Status.Conditions = []metav1.Condition{
		{Type: "Degraded", Status: "True", Reason: "Other"}, {Type: "Available", Status: "False", Reason: "Broken"},
	}
	gone := addOn.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{}
	now := metav1.Now()
	going := addOn.DeepCopy()
	going.DeletionTimestamp = &now

	for name, tc := range map[string]struct {
		definition *addonv1alpha1.ClusterManagementAddOn
		addOn      *addonv1alpha1.ManagedClusterAddOn
		want       Seen
	}{
		"nothing exists":              {want: Seen{}},
		"it is defined only":          {definition: definition(nil), want: notOnIt},
		"it is installed":             {definition: definition(nil), addOn: addOn, want: unavailable},
		"it has no condition":         {definition: definition(nil), addOn: &addonv1alpha1.ManagedClusterAddOn{}, want: silent},
		"it is being deleted":         {addOn: going, want: Seen{Installed: true, Deleting: true, Available: "False", Reason: "Broken"}},
		"a zero timestamp is nothing": {addOn: gone, want: Seen{Installed: true, Available: "False", Reason: "Broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, See(tc.definition, tc.addOn)); diff != "" {
				t.Errorf("seen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnmetFrom(t *testing.T) {
	for name, test := range map[string]struct {
		degraded *metav1.Condition
		want     string
	}{
		"no condition":               {nil, ""},
		"another writer's condition": {degradedCondition("DiskFull", "Required addon 'a' is not installed or not available."), ""},
		"Required ones, with what is lost": {
			degradedCondition("RequiredDependencyNotSatisfied",
				"Required addon 'a' is not installed or not available. Required addon 'x' is not installed or not available.",
				"Required addon 'b' is not installed or not available.",
				"Optional addon 'c' is not installed or not available. No graphs"),
			"Required a (Unknown), Required b (Unknown), Optional c (Unknown)",
		},
		"cycles": {
			degradedCondition("RequiredDependencyNotSatisfied", "circular dependency: x -> a -> x",
				"Optional addon 'b' is not installed or not available.", "circular dependency: x -> c -> d -> x"),
			"Required a (Unknown), Optional b (Unknown), Optional c (Unknown)",
		},
		"a cycle of Optional ones": {degradedCondition("DependencyNotSatisfied", "circular dependency: x -> a -> x"), "Optional a (Unknown)"},
		"a message that was cut":   {degradedCondition("DependencyNotSatisfied", "Optional addon 'a' is not installed or not available. Much is los…", "7 more dependencies are not satisfied."), "Optional a (Unknown)"},
		"a custom message":         {degradedCondition("DependencyNotSatisfied", "the addon 'a' is not installed or not available."), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Summary(UnmetFrom(test.degraded)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestMessageStaysInItsBound(t *testing.T) {
	needs := func(n, size int, letter string) []addonv1alpha1.AddonDependency {
		var all []addonv1alpha1.AddonDependency
		for i := range n {
			all = append(all, addonv1alpha1.AddonDependency{Name: fmt.Sprintf("a%03d", i), Message: strings.Repeat(letter, size)})
		}
		return all
	}
	for name, tc := range map[string]struct {
		needs []addonv1alpha1.AddonDependency
		lines int
		last  string
	}{
		"many short sentences are complete":                       {needs: needs(100, 100, "x"), lines: 100, last: "Required addon 'a099'"},
		"what does not fit is counted, and no sentence is halved": {needs: needs(40, 1000, "x"), lines: 31, last: "10 more dependencies are not satisfied."},
		"one sentence that is too long is cut between characters": {needs: needs(1, 20000, "é"), lines: 1, last: "Required addon 'a000'"},
		"between characters that are off by one byte":             {needs: needs(1, 10000, "xé€"), lines: 1, last: "Required addon 'a000'"},
		"and between those that are off by another one":           {needs: needs(1, 10000, "é€"), lines: 1, last: "Required addon 'a000'"},
		"and what follows it is counted":                          {needs: needs(3, 20000, "é"), lines: 2, last: "2 more dependencies are not satisfied."},
	} {
		t.Run(name, func(t *testing.T) {
			message := Evaluate(tc.needs, nil, nil).Message()
			if len(message) > MessageLimit || !utf8.ValidString(message) {
				t.Errorf("%d bytes, valid UTF-8: %v", len(message), utf8.ValidString(message))
			}
			lines := strings.Split(message, "\n")
			if last := lines[len(lines)-1]; len(lines) != tc.lines || !strings.HasPrefix(last, tc.last) {
				t.Errorf("%d lines, the last %.60q; want %d lines, the last %q", len(lines), last, tc.lines, tc.last)
			}
		})
	}
}

func TestMessageThatJustFitsIsNotTruncated(t *testing.T) {
	lost := strings.Repeat("x", MessageLimit-len(sentenceStart(required, "a")+missing+". "))
	if message := Evaluate([]addonv1alpha1.AddonDependency{{Name: "a", Message: lost}}, nil, nil).Message(); len(message) != MessageLimit {
		t.Errorf("%d bytes, ends with %q", len(message), message[len(message)-10:])
	}
}

func TestManyStandInTheOrderDeclared(t *testing.T) {
	var needs []addonv1alpha1.AddonDependency
	var want, after []string
	for i := range 40 {
		need := addonv1alpha1.AddonDependency{Name: fmt.Sprint("a", 40-i), Type: required}
		if i%3 == 0 {
			need.Type = optional
			after = append(after, need.Name)
		} else {
			want = append(want, need.Name)
		}
		needs = append(needs, need)
	}
	if diff := cmp.Diff(append(want, after...), Names(Evaluate(needs, nil, nil))); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestEvaluateProperties evaluates random fleets and checks the properties of checkVerdict and checkHold.
func TestEvaluateProperties(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []Seen{{}, available, unavailable, silent, unknown, cutOff, deleting, notOnIt, undefined}
	for range 2000 {
		needs, seen := randomFleet(random, kinds)
		checkVerdict(t, needs, seen, nil)
		checkHold(t, needs, seen)
	}
}

// checkVerdict checks that every dependency is judged, that each unmet one has a cause and is named, that the reason matches the types of
// the unmet ones, that the message is bounded, and that a second evaluation changes nothing.
func checkVerdict(t *testing.T, needs []addonv1alpha1.AddonDependency, seen map[string]Seen, previous *metav1.Condition) {
	t.Helper()
	before := cmp.Diff(nil, needs) + cmp.Diff(nil, seen)
	v := Evaluate(needs, seen, previous)
	if diff := cmp.Diff(v, Evaluate(needs, seen, previous)); diff != "" {
		t.Fatalf("once this verdict, once that:\n%s", diff)
	}
	if after := cmp.Diff(nil, needs) + cmp.Diff(nil, seen); before != after {
		t.Fatalf("input was changed: %s\n%s", before, after)
	}
	if len(v) != len(needs) {
		t.Fatalf("%d judgements of %d dependencies", len(v), len(needs))
	}
	message := v.Message()
	if len(message) > MessageLimit || !utf8.ValidString(message) {
		t.Fatalf("message of %d bytes, valid UTF-8: %v", len(message), utf8.ValidString(message))
	}
	reason := ""
	for _, j := range v {
		checkJudgement(t, j, seen[j.Name], message)
		switch {
		case !j.Satisfied && j.Type == required:
			reason = addonv1alpha1.ReasonRequiredDependencyNotSatisfied
		case !j.Satisfied && reason == "":
			reason = addonv1alpha1.ReasonDependencyNotSatisfied
		}
	}
	if v.Reason() != reason {
		t.Fatalf("reason %q, want %q of %s", v.Reason(), reason, Summary(v.Unmet()))
	}
	again := Evaluate(needs, seen, v.Condition())
	if isCut(message) {
		// A dependency that a truncated message omits counts as unmet while it is held. After one more pass, nothing changes.
		v, again = again, Evaluate(needs, seen, again.Condition())
	}
	if diff := cmp.Diff(v, again); diff != "" {
		t.Fatalf("a second pass judges otherwise:\n%s", diff)
	}
}

func checkJudgement(t *testing.T, j Judgement, seen Seen, message string) {
	t.Helper()
	if j.Satisfied != (j.Cause == "") {
		t.Fatalf("%+v: satisfied with a cause or unmet without", j)
	}
	if circular := len(seen.Cycle) > 0; circular != (j.Cause == Circular) {
		t.Fatalf("%+v: on a cycle: %v", j, circular)
	}
	if line := j.sentence(); !isCut(message) && strings.Contains("\n"+message+"\n", "\n"+line+"\n") == j.Satisfied {
		t.Fatalf("%+v: its line %q is in %q", j, line, message)
	}
}

// isCut reports whether the message is truncated: it omits a dependency or the end of a sentence.
func isCut(message string) bool {
	return strings.HasSuffix(message, " more dependencies are not satisfied.") || strings.Contains(message, "…")
}

// checkHold disconnects the cluster: reason and message stay unchanged unless an add-on disappears.
func checkHold(t *testing.T, needs []addonv1alpha1.AddonDependency, seen map[string]Seen) {
	t.Helper()
	v := Evaluate(needs, seen, nil)
	outage := map[string]Seen{}
	for name, s := range seen {
		if s.Installed && !s.Deleting {
			s.Available, s.Reason = metav1.ConditionUnknown, addonv1alpha1.ReasonClusterLeaseStopped
		}
		outage[name] = s
	}
	held := Evaluate(needs, outage, v.Condition())
	if held.Reason() != v.Reason() {
		t.Fatalf("reason %q became %q while the cluster was cut off", v.Reason(), held.Reason())
	}
	if !isCut(v.Message()) && held.Message() != v.Message() {
		t.Fatalf("message became another one while the cluster was cut off:\n%s", cmp.Diff(v.Message(), held.Message()))
	}
}

func randomFleet(random *rand.Rand, kinds []Seen) ([]addonv1alpha1.AddonDependency, map[string]Seen) {
	messages := []string{"", "lost", "two\nlines", "ünïcödé", strings.Repeat("é", 9000), "Required addon 'd1' is not installed or not available."}
	var needs []addonv1alpha1.AddonDependency
	seen := map[string]Seen{}
	for i := range random.IntN(8) {
		need := addonv1alpha1.AddonDependency{
			Name:    fmt.Sprintf("d%d", i),
			Type:    []addonv1alpha1.DependencyType{required, optional, ""}[random.IntN(3)],
			Message: messages[random.IntN(len(messages))],
		}
		needs = append(needs, need)
		seen[need.Name] = kinds[random.IntN(len(kinds))]
		if random.IntN(6) == 0 {
			seen[need.Name] = onCycle(seen[need.Name], "x", need.Name, "y", "x")
		}
	}
	return needs, seen
}

// FuzzEvaluate evaluates the dependencies that text declares in the annotation's format. Each byte of states gives the state of one
// dependency.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []struct{ text, states, reason, message string }{
		{`[{"name":"a"},{"name":"b","type":"Optional","message":"no graphs"}]`, "\x03\x1b", "", ""},
		{`[{"name":"a"},{"name":"a.b"}]`, "\x2b\x2b", "RequiredDependencyNotSatisfied", "Required addon 'a' is not installed or not available."},
		{`[{"name":"x"},{"name":"a"}]`, "\x5b\x2b", "RequiredDependencyNotSatisfied", "circular dependency: x -> a -> x"},
		{`[{"name":"a"},{"name":"b"}]`, "\x2b\x2b", "DependencyNotSatisfied", "Optional addon 'b' …\n7 more dependencies are not satisfied."},
		{"[{\"name\":\"\xff\"}]", "\x00", "Other", "\n"},
	} {
		f.Add(seed.text, seed.states, seed.reason, seed.message)
	}
	f.Fuzz(func(t *testing.T, text, states, reason, message string) {
		needs, err := DeclaredBy(definition(&text))
		if err != nil {
			return
		}
		seen := map[string]Seen{}
		for i, need := range needs {
			// Other names belong to no object. They are judged, but a condition does not always distinguish them.
			if len(validation.IsDNS1123Subdomain(need.Name)) > 0 {
				return
			}
			if i < len(states) {
				seen[need.Name] = seenOf(states[i], need.Name)
			}
		}
		checkVerdict(t, needs, seen, degradedCondition(reason, message))
		checkVerdict(t, needs, seen, nil)
		checkHold(t, needs, seen)
	})
}

// seenOf decodes the bits of state into the observed state of an add-on.
func seenOf(state byte, name string) Seen {
	seen := Seen{
		Defined: state&1 != 0, Installed: state&2 != 0, Deleting: state&4 != 0,
		Available: []metav1.ConditionStatus{"", metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}[state>>3&3],
	}
	if state&32 != 0 {
		seen.Reason = addonv1alpha1.ReasonClusterLeaseStopped
	}
	if state&64 != 0 {
		seen.Cycle = []string{"x", name, "x"}
	}
	return seen
}
