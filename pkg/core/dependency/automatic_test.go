package dependency

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// automaticWorld parses add-ons such as "kafka ~zk|redpanda with:zk for:shop=gone deleting", where ~ is install Auto; the uid of an add-on is its name.
func automaticWorld(t *testing.T, lines ...string) map[string]Enabled {
	t.Helper()
	on := map[string]Enabled{}
	for _, line := range lines {
		words := strings.Fields(line) // names:zk is a dependency on other clusters only
		addOn := Enabled{UID: types.UID(words[0])}
		for _, word := range words[1:] {
			key, value, _ := strings.Cut(word, ":")
			switch {
			case word == "deleting":
				addOn.Deleting = true
			case key == "with":
				addOn.With = ParseNames(value)
			case key == "for":
				addOn.For = ParseAskers(value)
			case key == "names":
				addOn.Named = append(addOn.Named, value)
			case word == "malformed":
				addOn.Malformed = true
			case key == "cycle":
				addOn.Cycles = map[string][]string{value: {words[0], value, words[0]}}
			default:
				names := strings.Split(strings.TrimPrefix(word, "~"), "|")
				need := addonv1alpha1.AddonDependency{Name: names[0], Alternatives: names[1:]}
				if strings.HasPrefix(word, "~") {
					need.Install = addonv1alpha1.InstallAuto
				}
				addOn.Needs = append(addOn.Needs, need)
				addOn.Named = append(addOn.Named, names...)
			}
		}
		on[words[0]] = addOn
	}
	return on
}

// automaticTexts returns what changes, a line each.
func automaticTexts(a Automatic) []string {
	var lines []string
	for name, askers := range a.Enable {
		lines = append(lines, "enable "+name+" for "+FormatAskers(askers))
	}
	for name, askers := range a.For {
		lines = append(lines, name+" for "+FormatAskers(askers))
	}
	for name, with := range a.With {
		lines = append(lines, name+" with "+FormatNames(with))
	}
	for _, name := range a.Disable {
		lines = append(lines, "disable "+name)
	}
	slices.Sort(lines)
	return lines
}

