package chart

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tandem-addons/tandem/pkg/core/catalog"
)

// lock is what `helm dependency update` wrote for depending.
const (
	depending = "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- name: db\n  version: 1.x.x\n  repository: http://127.0.0.1:38123\n" +
		"  alias: cache\n  condition: cache.enabled\n  tags: [a]\n"
	lock = "dependencies:\n- name: db\n  repository: http://127.0.0.1:38123\n  version: 1.4.2\n" +
		"digest: sha256:61481ef17c022fd3ccea24b901029a776580d77ac599bfc1097d75141342e72b\ngenerated: \"2026-11-27T04:15:03.307430771Z\"\n"
)

func TestMissingDependencies(t *testing.T) {
	want := []catalog.Reference{{Repository: "http://127.0.0.1:38123", Chart: "db", Version: "1.4.2"}}
	exact := strings.Replace(depending, "1.x.x", "1.4.2", 1)
	for sentence, test := range map[string]struct {
		files map[string]string
		want  []catalog.Reference
		err   string
	}{
		"none":                   {files: map[string]string{"Chart.yaml": metadata}},
		"one in charts":          {files: map[string]string{"Chart.yaml": depending, "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"}},
		"an exact version":       {files: map[string]string{"Chart.yaml": exact}, want: want},
		"one twice":              {files: map[string]string{"Chart.yaml": exact + "- name: db\n  alias: other\n  version: 1.4.2\n  repository: http://127.0.0.1:38123\n"}, want: want},
		"a name of a repository": {files: map[string]string{"Chart.yaml": strings.Replace(exact, "http://127.0.0.1:38123", "'@example'", 1)}, want: []catalog.Reference{{Repository: "example", Chart: "db", Version: "1.4.2"}}},
		"a lock":                 {files: map[string]string{"Chart.yaml": depending, "Chart.lock": lock}, want: want},
		"another lock":           {files: map[string]string{"Chart.yaml": depending, "Chart.lock": strings.Replace(lock, "1.4.2", "1.4.3", 1)}, err: "Chart.lock does not belong to the dependencies in Chart.yaml: run 'helm dependency update'"},
		"a constraint":           {files: map[string]string{"Chart.yaml": depending}, err: `dependency "db" is in Chart.yaml, but not in folder charts, and its version "1.x.x" is not exact, and there is no Chart.lock: run 'helm dependency update'`},
		"a folder":               {files: map[string]string{"Chart.yaml": strings.Replace(exact, "http://127.0.0.1:38123", "file://../db", 1)}, err: "its repository is a folder: run 'helm dependency build'"},
		"no repository":          {files: map[string]string{"Chart.yaml": strings.Replace(exact, "http://127.0.0.1:38123", "''", 1)}, err: "it has no repository: run 'helm dependency build'"},
		"a place that is none":   {files: map[string]string{"Chart.yaml": strings.Replace(exact, "http://127.0.0.1:38123", "ftp://x", 1)}, err: `"ftp://x" is no URL of a repository`},
	} {
		t.Run(sentence, func(t *testing.T) {
			folder := fstest.MapFS{}
			for name, text := range test.files {
				folder[name] = &fstest.MapFile{Data: []byte(text)}
			}
			archive, err := Pack(folder)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Missing(context.Background(), archive)
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if test.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got error %v, want %q", err, test.err)
			}
		})
	}
}
