package parameter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
)

func TestImmutable(t *testing.T) {
	fixed := func(value string) kudo.Parameter {
		return kudo.Parameter{Name: "FIXED", Default: &value, Immutable: new(true)}
	}
	bare := kudo.Parameter{Name: "FIXED", Immutable: new(true)}
	count := func(value string) kudo.Parameter {
		return kudo.Parameter{Name: "FIXED", Type: kudo.IntegerType, Default: &value, Immutable: new(true)}
	}
	list := kudo.Parameter{Name: "FIXED", Type: kudo.ArrayType, Immutable: new(true)}
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
			before: unset(count("1")), after: set("2", count("1")),
			want: `parameter "FIXED": value "2": immutable, and its current value is "1": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is changed, and may be a password": {
			before: set("hunter1", bare), after: set("hunter2", bare),
			want: `parameter "FIXED": immutable, and its current value is not shown: set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is unset": {
			before: set("2", count("1")), after: unset(count("1")),
			want: `parameter "FIXED": value "1": immutable, and its current value is "2": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is unset, and may be a password": {
			before: set("hunter1", bare), after: unset(bare),
			want: `parameter "FIXED": immutable, and its current value is not shown: set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"a list is written in another way": {before: set("[a, {b: 1}]", list), after: set(`["a",{"b":1}]`, list)},
		"a list has another order": {
			before: set("[a, b]", list), after: set("[b, a]", list),
			want: `parameter "FIXED": immutable, and its current value is not shown: set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"another version makes a text of it": {
			before: set("[a, b]", list), after: set("[a,b]", bare),
			want: `parameter "FIXED": immutable, and its current value is not shown: set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is emptied": {
			before: set("a", fixed("a")), after: set("", fixed("a")),
			want: `parameter "FIXED": immutable, and its current value is "a": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is unset and falls back to another default": {
			before: set("b", fixed("a")), after: unset(fixed("a")),
			want: `parameter "FIXED": value "a": immutable, and its current value is not shown: set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"it is set where nothing was": {
			before: unset(bare), after: set("a", bare),
			want: `parameter "FIXED": immutable, and its current value is "": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"another version has another default": {
			before: unset(fixed("a")), after: unset(fixed("b")),
			want: `parameter "FIXED": value "b": immutable, and its current value is "a": set that value, or uninstall it with its data ('kubectl addon uninstall') and install it again`,
		},
		"another version has another default, and the value is written out": {before: unset(fixed("a")), after: set("a", fixed("b"))},
		"another version does not define it": {
			before: unset(fixed("a")), after: unset(other),
			want: `parameter "FIXED": immutable, and its current value is "a", but the other OperatorVersion does not define it: use one that does`,
		},
		"another version does not define what may be a password": {
			before: set("hunter1", bare), after: unset(other),
			want: `parameter "FIXED": immutable, and its current value is not shown, but the other OperatorVersion does not define it: use one that does`,
		},
		"another version does not define what had no value": {before: unset(bare), after: unset(other)},
		"another version makes it mutable":                  {before: set("b", fixed("a")), after: set("c", loose)},
		"another version makes it immutable":                {before: set("b", loose), after: set("c", fixed("a"))},
		"another version adds it":                           {before: unset(other), after: set("c", other, fixed("a"))},
		"a mutable one changes":                             {before: set("b", loose), after: set("c", loose)},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got string
			if problems := parameter.Immutable(test.before, test.after); len(problems) > 0 {
				got = (&parameter.InvalidError{Problems: problems}).Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzImmutable checks that an unchanged value is never a problem, and that reverting a rejected change is rejected too.
func FuzzImmutable(f *testing.F) {
	f.Add("[a, 1]", `["a", 1.0]`, "", uint8(5))
	f.Add("{a: {b: 1e400}}", "a: {b: 1e400}", "{}", uint8(6))
	f.Add("[&x a, *x]", "[", "[]", uint8(5))
	types := []kudo.ParameterType{"", kudo.StringType, kudo.IntegerType, kudo.NumberType, kudo.BooleanType, kudo.ArrayType, kudo.MapType}
	f.Fuzz(func(t *testing.T, one, other, byDefault string, which uint8) {
		definitions := []kudo.Parameter{{Name: "P", Type: types[int(which)%len(types)], Default: &byDefault, Immutable: new(true)}}
		set := func(value string) parameter.Setting {
			return parameter.Setting{Definitions: definitions, Given: map[string]string{"P": value}}
		}
		unset := parameter.Setting{Definitions: definitions}
		for _, s := range []parameter.Setting{set(one), set(other), unset} {
			if problems := parameter.Immutable(s, s); len(problems) > 0 {
				t.Errorf("nothing changes: %v", problems)
			}
		}
		there, back := parameter.Immutable(set(one), set(other)), parameter.Immutable(set(other), set(one))
		if len(there) != len(back) {
			t.Errorf("there %v, back %v", there, back)
		}
		if problems := parameter.Immutable(unset, set(byDefault)); len(problems) > 0 {
			t.Errorf("the default is written out: %v", problems)
		}
	})
}