func TestRemaindersOf(t *testing.T) {
	for name, c := range map[string]struct {
		on     []string
		before []Remainder
		want   []Remainder
	}{
		"nothing was enabled":                     {on: []string{"kafka", "zk"}},
		"the dependent asks for it":               {on: []string{"kafka ~zk", "zk for:kafka=kafka"}},
		"an alternative of it is there, too":      {on: []string{"kafka ~zk|redpanda", "redpanda", "zk for:kafka=kafka"}},
		"the dependent has no dependency on it":   {on: []string{"kafka", "zk for:kafka=kafka"}, want: []Remainder{{"zk", Asker{"kafka", "kafka"}}}},
		"it has one on other clusters":            {on: []string{"kafka names:zk", "zk for:kafka=kafka"}, want: []Remainder{{"zk", Asker{"kafka", "kafka"}}}},
		"it has one without install Auto":         {on: []string{"kafka zk", "zk for:kafka=kafka"}, want: []Remainder{{"zk", Asker{"kafka", "kafka"}}}},
		"it has one with it as an alternative":    {on: []string{"kafka ~redpanda|zk", "zk for:kafka=kafka"}, want: []Remainder{{"zk", Asker{"kafka", "kafka"}}}},
		"one of two dependents has none":          {on: []string{"kafka", "solr ~zk", "zk for:kafka=kafka,solr=solr"}, want: []Remainder{{"zk", Asker{"kafka", "kafka"}}}},
		"the dependent is being deleted":          {on: []string{"kafka deleting", "zk for:kafka=kafka"}},
		"it is being deleted":                     {on: []string{"kafka", "zk for:kafka=kafka deleting"}},
		"the dependent is another one by now":     {on: []string{"kafka", "zk for:kafka=gone"}},
		"the dependent is gone":                   {on: []string{"zk for:kafka=kafka"}},
		"a malformed declaration may ask for it":  {on: []string{"kafka malformed", "zk for:kafka=kafka"}},
		"a malformed declaration changes nothing": {on: []string{"kafka malformed", "zk for:kafka=kafka"}, before: []Remainder{{"zk", Asker{"kafka", "kafka"}}}, want: []Remainder{{"zk", Asker{"kafka", "kafka"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RemaindersOf(automaticWorld(t, c.on...), c.before); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestAutomaticOf(t *testing.T) {
	defined := map[string]Seen{"zk": {Defined: true}, "redpanda": {Defined: true}}
	for name, c := range map[string]struct {
		on      []string
		missing map[string]Seen
		want    []string
	}{
		"nothing is declared":                        {on: []string{"kafka zk"}, missing: defined},
		"a missing one is enabled":                   {on: []string{"kafka ~zk"}, missing: defined, want: []string{"enable zk for kafka=kafka", "kafka with zk"}},
		"once for several":                           {on: []string{"kafka ~zk", "solr ~zk"}, missing: defined, want: []string{"enable zk for kafka=kafka,solr=solr", "kafka with zk", "solr with zk"}},
		"not for one that is being deleted":          {on: []string{"kafka ~zk deleting"}, missing: defined},
		"not against a Placement":                    {on: []string{"kafka ~zk"}, missing: map[string]Seen{"zk": {Defined: true, Placed: true}}},
		"not without a definition":                   {on: []string{"kafka ~zk"}, missing: map[string]Seen{}},
		"not on a cycle":                             {on: []string{"kafka ~zk cycle:zk"}, missing: defined},
		"not if it was disabled":                     {on: []string{"kafka ~zk with:zk"}, missing: defined},
		"not beside an alternative":                  {on: []string{"kafka ~zk|redpanda", "redpanda"}, missing: defined},
		"not while an alternative is being deleted":  {on: []string{"kafka ~zk|redpanda", "redpanda deleting"}, missing: defined},
		"the named one, if no alternative is there":  {on: []string{"kafka ~zk|redpanda"}, missing: defined, want: []string{"enable zk for kafka=kafka", "kafka with zk"}},
		"not while it is being deleted":              {on: []string{"kafka ~zk", "zk deleting"}},
		"one that a user has enabled is noted":       {on: []string{"kafka ~zk", "zk"}, want: []string{"kafka with zk"}},
		"once":                                       {on: []string{"kafka ~zk with:zk", "zk"}},
		"one that was enabled for another is shared": {on: []string{"kafka ~zk with:zk", "solr ~zk", "zk for:kafka=kafka"}, want: []string{"solr with zk", "zk for kafka=kafka,solr=solr"}},
		"also between two at once": {
			on: []string{"a ~zk with:zk", "b ~zk with:zk", "zk for:gone=gone"}, want: []string{"zk for a=a,b=b"},
		},
		"one without dependents is disabled":                    {on: []string{"zk for:kafka=kafka"}, want: []string{"disable zk"}},
		"one whose dependent was created again is disabled":     {on: []string{"zk for:kafka=before", "kafka"}, want: []string{"disable zk"}},
		"not while its dependent exists without the dependency": {on: []string{"zk for:kafka=kafka", "kafka with:zk"}},
		"not while its dependent is being deleted":              {on: []string{"zk for:kafka=kafka", "kafka ~zk with:zk deleting"}},
		"not while another one depends on it":                   {on: []string{"zk for:kafka=kafka", "solr zk"}},
		"not while it is an alternative for another one":        {on: []string{"zk for:kafka=kafka", "solr redpanda|zk", "redpanda"}},
		"not while another one depends on it elsewhere":         {on: []string{"zk for:kafka=kafka", "solr names:zk"}},
		"not while another declaration is malformed":            {on: []string{"zk for:kafka=kafka", "solr malformed"}},
		"not what a user has enabled":                           {on: []string{"zk"}},
		"not twice":                                             {on: []string{"zk for:kafka=kafka deleting"}},
		"malformed notes ask for nothing":                       {on: []string{"zk for:kafka,=,solr="}, want: []string{"disable zk"}},
		"a chain goes one after the other":                      {on: []string{"zk for:kafka=kafka", "disk for:zk=zk"}, want: []string{"disable zk"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := automaticTexts(AutomaticOf(automaticWorld(t, c.on...), c.missing)); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// automaticFleet is a cluster on which users enable and disable add-ons, and selectors flap.
type automaticFleet struct {
	t        *testing.T
	seed     uint64
	random   *rand.Rand
	declared map[string][]addonv1alpha1.AddonDependency
	on       map[string]Enabled
	// declined holds the NAME and UID of add-ons that were disabled and of their dependents at that time.
	declined map[[2]string]bool
	uids     int
}

var automaticNames = strings.Split("abcdef", "")

func newAutomaticFleet(t *testing.T, seed uint64) *automaticFleet {
	f := &automaticFleet{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 45)), declared: map[string][]addonv1alpha1.AddonDependency{},
		on: map[string]Enabled{}, declined: map[[2]string]bool{},
	}
	for i, name := range automaticNames {
		for _, other := range automaticNames[i+1:] { // without cycles
			if f.random.IntN(3) > 0 {
				continue
			}
			need := addonv1alpha1.AddonDependency{Name: other}
			if f.random.IntN(3) > 0 {
				need.Install = addonv1alpha1.InstallAuto
			}
			f.declared[name] = append(f.declared[name], need)
		}
	}
	return f
}

// uid returns a new uid.
func (f *automaticFleet) uid() types.UID {
	f.uids++
	return types.UID(fmt.Sprint(f.uids))
}

// disturb does what a user or a selector may do to an add-on.
func (f *automaticFleet) disturb(name string) {
	addOn, there := f.on[name]
	switch {
	case !there:
		f.on[name] = Enabled{UID: f.uid(), Needs: f.declared[name]}
		return
	case f.random.IntN(2) == 0:
		for _, other := range f.on {
			if slices.Contains(other.With, name) {
				f.declined[[2]string{name, string(other.UID)}] = true
			}
		}
		delete(f.on, name)
		return
	case len(addOn.Needs) > 0: // a selector does not match any more
		addOn.Needs = nil
	default:
		addOn.Needs = f.declared[name]
	}
	f.on[name] = addOn
}

// apply applies what changes, and reports whether nothing does.
func (f *automaticFleet) apply() bool {
	missing := map[string]Seen{}
	for _, name := range automaticNames {
		if _, there := f.on[name]; !there {
			missing[name] = Seen{Defined: true}
		}
	}
	next := AutomaticOf(f.on, missing)
	if !reflect.DeepEqual(next, AutomaticOf(f.on, missing)) {
		f.t.Fatalf("seed %d: two decisions differ", f.seed)
	}
	for name, askers := range next.Enable {
		for _, asker := range askers {
			if f.declined[[2]string{name, string(asker.UID)}] {
				f.t.Fatalf("seed %d: %s is enabled again for %s", f.seed, name, asker.Name)
			}
		}
		f.on[name] = Enabled{UID: f.uid(), Needs: f.declared[name], For: askers}
	}
	for name := range f.on {
		addOn := f.on[name]
		if askers, changes := next.For[name]; changes {
			addOn.For = ParseAskers(FormatAskers(askers))
		}
		if with, changes := next.With[name]; changes {
			addOn.With = ParseNames(FormatNames(with))
		}
		f.on[name] = addOn
	}
	for _, name := range next.Disable {
		if len(f.on[name].For) == 0 {
			f.t.Fatalf("seed %d: %s, which a user has enabled, is disabled", f.seed, name)
		}
		delete(f.on, name)
	}
	return next.IsEmpty()
}

// lacking returns an add-on and a dependency with install Auto that is neither there nor was disabled; empty if there is none.
func (f *automaticFleet) lacking() string {
	for name, addOn := range f.on {
		for _, need := range addOn.Needs {
			if _, there := f.on[need.Name]; !there && need.Install == addonv1alpha1.InstallAuto && !slices.Contains(addOn.With, need.Name) {
				return name + " lacks " + need.Name
			}
		}
	}
	return ""
}

// TestAutomaticEnds applies what changes to random clusters until nothing does. Nothing that a user has disabled is enabled again for the same dependents,
// and only what was enabled automatically is disabled.
func TestAutomaticEnds(t *testing.T) {
	for seed := range uint64(2000) {
		f := newAutomaticFleet(t, seed)
		for range 30 {
			f.disturb(automaticNames[f.random.IntN(len(automaticNames))])
			for round := 0; !f.apply(); round++ {
				if round > 10 {
					t.Fatalf("seed %d: no end", seed)
				}
			}
			if problem := f.lacking(); problem != "" {
				t.Fatalf("seed %d: %s", seed, problem)
			}
		}
	}
}

func TestAutomaticCauses(t *testing.T) {
	auto := addonv1alpha1.AddonDependency{Name: "zk", Install: addonv1alpha1.InstallAuto, Alternatives: []string{"redpanda"}}
	manual := addonv1alpha1.AddonDependency{Name: "zk"}
	for name, c := range map[string]struct {
		need      addonv1alpha1.AddonDependency
		seen      Seen
		want      Cause
		automatic bool
	}{
		"to be enabled":     {need: auto, seen: Seen{Defined: true}, want: NotInstalled, automatic: true},
		"placed":            {need: auto, seen: Seen{Defined: true, Placed: true}, want: PlacementDecides},
		"declined":          {need: auto, seen: Seen{Defined: true, Declined: true}, want: Declined},
		"undefined":         {need: auto, want: NoSuchAddOn},
		"there":             {need: auto, seen: Seen{Defined: true, Placed: true, Installed: true}, want: NotAvailable},
		"Manual":            {need: manual, seen: Seen{Defined: true}, want: NotInstalled},
		"Manual and placed": {need: manual, seen: Seen{Defined: true, Placed: true}, want: NotInstalled},
	} {
		t.Run(name, func(t *testing.T) {
			j := Evaluate([]addonv1alpha1.AddonDependency{c.need}, map[string]Seen{"zk": c.seen}, nil)[0]
			if j.Cause != c.want || j.Automatic != c.automatic || j.By != "zk" && c.need.Alternatives == nil {
				t.Errorf("got %+v", j)
			}
		})
	}
}

func TestInstallNotes(t *testing.T) {
	for _, text := range []string{"", "zk", "zk,redpanda"} {
		if got := FormatNames(ParseNames(text)); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	for _, text := range []string{"", "kafka=1", "kafka=1,solr=2"} {
		if got := FormatAskers(ParseAskers(text)); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := len(ParseNames(strings.Repeat("a,", 200_000))); got != maxNoted {
		t.Errorf("%d names", got)
	}
}
