package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tandem-addons/tandem/test/audit"
)

func TestPatchType(t *testing.T) {
	for name, tc := range map[string]struct {
		verb, uri, body string
		want            types.PatchType
		wantError       string
	}{
		"force is there in a server-side apply only": {"patch", "/a?fieldManager=m&force=true", `{}`, types.ApplyPatchType, ""},
		"a list is a JSON patch":                     {"patch", "/a?fieldManager=m", `[]`, types.JSONPatchType, ""},
		"everything else merges":                     {"patch", "/a", `{}`, types.MergePatchType, ""},
		"a deletion is no patch":                     {"delete", "/a", ``, "", "it is no patch"},
		"a patch without a body cannot be sent":      {"patch", "/a", ``, "", "it is no patch"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := patchType(&audit.Entry{Verb: tc.verb, RequestURI: tc.uri, RequestObject: []byte(tc.body)})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if diff := cmp.Diff([]any{tc.want, tc.wantError}, []any{got, text}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
