package parameter

import (
	"strings"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// bombs are texts that would take much memory to decode, with the expected error of each.
var bombs = map[string]struct{ text, want string }{
	"many values":            {"[" + strings.Repeat("a,", 200_000) + "]", "it expands to more than"},
	"many empty lists":       {"[" + strings.Repeat("[],", 150_000) + "]", "it expands to more than"},
	"many levels":            {strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "nested more than 100 levels deep"},
	"levels below the limit": {strings.Repeat("[", 70) + strings.Repeat("]", 70), "nested deeper than 64 levels"},
	"aliases":                {"[&x " + strings.Repeat("x", 10_000) + strings.Repeat(", *x", 10_000) + "]", "it expands to more than"},
	"one alias":              {"[&x a, *x]", "anchors and aliases are not supported"},
	"an endless alias":       {"&x [*x]", "an anchor contains an alias to itself"},
}

func TestDecodeIsBounded(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(kudo.ArrayType, bomb.text); err == nil || !strings.Contains(err.Error(), bomb.want) {
				t.Errorf("got %.200v, want %s", err, bomb.want)
			}
		})
	}
}

func TestFileIsBounded(t *testing.T) {
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			_, err := File("A: " + bomb.text)
			if err == nil || len(err.Error()) > 500 {
				t.Errorf("got %.200v", err)
			}
		})
	}
}

func TestHugeNumbersStayText(t *testing.T) {
	digits := strings.Repeat("9", 200_000)
	got, err := Decode(kudo.ArrayType, "[1e999999999, -1e-999999999, "+digits+"]")
	list, ok := got.([]any)
	if err != nil || !ok || len(list) != 3 {
		t.Fatalf("got %.100v, %v", got, err)
	}
	for name, test := range map[string]struct {
		kind  kudo.ParameterType
		value string
	}{
		"an integer": {kudo.IntegerType, digits},
		"a number":   {kudo.NumberType, "1e999999999"},
	} {
		values, err := Values([]kudo.Parameter{{Name: "A", Type: test.kind}}, map[string]string{"A": test.value})
		if err != nil || values["A"] != test.value {
			t.Errorf("%s: got %.100v, %v", name, values["A"], err)
		}
	}
}
