package stack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

const head = "apiVersion: kudo.dev/v1beta1\nkind: Stack\nmetadata: {name: shop}\nspec:\n"

func TestParse(t *testing.T) {
	s, problems := Parse(head + `  clusters: [a, b]
  namespace: data
  addOns:
  - name: kafka
    package: kafka@1.0.0
    parameters: {BROKERS: 3}
  - name: shop
    chart: ./shop
    namespace: shop
    placements: [default/all]
    rolloutStrategy: {type: Progressive, progressive: {maxConcurrency: 1}}
    requires:
    - kafka
    - {name: web, version: ">=2 <3", message: No pages., install: Auto}
    optional: [monitoring, {name: gpu, alternatives: [tpu], clusters: {labelSelector: {matchLabels: {gpu: "true"}}}}]
`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	at := func(line, column int) Place { return Place{line, column} }
	want := &Stack{Name: "shop", AddOns: []Entry{
		{Name: Text{"kafka", at(8, 11)}, Package: Text{"kafka@1.0.0", at(9, 14)}, Namespace: "data", Clusters: []Text{{"a", at(5, 14)}, {"b", at(5, 17)}}},
		{
			Name: Text{"shop", at(11, 11)}, Chart: Text{"./shop", at(12, 12)}, Namespace: "shop", Placements: []types.NamespacedName{{Namespace: "default", Name: "all"}},
			RolloutStrategy: &clusterv1alpha1.RolloutStrategy{
				Type: "Progressive", Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.FromInt32(1)},
			},
			Dependencies: []Dependency{
				{addonv1alpha1.AddonDependency{Name: "kafka", Type: "Required"}, at(17, 7)},
				{addonv1alpha1.AddonDependency{Name: "web", Type: "Required", Message: "No pages.", Version: ">=2 <3", Install: "Auto"}, at(18, 14)},
				{addonv1alpha1.AddonDependency{Name: "monitoring", Type: "Optional"}, at(19, 16)},
				{addonv1alpha1.AddonDependency{
					Name: "gpu", Type: "Optional", Alternatives: []string{"tpu"},
					Clusters: &addonv1alpha1.ClusterSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gpu": "true"}}},
				}, at(19, 35)},
			},
		},
	}}
	if s.AddOns[0].Parameters == nil {
		t.Error("no parameters")
	}
	s.AddOns[0].Parameters = nil
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

func TestParseReportsMistakes(t *testing.T) {
	for sentence, test := range map[string]struct {
		file string
		want []string
	}{
		"nothing":                 {"", []string{"s: error: is empty: it must be a stack, see 'kubectl addon apply --help'"}},
		"no YAML":                 {"a: [\n", []string{"s:1:1: error: not valid YAML: did not find expected node content"}},
		"no map":                  {"- a\n", []string{"s:1:1: error: a stack must be a map, got a list", `s:1:1: error: apiVersion must be kudo.dev/v1beta1, got ""`, `s:1:1: error: kind must be Stack, got ""`, `s:1:1: error: metadata.name must consist of at most 63 lowercase letters, digits and '-', got ""`, "s:1:1: error: spec.addOns is required: the list of add-ons of the stack"}},
		"two documents":           {head + "  addOns: []\n---\na: b\n", []string{"s:6:1: error: a second document: a file has one stack"}},
		"another kind":            {"apiVersion: v1\nkind: List\nmetadata: {name: A}\nspec: {addOns: []}\n", []string{`s:1:13: error: apiVersion must be kudo.dev/v1beta1, got "v1"`, `s:2:7: error: kind must be Stack, got "List"`, `s:3:18: error: metadata.name must consist of at most 63 lowercase letters, digits and '-', got "A"`}},
		"an unknown field":        {head + "  addOns:\n  - {name: a, package: a, require: [b]}\n", []string{`s:6:27: error: unknown field "require" of an add-on: did you mean requires?`}},
		"a field that is no such": {head + "  addOns: []\n  zzz: 1\n", []string{`s:6:3: error: unknown field "zzz" of spec: must be one of namespace, clusters, placements, rolloutStrategy, addOns`}},
		"a field twice":           {head + "  addOns:\n  - {name: a, package: a, name: b}\n", []string{`s:6:27: error: "name" is set twice, first in line 6: remove one`}},
		"nothing to run":          {head + "  addOns: [{name: a}]\n", []string{`s:5:12: error: add-on "a" has neither package nor chart: set one of them`}},
		"two things to run":       {head + "  addOns: [{name: a, package: a, chart: b}]\n", []string{`s:5:41: error: add-on "a" has a package and a chart: remove one of them`}},
		"a version of a package":  {head + "  addOns: [{name: a, package: a, version: 1.2.3}]\n", []string{`s:5:43: error: version belongs to a chart, and add-on "a" has a package: for one on the hub, write package: NAME@VERSION`}},
		"values of a package":     {head + "  addOns: [{name: a, package: a, values: {b: c}}]\n", []string{`s:5:42: error: values are those of a chart, and add-on "a" has a package: use parameters`}},
		"parameters of a chart":   {head + "  addOns: [{name: a, chart: a, parameters: {b: c}}]\n", []string{`s:5:44: error: parameters are those of a package, and add-on "a" has a chart: use values`}},
		"a name that is none":     {head + "  addOns: [{name: A_b, package: a}]\n", []string{`s:5:19: error: name must consist of at most 63 lowercase letters, digits and '-', got "A_b"`}},
		"one add-on twice":        {head + "  addOns: [{name: a, package: a}, {name: a, chart: a}]\n", []string{`s:5:42: error: add-on "a" is listed twice, first in line 5: remove one`}},
		"clusters and placements": {head + "  clusters: [b]\n  placements: [a/b]\n  addOns: [{name: a, package: a}]\n", []string{`s:7:12: error: add-on "a" has clusters and placements: OCM removes an add-on from clusters that no placement selects: remove one of them`}},
		"a placement of no namespace": {head + "  placements: [b, a/b, a/b]\n  addOns: []\n", []string{`s:5:16: error: a placement must be NAMESPACE/NAME of a Placement of OCM, got "b"`,
			`s:5:24: error: placement "a/b" is listed twice: remove one of the entries`}},
		"wrong clusters": {head + "  clusters: [a, A, a, null]\n  addOns: []\n", []string{`s:5:17: error: "A" cannot be the name of a managed cluster`,
			`s:5:20: error: cluster "a" is listed twice: remove one of the entries`, "s:5:23: error: the name of a cluster must be a text, got nothing"}},
		"clusters of a dependency that are a list": {head + "  addOns: [{name: a, package: a, requires: [{name: b, clusters: [c]}]}]\n", []string{
			`s:5:65: error: clusters of a dependency must be a selector such as {labelSelector: {matchLabels: {gpu: "true"}}}, got a list`}},
		"clusters of a dependency with an unknown field": {head + "  addOns: [{name: a, package: a, requires: [{name: b, clusters: {labels: {}}}]}]\n", []string{
			`s:5:65: error: clusters of a dependency cannot be read: unknown field "labels"`}},
		"alternatives that are no list": {head + "  addOns: [{name: a, package: a, requires: [{name: b, alternatives: c}]}]\n", []string{
			`s:5:69: error: alternatives must be a list, got "c"`}},
		"a strategy that is a text": {head + "  placements: [a/b]\n  rolloutStrategy: Progressive\n  addOns: []\n", []string{
			`s:6:20: error: rolloutStrategy must be a map such as {type: Progressive, progressive: {maxConcurrency: 25%}}, got "Progressive"`}},
		"a strategy of no type": {head + "  placements: [a/b]\n  rolloutStrategy: {type: Slow}\n  addOns: []\n", []string{
			`s:6:20: error: rolloutStrategy has type "Slow": must be All, Progressive or ProgressivePerGroup`}},
		"a strategy with an unknown field": {head + "  addOns: [{name: a, package: a, placements: [a/b], rolloutStrategy: {type: All, some: {}}}]\n", []string{
			`s:5:70: error: rolloutStrategy cannot be read: unknown field "some"`}},
		"a strategy without placements": {head + "  addOns: [{name: a, package: a, clusters: [c], rolloutStrategy: {type: All}}]\n", []string{
			`s:5:12: error: add-on "a" has a rolloutStrategy and no placements, which it is for: remove it, or set placements`}},
		"a dependency without a name": {head + "  addOns: [{name: a, package: a, requires: [{message: x}]}]\n", []string{"s:5:45: error: name of the add-on is required in requires"}},
		"an alias":                    {head + "  addOns: [{name: &n a, package: *n}]\n", []string{"s:5:34: error: package must be a text, got the alias *n: write the value out", `s:5:12: error: add-on "a" has neither package nor chart: set one of them`}},
		"a merge":                     {head + "  addOns: [{name: a, package: a, <<: {name: b}}]\n", []string{"s:5:34: error: an add-on: anchors, aliases and merges are not supported: write the field out"}},
		"texts that control a terminal": {head + "  addOns: [{name: \"a\\e[2J\", package: a}]\n", []string{
			`s:5:19: error: name must consist of at most 63 lowercase letters, digits and '-', got "a\x1b[2J"`}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, problems := Parse(test.file)
			var got []string
			for _, p := range problems {
				got = append(got, strings.TrimPrefix(ErrorOf("s", []Problem{p}).Error(), "stack file s is not valid: 1 error\n"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsAreSortedAndBounded(t *testing.T) {
	var problems []Problem
	for i := range 30 {
		problems = append(problems, Problem{Place{30 - i, 1}, "wrong"})
	}
	lines := strings.Split(ErrorOf("s", problems).Error(), "\n")
	if len(lines) != 22 || lines[0] != "stack file s is not valid: 30 errors" || lines[1] != "s:1:1: error: wrong" || lines[21] != "and 10 more problems" {
		t.Errorf("got %d lines: %q", len(lines), lines)
	}
}

func TestCheckParameters(t *testing.T) {
	version := &kudo.OperatorVersionSpec{Parameters: []kudo.Parameter{
		{Name: "SIZE", Type: kudo.IntegerType, Default: new("1")}, {Name: "HOSTS", Type: kudo.ArrayType, Default: new("[]")},
		{Name: "PASSWORD", Sensitive: new(true), Default: new("")}, {Name: "TEXT", Default: new("")}, {Name: "NEEDED", Required: new(true)},
	}}
	for sentence, test := range map[string]struct {
		parameters string
		want       []string
	}{
		"all of them":          {"{SIZE: 3, HOSTS: [a, b], PASSWORD: secret:db/password, TEXT: 1.10, NEEDED: x}", nil},
		"a missing one":        {"{SIZE: 3}", []string{`8:11 add-on "web": parameter "NEEDED": `}},
		"one that is not":      {"{SIZES: 3, NEEDED: x}", []string{`10:25 add-on "web": parameter "SIZES": not defined: did you mean SIZE?`}},
		"a wrong type":         {"{NEEDED: x, SIZE: many}", []string{`10:35 add-on "web": parameter "SIZE": `}},
		"a secret in the file": {"{NEEDED: x, PASSWORD: abc}", []string{`10:39 add-on "web": parameter "PASSWORD": sensitive: must be secret:NAME/KEY`}},
		"a long text":          {"{NEEDED: x, TEXT: " + strings.Repeat("é", 1025) + "}", nil},
		"too long a text":      {"{NEEDED: x, TEXT: " + strings.Repeat("é", 300_000) + "}", []string{`10:35 add-on "web": parameter "TEXT": all parameters together have`}},
		"nothing set":          {"{NEEDED: x, SIZE: }", []string{`10:35 parameter "SIZE" has no value: `}},
	} {
		t.Run(sentence, func(t *testing.T) {
			s, problems := Parse(head + "  clusters: [a]\n  namespace: x\n  addOns:\n  - name: web\n    package: web\n    parameters: " + test.parameters + "\n")
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			given, problems := ParametersOf(s.AddOns[0])
			problems = append(problems, CheckParameters(s.AddOns[0], version, given)...)
			if len(problems) != len(test.want) {
				t.Fatalf("got %v", problems)
			}
			for i, p := range problems {
				if line := fmt.Sprintf("%d:%d %s", p.Line, p.Column, p.Message); !strings.HasPrefix(line, test.want[i]) {
					t.Errorf("got %s, want %s", line, test.want[i])
				}
			}
		})
	}
}

// FuzzParse checks that a file that anyone wrote ends nothing, and that problems have places in it.
func FuzzParse(f *testing.F) {
	f.Add(head + "  clusters: [a]\n  addOns: [{name: a, package: b, requires: [c, {name: d}], parameters: {A: [1]}}]\n")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, file string) {
		s, problems := Parse(file)
		if len(problems) == 0 && (s == nil || s.Name == "") {
			t.Error("neither a stack nor a problem")
		}
		for _, p := range problems {
			if p.Line > strings.Count(file, "\n")+1 {
				t.Errorf("line %d of a shorter file: %s", p.Line, p.Message)
			}
		}
	})
}
