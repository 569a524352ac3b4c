package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// TestParameters compares parameter.Values with a naive reading of the types, for values that are of their type, of another one, or of none.
func TestParameters(t *testing.T) {
	types := []kudo.ParameterType{
		kudo.StringType, kudo.IntegerType, kudo.NumberType, kudo.BooleanType, kudo.ArrayType, kudo.MapType,
	}
	texts := map[kudo.ParameterType]*rapid.Generator[string]{
		kudo.StringType:  rapid.StringMatching(`[a-z]{2,5} [a-zé"'&*!%@]{1,5}`),
		kudo.IntegerType: rapid.StringMatching(`[+-]?[1-9][0-9]{1,40}`),
		kudo.NumberType:  rapid.StringMatching(`[+-]?[0-9]{1,20}\.[0-9]{1,20}([eE][+-]?[0-9]{1,3})?`),
		kudo.BooleanType: rapid.SampledFrom([]string{"true", "false", "T", "F", "True", "FALSE"}),
		kudo.ArrayType:   rapid.Map(rapid.SliceOf(rapid.StringMatching(`[0-9a-z: ]{1,6}`)), asJSON[[]string]),
		kudo.MapType:     rapid.Map(rapid.MapOf(rapid.StringMatching(`[a-z]{1,3}`), rapid.Int64()), asJSON[map[string]int64]),
	}
	// A number accepts integers, and a string everything.
	accepts := func(is, given kudo.ParameterType) bool {
		return is == given || is == kudo.StringType || is == kudo.NumberType && given == kudo.IntegerType
	}
	rapid.Check(t, func(t *rapid.T) {
		var definitions []kudo.Parameter
		given, bad := map[string]string{}, map[string]bool{}
		for i := range rapid.IntRange(1, 5).Draw(t, "parameters") {
			p := kudo.Parameter{Name: fmt.Sprint("P", i), Type: rapid.SampledFrom(types).Draw(t, "type")}
			of := rapid.SampledFrom(types).Draw(t, "value of type")
			given[p.Name] = texts[of].Draw(t, "value")
			bad[p.Name] = !accepts(p.Type, of)
			definitions = append(definitions, p)
		}
		if rapid.Bool().Draw(t, "undefined") {
			given["UNDEFINED"], bad["UNDEFINED"] = "", true
		}
		maps.DeleteFunc(bad, func(_ string, is bool) bool { return !is })
		values, err := parameter.Values(definitions, given)
		found := map[string]bool{}
		if invalid := (*parameter.InvalidError)(nil); errors.As(err, &invalid) {
			for _, problem := range invalid.Problems {
				found[problem.Parameter] = true
			}
		}
		if diff := cmp.Diff(bad, found); diff != "" {
			t.Fatalf("invalid parameters of %v, %v (-naive +found):\n%s", definitions, given, diff)
		}
		for _, p := range definitions {
			if text, is := values[p.Name].(string); err == nil && is && text != given[p.Name] {
				t.Fatalf("value %q became %q", given[p.Name], text)
			}
			if list, is := values[p.Name].([]any); err == nil && is && asJSON(list) != given[p.Name] {
				t.Fatalf("value %s became %s", given[p.Name], asJSON(list))
			}
		}
	})
}

func asJSON[T any](value T) string {
	text, _ := json.Marshal(value)
	return strings.Replace(string(text), "null", "[]", 1) // a nil slice
}

// TestTrees compares tree.Resolve with a naive walk through random operators that create each other.
func TestTrees(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		children := map[string][]string{}
		var versions []kudo.OperatorVersion
		for _, name := range names[:rapid.IntRange(1, len(names)).Draw(t, "operators")] {
			children[name] = rapid.SliceOfNDistinct(rapid.SampledFrom(append(names, "missing")), 0, 2, rapid.ID[string]).Draw(t, name)
			versions = append(versions, newParentVersion(name, children[name]))
		}
		want := map[string]bool{}
		walk(children, []string{"a"}, want)
		found := map[string]bool{}
		resolved, err := tree.Resolve(&versions[0], rapid.Permutation(versions).Draw(t, "order"))
		if invalid := (*tree.Error)(nil); errors.As(err, &invalid) {
			for _, problem := range invalid.Problems {
				found[problem.Reason] = true
			}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Fatalf("problems of %v (-naive +found):\n%s", children, diff)
		}
		if err != nil {
			return
		}
		for _, d := range resolved.Descendants("a") {
			way := strings.Split(d.Name, ".")
			if len(way) > 1 && !slices.Contains(children[way[len(way)-2]], way[len(way)-1]) {
				t.Fatalf("%s is in the tree of %v", d.Name, children)
			}
		}
	})
}

// newParentVersion returns a version of an operator with a task for each child.
func newParentVersion(name string, children []string) kudo.OperatorVersion {
	version := kudo.OperatorVersion{}
	version.Name, version.Spec.Operator.Name, version.Spec.Version = name+"-1.0.0", name, "1.0.0"
	var tasks []string
	for _, child := range children {
		tasks = append(tasks, child)
		version.Spec.Tasks = append(version.Spec.Tasks, kudo.Task{
			Name: child, Kind: kudo.TaskKudoOperator, Spec: kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{Package: child}},
		})
	}
	version.Spec.Plans = map[string]kudo.Plan{
		kudo.DeployPlan: {Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "children", Tasks: tasks}}}}},
	}
	return version
}

// walk collects the reasons why the last operator of a path cannot run.
func walk(children map[string][]string, path []string, reasons map[string]bool) {
	for _, child := range children[path[len(path)-1]] {
		_, exists := children[child]
		switch {
		case !exists:
			reasons[kudo.ReasonChildVersionNotFound] = true
		case slices.Contains(path, child):
			reasons[kudo.ReasonCircularOperators] = true
		default:
			walk(children, append(slices.Clip(path), child), reasons)
		}
	}
}
