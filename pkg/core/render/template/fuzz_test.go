package template

import (
	"errors"
	"strings"
	"testing"
)

// FuzzExecute checks that executing any template results in a text within limits, or in an *Error of one line.
func FuzzExecute(f *testing.F) {
	f.Add(`{{ $d := dict }}{{ $_ := set $d "a" (list $d) }}{{ $d }}`)
	f.Add(`{{ $d := list }}{{ range until 60 }}{{ $d = list $d $d }}{{ end }}{{ eq $d $d }}`)
	f.Add(`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}{{ range 9 }}{{ end }}`)
	f.Add(`{{ merge .Params (dict "a" .Params) | toYaml | nindent 4 | replace "a" "b" | quote }}`)
	f.Add(`{{ regexReplaceAll "(a+)" (repeat 9 "a") "$1$1" | printf "%9s" | splitList "" | uniq | join "-" }}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := run(text)
		if err == nil {
			if len(got) > maxTextBytes {
				t.Fatalf("it renders %d bytes", len(got))
			}
			return
		}
		var problem *Error
		if !errors.As(err, &problem) || problem.Template != "t" || err.Error() == "" {
			t.Fatalf("want an *Error of template t, got %v", err)
		}
		if strings.ContainsAny(err.Error()+problem.Err.Error(), "\n\r\v\f\u0085\u2028\u2029") {
			t.Fatalf("the error has more than one line: %q", err)
		}
	})
}
