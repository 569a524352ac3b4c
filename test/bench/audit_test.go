package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// line is how kube-apiserver logs a patch.
const line = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"1","stage":"ResponseComplete",` +
	`"requestURI":"/apis/addon.open-cluster-management.io/v1alpha1/namespaces/c/managedclusteraddons/a/status?fieldManager=m\u0026force=true",` +
	`"verb":"patch","user":{"username":"system:serviceaccount:tandem-system:addon-manager"},"userAgent":"addon-manager/devel",` +
	`"objectRef":{"resource":"managedclusteraddons","namespace":"c","name":"a","apiGroup":"addon.open-cluster-management.io",` +
	`"apiVersion":"v1alpha1","subresource":"status"},"responseStatus":{"metadata":{},"code":200},"requestObject":{"status":{}},` +
	`"requestReceivedTimestamp":"2026-11-21T12:00:00.000100Z","stageTimestamp":"2026-11-21T12:00:00.012345Z"}` + "\n"

func TestAuditLogIsReadWhileItIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	writer, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	reader, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	log := &auditLog{file: reader}
	for _, step := range []struct {
		write string
		want  int
	}{{"", 0}, {line[:100], 0}, {line[100:], 1}, {line + line + line[:7], 2}, {line[7:], 1}} {
		if _, err := writer.WriteString(step.write); err != nil {
			t.Fatal(err)
		}
		entries, err := log.next()
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != step.want {
			t.Errorf("after %d bytes more there are %d entries, want %d", len(step.write), len(entries), step.want)
		}
		for i := range entries {
			checkEntry(t, &entries[i])
		}
	}
}

func checkEntry(t *testing.T, e *entry) {
	t.Helper()
	if !e.isStatus() || !e.succeeded() || e.conflicts() || e.isEvent() || e.User.Username != judge {
		t.Errorf("read as %+v", e)
	}
	if want := (types.NamespacedName{Namespace: "c", Name: "a"}); e.object() != want {
		t.Errorf("object is %s, want %s", e.object(), want)
	}
	if took := e.answered().Sub(e.received()).Microseconds(); took != 12245 {
		t.Errorf("took %d µs, want 12245", took)
	}
	if string(e.RequestObject) != `{"status":{}}` {
		t.Errorf("body is %s", e.RequestObject)
	}
}

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
			got, err := patchType(&entry{Verb: tc.verb, RequestURI: tc.uri, RequestObject: []byte(tc.body)})
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
