package audit

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// author is the user in line.
const author = "system:serviceaccount:tandem-system:addon-manager"

// line is a patch as kube-apiserver logs it.
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
	log, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, step := range []struct {
		write string
		want  int
	}{{"", 0}, {line[:100], 0}, {line[100:], 1}, {line + line + line[:7], 2}, {line[7:], 1}} {
		if _, err := writer.WriteString(step.write); err != nil {
			t.Fatal(err)
		}
		entries, err := log.Next()
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

func checkEntry(t *testing.T, e *Entry) {
	t.Helper()
	if !e.Is("managedclusteraddons", "status") || e.Is("managedclusteraddons", "") || !e.IsSuccess() || e.Conflicts() || e.User.Username != author {
		t.Errorf("read as %+v", e)
	}
	if want := (types.NamespacedName{Namespace: "c", Name: "a"}); e.Object() != want {
		t.Errorf("object is %s, want %s", e.Object(), want)
	}
	if took := e.ResponseTime().Sub(e.RequestTime()).Microseconds(); took != 12245 {
		t.Errorf("took %d µs, want 12245", took)
	}
	if string(e.RequestObject) != `{"status":{}}` {
		t.Errorf("body is %s", e.RequestObject)
	}
}
