package template

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// attacks are templates that would crash the process, exhaust its memory or take too much time, with the expected error of each. A package
// may also contain them by mistake: a mistyped number, a loop over the wrong list.
var attacks = map[string]struct{ template, want string }{
	"a map put into itself": {
		`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ toYaml $d }}`, "error calling set: the map would contain itself",
	},
	"a map put into itself, printed": {
		`{{ $d := dict }}{{ $_ := set $d "a" $d }}{{ $d }}`, "error calling set: the map would contain itself",
	},
	"a map put into itself through a list": {
		`{{ $d := dict }}{{ $_ := set $d "a" (list 1 (dict "b" $d)) }}{{ toJson $d }}`, "error calling set: the map would contain itself",
	},
	"a map put into itself through chunks": {
		`{{ $d := dict }}{{ $_ := set $d "a" (chunk 1 (list $d)) }}{{ deepCopy $d }}`, "error calling set: the map would contain itself",
	},
	"a map put into one of its own": {
		`{{ $d := dict "in" (dict) }}{{ $_ := set $d.in "out" $d }}{{ $d | toPrettyJson }}`, "error calling set: the map would contain itself",
	},
	"the parameters put into themselves": {
		`{{ $_ := set .Params "A" .Params }}{{ .Params }}`, "error calling set: the map would contain itself",
	},
	"a value nested without end": {
		`{{ $d := dict }}{{ range until 10000 }}{{ $d = dict "a" $d }}{{ end }}{{ toYaml $d }}`, "nested more than 100 levels deep",
	},
	"a value nested without end, printed": {
		`{{ $d := list }}{{ range until 10000 }}{{ $d = list $d }}{{ end }}{{ $d }}`, "nested more than 100 levels deep",
	},
	"a value nested without end, compared": {
		`{{ $d := list }}{{ range until 10000 }}{{ $d = list $d }}{{ end }}{{ if eq $d $d }}{{ end }}`, "nested more than 100 levels deep",
	},
	"a value nested without end, compared through a pipe": {
		`{{ $d := list }}{{ range until 10000 }}{{ $d = list $d }}{{ end }}{{ if $d | ne 1 }}{{ end }}`, "nested more than 100 levels deep",
	},
	"JSON nested without end": {`{{ fromJson (printf "%s%s" (repeat 9000 "[") (repeat 9000 "]")) }}`, "nested more than 100 levels deep"},
	"a map that doubles": {
		`{{ $d := dict }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ toYaml $d }}`, "more than 1000000 steps",
	},
	"a list that doubles, printed":         {`{{ $d := list 1 }}{{ range until 60 }}{{ $d = list $d $d }}{{ end }}{{ $d }}`, "more than 1000000 steps"},
	"a list that doubles, compared":        {`{{ $d := list 1 }}{{ range until 60 }}{{ $d = list $d $d }}{{ end }}{{ eq $d $d }}`, "more than 1000000 steps"},
	"a list that doubles, as a number":     {`{{ $d := list 1 }}{{ range until 60 }}{{ $d = list $d $d }}{{ end }}{{ int $d }}`, "more than 1000000 steps"},
	"a list that doubles, by print":        {`{{ $d := list 1 }}{{ range until 60 }}{{ $d = list $d $d }}{{ end }}{{ $x := print $d }}`, "more than 1000000 steps"},
	"a list concatenated with itself":      {`{{ $d := list 1 }}{{ range until 60 }}{{ $d = concat $d $d }}{{ end }}`, "more than"},
	"a map merged with what holds it":      {`{{ $d := dict }}{{ range until 60 }}{{ $d = merge (dict "a" $d "b" $d) $d }}{{ end }}{{ $d }}`, "more than"},
	"a loop over a huge number":            {"{{ range 2000000000 }}{{ end }}", "more than 1000000 steps"},
	"a loop in a loop in a loop":           {"{{ range until 10000 }}{{ range until 10000 }}{{ range until 10000 }}{{ end }}{{ end }}{{ end }}", "more than 1000000 steps"},
	"nested until":                         {"{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}", "more than 1000000 steps"},
	"a loop over one list in itself":       {"{{ $l := until 90000 }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}", "more than 1000000 steps"},
	"a loop that only continues":           {"{{ range 2000000000 }}{{ continue }}{{ end }}", "more than 1000000 steps"},
	"a template that calls itself":         {`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, "more than 1000000 steps"},
	"a template that calls itself deeply":  {`{{ define "x" }}` + strings.Repeat("{{ if true }}", 500) + `{{ template "x" }}` + strings.Repeat("{{ end }}", 500) + `{{ end }}{{ template "x" }}`, "more than 1000000 steps"},
	"templates that call each other twice": {callingTwice(60), "more than 1000000 steps"},
	"nested deeply":                        {strings.Repeat("{{ if true }}", 40000) + strings.Repeat("{{ end }}", 40000), "nested more than 1000 levels deep"},
	"a huge indentation":                   {`{{ indent 1500000000 "x" }}`, "error calling indent: it renders more than 4 MiB"},
	"a huge new indentation":               {`{{ "x" | nindent 9223372036854775807 }}`, "error calling nindent: it renders more than 4 MiB"},
	"many lines indented":                  {`{{ repeat 1000000 "\n" | indent 1000 }}`, "it renders more than 4 MiB"},
	"a negative indentation":               {`{{ indent -1 "x" }}`, "error calling indent"},
	"a text for each letter":               {`{{ $x := repeat 1000000 "x" }}{{ replace "x" $x $x }}`, "error calling replace: it renders more than 4 MiB"},
	"a text between letters":               {`{{ $x := repeat 1000000 "x" }}{{ replace "" $x $x }}`, "error calling replace: it renders more than 4 MiB"},
	"a text between words":                 {`{{ $x := repeat 1000000 "x " }}{{ wrapWith 1 $x $x }}`, "error calling wrapWith: it renders more than 4 MiB"},
	"a text between items":                 {`{{ join (repeat 100000 "x") (until 10000) }}`, "error calling join: it renders more than 4 MiB"},
	"a text that doubles":                  {`{{ $x := "x" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}`, "it renders more than 4 MiB"},
	"a text quoted again":                  {`{{ $x := "\"" }}{{ range until 60 }}{{ $x = quote $x }}{{ end }}`, "more than"},
	"a text split to letters":              {`{{ splitList "" (repeat 4000000 "x") }}`, "error calling splitList: it creates a list of 4000001 items"},
	"a map of letters":                     {`{{ split "" (repeat 4000000 "x") }}`, "error calling split: it creates a list of 4000001 items"},
	"a map of some letters":                {`{{ splitn "" 3000000 (repeat 4000000 "x") }}`, "error calling splitn: it creates a list"},
	"wide formats":                         {`{{ printf (repeat 10000 "%999999d") 1 }}`, "error calling printf"},
	"wide formats by star":                 {`{{ printf "%*d%*d%*d%*d%*d" 999999 1 999999 1 999999 1 999999 1 999999 1 }}`, "error calling printf: it renders more than 4 MiB"},
	"one argument many times":              {`{{ printf (repeat 10000 "%[1]s") (repeat 100000 "x") }}`, "error calling printf: it takes more than 1000000 steps"},
	"many random digits":                   {`{{ randNumeric 50000000 }}`, "error calling randNumeric: 50000000 random characters exceed the limit of 4096"},
	"many random letters":                  {`{{ randAlphaNum 50000000 }}{{ randAlpha 5 }}{{ randAscii 5 }}`, "error calling randAlphaNum"},
	"many random bytes":                    {`{{ randBytes 9223372036854775807 }}`, "error calling randBytes"},
	"random letters in a loop": {
		`{{ range until 10000 }}{{ randAscii 4000 }}{{ end }}`, "more than 1000000 steps",
	},
	"passwords in a loop":         {`{{ range until 1000 }}{{ derivePassword 1 "long" "a" "b" "c" }}{{ end }}`, "error calling derivePassword: it takes more than 1000000 steps"},
	"hashes in a loop":            {`{{ range until 1000 }}{{ htpasswd "a" "b" }}{{ bcrypt "c" }}{{ end }}`, "it takes more than 1000000 steps"},
	"zones in a loop":             {`{{ range until 90000 }}{{ dateInZone "2006" now "Europe/Paris" }}{{ end }}`, "it takes more than 1000000 steps"},
	"sums of a huge text":         {`{{ $x := repeat 4000000 "x" }}{{ range until 10000 }}{{ sha512sum $x }}{{ end }}`, "it takes more than 1000000 steps"},
	"a list compared in one call": {`{{ uniq (until 90000) }}`, "error calling uniq: it takes more than 1000000 steps"},
	"a version of a megabyte":     {`{{ semverCompare (repeat 100000 ">1.0.0 ") "1.0.0" }}`, "error calling semverCompare: it takes more than 1000000 steps"},
	"numbers without end": {
		`{{ mulf 1.234567890123456e300` + strings.Repeat(" 1.234567890123456e300", 5000) + ` }}`, "error calling mulf: it takes more than 1000000 steps",
	},
	"a large expression":     {`{{ regexMatch (repeat 1000 "(a{1000})") "a" }}`, "error calling regexMatch: a regular expression of 9000 bytes exceeds the limit of 1000"},
	"a costly expression":    {`{{ regexFind (repeat 100 "(a?){1000}") (repeat 100000 "a") }}`, "error calling regexFind: it takes more than 1000000 steps"},
	"a quadratic expression": {`{{ regexFindAll "(?s)a.*b|a" (repeat 100000 "a") -1 }}`, "error calling regexFindAll: it takes more than 1000000 steps"},
	"an expression that grows": {
		`{{ $x := repeat 10000 "a" }}{{ regexReplaceAll "a" (repeat 1000 "a") $x }}`, "error calling regexReplaceAll: it renders more than 4 MiB",
	},
	"an expression that repeats": {
		`{{ regexReplaceAll ".+" (repeat 100000 "a") (repeat 100 "${0}") }}`, "error calling regexReplaceAll: it renders more than 4 MiB",
	},
}

// callingTwice returns a chain of templates. Each calls the next one twice.
func callingTwice(templates int) string {
	text := `{{ define "0" }}{{ end }}`
	for i := range templates {
		text += fmt.Sprintf(`{{ define "%d" }}{{ template "%d" }}{{ template "%d" }}{{ end }}`, i+1, i, i)
	}
	return text + fmt.Sprintf(`{{ template "%d" }}`, templates)
}

// Without limits the attacks take minutes, or crash the process.
func TestATemplateIsBounded(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			_, err := run(attack.template)
			var problem *Error
			if !errors.As(err, &problem) || problem.Template != "t" {
				t.Fatalf("want an *Error of template t, got %v", err)
			}
			if got := err.Error(); !strings.Contains(got, attack.want) || strings.Contains(got, passFunction+":") {
				t.Errorf("got  %.300s\nwant %s", got, attack.want)
			}
		})
	}
}

func TestBoundsLeaveRoom(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"a thousand entries set":        {`{{ $d := dict }}{{ range until 1000 }}{{ $_ := set $d (toString .) (dict "a" .) }}{{ end }}{{ len $d }}`, "1000"},
		"a thousand items appended":     {`{{ $l := list }}{{ range until 1000 }}{{ $l = append $l . }}{{ end }}{{ len $l }}`, "1000"},
		"a thousand lookups":            {`{{ $l := until 5000 }}{{ range until 1000 }}{{ if ge (index $l .) (len $l) }}x{{ end }}{{ end }}`, ""},
		"a large file indented":         {`{{ repeat 50000 "twenty characters..\n" | indent 4 | len }}`, "1200004"},
		"a large list as YAML":          {`{{ $l := list }}{{ range until 500 }}{{ $l = append $l (dict "name" (print "n" .) "value" (list 1 2 3)) }}{{ end }}{{ toYaml $l | sha1sum | len }}`, "40"},
		"lines of a file":               {`{{ regexSplit "\n" (repeat 500 "a line of a file that is some characters\n") -1 | len }}`, "501"},
		"a set of certificates":         {`{{ $ca := genCA "ca" 1 }}{{ range until 3 }}{{ $_ := genSignedCert "a" nil nil 1 $ca }}{{ end }}{{ len $ca.Cert | lt 500 }}`, "true"},
		"a long list without doubles":   {`{{ uniq (until 1000) | len }}`, "1000"},
		"one map in two":                {`{{ $d := dict "x" 1 }}{{ toJson (dict "a" $d "b" $d) }}`, `{"a":{"x":1},"b":{"x":1}}`},
		"a map seen by both that share": {`{{ $d := dict }}{{ $o := dict "in" $d }}{{ $_ := set $d "x" 1 }}{{ toJson $o }}`, `{"in":{"x":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(test.template)
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestInstrumentedFunctionsDoWhatTheyDid(t *testing.T) {
	for name, test := range map[string]struct{ template, want string }{
		"equal":                       {`{{ eq .Params.NODES "3" }} {{ eq 1 2 3 1 }} {{ .Params.NODES | eq "3" }} {{ ne 1 2 }} {{ eq nil nil }}`, "true true true true true"},
		"a comparison as a condition": {`{{ if and (eq .Params.NODES "3") (ne .Params.EMPTY "x") }}yes{{ end }}`, "yes"},
		"print":                       {`{{ print 1 2 "a" }} {{ printf "%05d|%-3s|%%|%v" 7 "a" (list 1) }} {{ println "a" | trim }}`, "1 2a 00007|a  |%|[1] a"},
		"a number in a format":        {`{{ printf "arn:aws:iam::123456789012:role/%s" "a" }}`, "arn:aws:iam::123456789012:role/a"},
		"escapes":                     {`{{ html "<" }} {{ js "'" }} {{ urlquery "a b" }}`, "&lt; \\' a+b"},
		"values that are printed":     {`{{ 1 }} {{ 1.5 }} {{ true }} {{ "a" }} {{ list 1 "a" }} {{ dict "a" 1 }} {{ .Params.HOSTS }}`, "1 1.5 true a [1 a] map[a:1] [a b]"},
		"merge keeps what is there":   {`{{ toJson (merge (dict "a" 1 "m" (dict "x" 1)) (dict "a" 2 "b" 2 "m" (dict "y" 2))) }}`, `{"a":1,"b":2,"m":{"x":1,"y":2}}`},
		"mergeOverwrite does not":     {`{{ toJson (mergeOverwrite (dict "a" 1 "m" (dict "x" 1)) (dict "a" 2 "m" (dict "x" 3))) }}`, `{"a":2,"m":{"x":3}}`},
		"mustMerge":                   {`{{ toJson (mustMerge (dict "a" 1) (dict "b" 2)) }}{{ toJson (mustMergeOverwrite (dict "a" 1) (dict "a" 2)) }}`, `{"a":1,"b":2}{"a":2}`},
		"a map merged into itself":    {`{{ $d := dict "a" 1 }}{{ toJson (merge $d (dict "b" $d)) }}`, `{"a":1,"b":{"a":1}}`},
		"replace and join":            {`{{ replace "a" "bb" "aXa" }} {{ join "-" .Params.HOSTS }} {{ "x" | indent 2 }} {{ wrapWith 3 "/" "ab cd ef" }}`, "bbXbb a-b   x ab/cd/ef"},
		"split":                       {`{{ (split "," "a,b")._1 }} {{ splitList "," "a,b" }} {{ (splitn "," 2 "a,b,c")._1 }}`, "b [a b] b,c"},
		"regular expressions":         {`{{ regexMatch "^a" "ab" }} {{ regexFind "b+" "abbc" }} {{ regexFindAll "[ab]" "abc" 1 }} {{ regexReplaceAll "(a)" "aba" "<$1>" }} {{ regexMatch "(" "a" }}`, "true bb [a] <a>b<a> false"},
		"lists":                       {`{{ list 1 2 | reverse }} {{ rest (list 1 2) }} {{ concat (list 1) (list 2) }} {{ uniq (list 1 1) }} {{ has 1 (list 1) }} {{ slice (list 1 2 3) 1 }}`, "[2 1] [2] [1 2] [1] true [2 3]"},
		"a loop with break":           {`{{ range $i, $x := .Params.HOSTS }}{{ $i }}{{ break }}{{ else }}none{{ end }}`, "0"},
		"a loop over nothing":         {`{{ range list }}x{{ else }}none{{ end }}`, "none"},
		"random text of a length":     {`{{ randAlphaNum 12 | len }} {{ randNumeric 3 | len }} {{ randBytes 3 | len }}`, "12 3 4"},
		"a decimal":                   {`{{ addf 1.5 2 }} {{ mulf 2 1.5 }} {{ add1f 1 }}`, "3.5 3 2"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := run(test.template)
			if err != nil || got != test.want {
				t.Errorf("got  %q, %v\nwant %q", got, err, test.want)
			}
		})
	}
}

// TestEveryFunctionHasACost calls each function with values of its parameters' types: charging must not panic, even if the function returns
// an error for such arguments.
func TestEveryFunctionHasACost(t *testing.T) {
	for name := range costs {
		if functions[name] == nil {
			t.Errorf("there is a cost for %q, but no such function", name)
		}
	}
	for name, function := range functions {
		kind := reflect.TypeOf(function)
		args := make([]reflect.Value, kind.NumIn())
		for i := range args {
			args[i] = reflect.Zero(kind.In(i))
		}
		before := maxSteps
		b := budget{steps: before}
		if err := b.charge(name, args); err != nil || b.steps > before-stepsPerCall {
			t.Errorf("%s costs %d steps: %v", name, before-b.steps, err)
		}
	}
}
