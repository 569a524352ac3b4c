package parameter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/parameter"
)

func TestImmutable(t *testing.T) {
	fixed := func(value string) kudo.Parameter {
		return kudo.Parameter{Name: "FIXED", Default: &value, Immutable: new(true)}
	}
	bare := kudo.Parameter{Name: "FIXED", Immutable: new(true)}
	loose := kudo.Parameter{Name: "FIXED", Default: new("a"), Immutable: new(false)}
	other := kudo.Parameter{Name: "OTHER"}
	set := func(value string, definitions ...kudo.Parameter) parameter.Setting {
		return parameter.Setting{Definitions: definitions, Given: map[string]string{"FIXED": value}}
	}
	unset := func(definitions ...kudo.Parameter) parameter.Setting {
		return parameter.Setting{Definitions: definitions}
	}

	for sentence, test := range map[string]struct {
		before, after parameter.Setting
		want          string
	}{
		"nothing changes":                                  {before: set("a", bare), after: set("a", bare)},
		"another one changes":                              {before: set("a", bare, other), after: parameter.Setting{Definitions: []kudo.Parameter{bare, other}, Given: map[string]string{"FIXED": "a", "OTHER": "b"}}},
		"the default is written out":                       {before: unset(fixed("a")), after: set("a", fixed("a"))},
		"what was written out is left to the same default": {before: set("a", fixed("a")), after: unset(fixed("a"))},
		"it is changed": {
			before: set("a", bare), after: set("b", bare),
			want: `parameter "FIXED": value "b": it is immutable and stands at "a": set that, or delete the Instance and create it anew`,
		},
		"it is unset": {
			before: set("a", bare), after: unset(bare),
			want: `parameter "FIXED": it is immutable and stands at "a": set that, or delete the Instance and create it anew`,
		},
		"it is emptied": {
			before: set("a", fixed("a")), after: set("", fixed("a")),
			want: `parameter "FIXED": it is immutable and stands at "a": set that, or delete the Instance and create it anew`,
		},
		"it is unset and falls back to another default": {
			before: set("b", fixed("a")), after: unset(fixed("a")),
			want: `parameter "FIXED": value "a": it is immutable and stands at "b": set that, or delete the Instance and create it anew`,
		},
		"it is set where nothing was": {
			before: unset(bare), after: set("a", bare),
			want: `parameter "FIXED": value "a": it is immutable and stands at "": set that, or delete the Instance and create it anew`,
		},
		"another version has another default": {
			before: unset(fixed("a")), after: unset(fixed("b")),
			want: `parameter "FIXED": value "b": it is immutable and stands at "a": set that, or delete the Instance and create it anew`,
		},
		"another version has another default, and the value is written out": {before: unset(fixed("a")), after: set("a", fixed("b"))},
		"another version does not define it": {
			before: unset(fixed("a")), after: unset(other),
			want: `parameter "FIXED": it is immutable and stands at "a", and the other OperatorVersion does not define it: choose one that does`,
		},
		"another version does not define what had no value": {before: unset(bare), after: unset(other)},
		"another version makes it mutable":                  {before: set("b", fixed("a")), after: set("c", loose)},
		"another version makes it immutable":                {before: set("b", loose), after: set("c", fixed("a"))},
		"another version brings it":                         {before: unset(other), after: set("c", other, fixed("a"))},
		"a mutable one changes":                             {before: set("b", loose), after: set("c", loose)},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got string
			if faults := parameter.Immutable(test.before, test.after); len(faults) > 0 {
				got = (&parameter.InvalidError{Faults: faults}).Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
