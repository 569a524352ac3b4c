package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// shop serves files by path and counts the requests.
func shop(t *testing.T, files map[string][]byte) (address string, requests map[string]int) {
	t.Helper()
	requests = map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.URL.Path]++
		content, found := files[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		if _, err := w.Write(content); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

// load loads the package and lists its members, with the resolved references of their tasks, and all errors.
func load(t *testing.T, l *Loader, name string) (members, problems []string) {
	t.Helper()
	b, err := l.LoadBundle(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range b.Members {
		_, version := m.Objects("ns")
		line := version.Name
		for i, task := range version.Spec.Tasks {
			if task.Kind == kudo.TaskKudoOperator {
				if task.Spec.OperatorVersionName != m.Children[i].Name {
					t.Errorf("%s: task %s: got the exact name %q, want %q", version.Name, task.Name, task.Spec.OperatorVersionName, m.Children[i].Name)
				}
				line += " " + strings.Join([]string{task.Spec.Package, task.Spec.AppVersion, task.Spec.OperatorVersion}, "_")
			}
		}
		members = append(members, line)
		for _, problem := range pack.Errors(m.Problems) {
			problem.File = m.file(problem.File)
			problems = append(problems, strings.ReplaceAll(problem.String(), filepath.Dir(name), "DIR"))
		}
	}
	return members, problems
}

func TestBundle(t *testing.T) {
	dir := t.TempDir()
	for name, children := range map[string][]string{
		"zz": nil, "old": nil, "left": {"package: ../zz"}, "right": {"package: ../zz, instanceName: store"},
		"diamond":   {"package: ../left", "package: ../right"},
		"inside":    {"package: ./packages/inner"},
		"tarred":    {"package: ../inside.tgz"},
		"asks":      {"package: ../zz, operatorVersion: 1.0.0"},
		"asks-more": {"package: ../zz, operatorVersion: 2.0.0", "package: ../zz, appVersion: 3.0.0, instanceName: b"},
		"missing":   {"package: ./none", "package: ../zz/operator.yaml"},
		"a":         {"package: ../b"}, "b": {"package: ../c"}, "c": {"package: ../a"},
		"same-name": {"package: ../zz", "package: ../zz"},
		"twice":     {"package: ../zz", "package: ../twins/zz, instanceName: other"},
		"named":     {"package: zz"},
		"namesakes": {"package: yy", "package: zz, operatorVersion: 2.0.0, instanceName: yy"},
		"again":     {"package: again"},
		"itself":    {"package: ."},
		"linked":    {"package: ../zz", "package: ../link, instanceName: b"},
		"escaping":  {"package: ../escape.tgz"},
	} {
		bundletest.WritePackage(t, filepath.Join(dir, name), "1.0.0", children...)
	}
	bundletest.WritePackage(t, filepath.Join(dir, "twins", "zz"), "1.0.0", "package: ../../old")
	bundletest.WritePackage(t, filepath.Join(dir, "inside", "packages", "inner"), "0.1.0", "package: ../../", "package: ../deep")
	bundletest.WritePackage(t, filepath.Join(dir, "inside", "packages", "inner"), "0.1.0", "package: ../deep.tgz")
	bundletest.WritePackage(t, filepath.Join(dir, "deep"), "0.2.0")
	bundletest.WriteFile(t, filepath.Join(dir, "inside", "packages", "deep.tgz"), bundletest.TarballOf(t, filepath.Join(dir, "deep")))
	bundletest.WriteFile(t, filepath.Join(dir, "inside.tgz"), bundletest.TarballOf(t, filepath.Join(dir, "inside")))
	if err := os.Symlink(filepath.Join(dir, "zz"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	bundletest.WritePackage(t, filepath.Join(dir, "escape"), "1.0.0", "package: ../zz", "package: /etc", "package: ./none")
	bundletest.WriteFile(t, filepath.Join(dir, "escape.tgz"), bundletest.TarballOf(t, filepath.Join(dir, "escape")))

	for name, test := range map[string]struct{ members, problems []string }{
		"zz":      {members: []string{"zz-1.0.0"}},
		"diamond": {members: []string{"zz-1.0.0", "left-1.0.0 zz__1.0.0", "right-1.0.0 zz__1.0.0", "diamond-1.0.0 left__1.0.0 right__1.0.0"}},
		"inside":  {members: []string{"deep-0.2.0", "inner-0.1.0 deep__0.2.0", "inside-1.0.0 inner__0.1.0"}},
		"tarred":  {members: []string{"deep-0.2.0", "inner-0.1.0 deep__0.2.0", "inside-1.0.0 inner__0.1.0", "tarred-1.0.0 inside__1.0.0"}},
		"asks":    {members: []string{"zz-1.0.0", "asks-1.0.0 zz__1.0.0"}},
		"asks-more": {members: []string{"zz-1.0.0", "asks-more-1.0.0 ../zz__2.0.0 ../zz_3.0.0_"}, problems: []string{
			`DIR/asks-more/operator.yaml:5:41: error: task "t1": package "../zz": its operatorVersion is "1.0.0", but the task requests "2.0.0"`,
			`DIR/asks-more/operator.yaml:6:41: error: task "t2": package "../zz": its appVersion is "", but the task requests "3.0.0"`,
		}},
		"missing": {members: []string{"missing-1.0.0 ./none__ ../zz/operator.yaml__"}, problems: []string{
			`DIR/missing/operator.yaml:5:41: error: task "t1": package "./none": opening package: open DIR/missing/none: no such file or directory`,
			`DIR/missing/operator.yaml:6:41: error: task "t2": package "../zz/operator.yaml": DIR/zz/operator.yaml is neither a folder nor a ` +
				`tarball (.tgz): use the one that contains operator.yaml`,
		}},
		"a": {members: []string{"c-1.0.0 a__1.0.0", "b-1.0.0 c__1.0.0", "a-1.0.0 b__1.0.0"}, problems: []string{
			`DIR/a/operator.yaml:3:1: error: circular dependency: a-1.0.0 -> b-1.0.0 -> c-1.0.0 -> a-1.0.0: ` +
				`an operator cannot be a child of its own children; remove it from one of them`,
		}},
		"same-name": {members: []string{"zz-1.0.0", "same-name-1.0.0 zz__1.0.0 zz__1.0.0"}, problems: []string{
			`DIR/same-name/operator.yaml:3:1: error: task "t1" of same-name-1.0.0 and task "t2" of same-name-1.0.0 create children whose names ` +
				`both end in "zz" on the managed cluster: set a different instanceName on one of them`,
		}},
		"twice": {members: []string{"zz-1.0.0", "old-1.0.0", "zz-1.0.0 old__1.0.0", "twice-1.0.0 zz__1.0.0 zz__1.0.0"}, problems: []string{
			`DIR/twice/operator.yaml:3:1: error: DIR/zz and DIR/twins/zz are both OperatorVersion zz-1.0.0, but differ (plan deploy, task t1): ` +
				`raise operatorVersion in one of them`,
		}},
		"named": {members: []string{"named-1.0.0 zz__"}},
		"namesakes": {members: []string{"namesakes-1.0.0 yy__ zz__2.0.0"}, problems: []string{
			`DIR/namesakes/operator.yaml:3:1: error: task "t1" of namesakes-1.0.0 and task "t2" of namesakes-1.0.0 create children whose names ` +
				`both end in "yy" on the managed cluster: set a different instanceName on one of them`,
		}},
		"linked": {members: []string{"zz-1.0.0", "linked-1.0.0 zz__1.0.0 zz__1.0.0"}},
		"itself": {members: []string{"itself-1.0.0 itself__1.0.0"}, problems: []string{
			`DIR/itself/operator.yaml:3:1: error: circular dependency: itself-1.0.0 -> itself-1.0.0: ` +
				`an operator cannot be a child of its own children; remove it from one of them`,
		}},
		"escaping": {members: []string{"escape-1.0.0 ../zz__ /etc__ ./none__", "escaping-1.0.0 escape__1.0.0"}, problems: []string{
			`DIR/escape.tgz/operator.yaml:5:41: error: task "t1": package "../zz": "../zz" is outside of the tarball: put the package into it, or refer to it by its URL or operator name`,
			`DIR/escape.tgz/operator.yaml:6:41: error: task "t2": package "/etc": "/etc" is outside of the tarball: put the package into it, or refer to it by its URL or operator name`,
			`DIR/escape.tgz/operator.yaml:7:41: error: task "t3": package "./none": the tarball does not contain "none"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			members, problems := load(t, &Loader{}, filepath.Join(dir, name))
			if diff := cmp.Diff(test.members, members); diff != "" {
				t.Errorf("members:\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, problems); diff != "" {
				t.Errorf("problems:\n%s", diff)
			}
		})
	}
}

func TestBundleFitsParametersToChildren(t *testing.T) {
	for sentence, test := range map[string]struct {
		spec, file string // of the task, and the content of its parameterFile
		want       string // the expected problems
	}{
		"what the child needs": {spec: ", parameterFile: child.yaml", file: "SIZE: 3"},
		"nothing, and the child needs something": {
			want: `operator.yaml:5:34: error: task "t1": child-1.0.0 requires parameters, but the task has no parameterFile: parameter "SIZE": required, but has neither`,
		},
		"something of another type, and something that the child does not know": {
			spec: ", parameterFile: child.yaml", file: "SIZE: many\nTYPO: 1",
			want: `warning: task "t1": with the default parameters, the parameterFile is not valid for child-1.0.0: parameter "SIZE": ` +
				`value "many": must be an integer`,
		},
		"what depends on the parameters": {spec: ", parameterFile: child.yaml", file: "SIZE: {{ if .Params.ON }}3{{ else }}many{{ end }}"},
		"no map": {
			spec: ", parameterFile: child.yaml", file: "- SIZE",
			want: `templates/child.yaml: warning: does not render with the default parameters: line 1: must be a map of parameters`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			parent, child := filepath.Join(dir, "parent"), filepath.Join(dir, "child")
			bundletest.WritePackage(t, parent, "1.0.0", "package: ../child"+test.spec)
			bundletest.WritePackage(t, child, "1.0.0")
			bundletest.WriteFile(t, filepath.Join(child, "params.yaml"), []byte("parameters:\n- {name: SIZE, type: integer, trigger: deploy}\n"))
			if test.file != "" {
				if err := os.Mkdir(filepath.Join(parent, "templates"), 0o755); err != nil {
					t.Fatal(err)
				}
				bundletest.WriteFile(t, filepath.Join(parent, "templates", "child.yaml"), []byte(test.file))
			}
			b, err := (&Loader{}).LoadBundle(context.Background(), parent)
			if err != nil {
				t.Fatal(err)
			}
			problems := b.Root().Problems
			if (test.want == "") != (len(problems) == 0) || len(problems) > 1 {
				t.Fatalf("got %v, want %s", problems, test.want)
			}
			if test.want != "" && !strings.Contains(problems[0].String(), test.want) {
				t.Errorf("got %s, want %s", problems[0], test.want)
			}
		})
	}
}

func TestBundleOverTheNetwork(t *testing.T) {
	dir := t.TempDir()
	bundletest.WritePackage(t, filepath.Join(dir, "zz"), "1.10.0")
	tarball := bundletest.TarballOf(t, filepath.Join(dir, "zz"))
	files := map[string][]byte{"/zz.tgz": tarball, "/large.tgz": make([]byte, pack.MaxArchive+1), "/page.tgz": []byte("<html>")}
	address, requests := shop(t, files)
	bundletest.WritePackage(t, filepath.Join(dir, "loop"), "1.0.0", "package: '"+address+"/loop.tgz'")
	files["/loop.tgz"] = bundletest.TarballOf(t, filepath.Join(dir, "loop"))
	files["/index.yaml"] = fmt.Appendf(nil, `apiVersion: v1
entries:
  zz:
  - {name: zz, operatorVersion: 1.9.0, urls: [%[1]s/none.tgz]}
  - {name: zz, operatorVersion: 1.10.0, digest: %[2]x, urls: ["%[1]s/none.tgz", zz.tgz]}
  forged:
  - {name: forged, operatorVersion: 1.10.0, digest: ff, urls: [zz.tgz]}
  nowhere:
  - {name: nowhere, operatorVersion: 1.0.0}
  other:
  - {name: other, operatorVersion: 1.10.0, urls: [zz.tgz]}
`, address, sha256.Sum256(tarball))
	l := func() *Loader { return &Loader{Repository: address} }

	for name, test := range map[string]struct {
		children []string
		loader   *Loader
		members  []string
		problems []string // the expected problems
	}{
		"a URL, asked once": {
			children: []string{"package: '" + address + "/zz.tgz'", "package: '" + address + "/zz.tgz', instanceName: b"},
			loader:   &Loader{}, members: []string{"zz-1.10.0", "parent-1.0.0 zz__1.10.0 zz__1.10.0"},
		},
		"a name, in its highest version, from the URL that works": {
			children: []string{"package: zz"}, loader: l(), members: []string{"zz-1.10.0", "parent-1.0.0 zz__1.10.0"},
		},
		"a name in a version whose tarball is gone": {
			children: []string{"package: zz, operatorVersion: 1.9.0"}, loader: l(), members: []string{"parent-1.0.0 zz__1.9.0"},
			problems: []string{"none.tgz: the server returned 404 Not Found"},
		},
		"a name that is not there, and others that lead nowhere": {
			children: []string{"package: kafka", "package: nowhere", "package: forged"}, loader: l(),
			members:  []string{"parent-1.0.0 kafka__ nowhere__ forged__"},
			problems: []string{"repository " + address + " does not contain kafka", "has no URL for it", "expected ff"},
		},
		"a name that leads to another operator": {
			children: []string{"package: other"}, loader: l(), members: []string{"zz-1.10.0", "parent-1.0.0 other__"},
			problems: []string{"/zz.tgz contains zz-1.10.0, but the repository index lists other-1.10.0"},
		},
		"a tarball that is gone, needed twice": {
			children: []string{"package: '" + address + "/none.tgz'", "package: '" + address + "/none.tgz', instanceName: b"}, loader: &Loader{},
			members:  []string{"parent-1.0.0 " + address + "/none.tgz__ " + address + "/none.tgz__"},
			problems: []string{"the server returned 404 Not Found", "the server returned 404 Not Found"},
		},
		"a URL with the digest of what is there": {
			children: []string{fmt.Sprintf("package: '%s/zz.tgz#sha256=%x'", address, sha256.Sum256(tarball))},
			loader:   &Loader{}, members: []string{"zz-1.10.0", "parent-1.0.0 zz__1.10.0"},
		},
		"a URL with another digest, and with something else": {
			children: []string{fmt.Sprintf("package: '%s/zz.tgz#sha256=%064x'", address, 1), "package: '" + address + "/zz.tgz#sha256=1'"},
			loader:   &Loader{}, members: []string{fmt.Sprintf("parent-1.0.0 %[1]s/zz.tgz#sha256=%064[2]x__ %[1]s/zz.tgz#sha256=1__", address, 1)},
			problems: []string{fmt.Sprintf("expected %064x", 1), "the fragment after # must be sha256= and the 64 digits of the tarball's SHA-256"},
		},
		"a cycle through a URL": {
			children: []string{"package: '" + address + "/loop.tgz'"}, loader: &Loader{},
			members:  []string{"loop-1.0.0 loop__1.0.0", "parent-1.0.0 loop__1.0.0"},
			problems: []string{"circular dependency: parent-1.0.0 -> loop-1.0.0 -> loop-1.0.0"},
		},
		"a tarball without end, and a page": {
			children: []string{"package: '" + address + "/large.tgz'", "package: '" + address + "/page.tgz'"}, loader: &Loader{},
			members:  []string{"parent-1.0.0 " + address + "/large.tgz__ " + address + "/page.tgz__"},
			problems: []string{"more than 33554432 bytes", "reading a tarball (.tgz)"},
		},
		"a name, on the hub": {
			children: []string{"package: zz"}, loader: &Loader{Versions: storedVersions("zz-2.0.0", "zz-10.0.0", "yy-1.0.0")},
			members: []string{"parent-1.0.0 zz__10.0.0"},
		},
		"a name that is not on the hub either": {
			children: []string{"package: zz"}, loader: &Loader{Versions: storedVersions("yy-1.0.0")},
			members: []string{"parent-1.0.0 zz__"}, problems: []string{`on the hub: operator "zz" does not exist`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			clear(requests)
			parent := filepath.Join(t.TempDir(), "parent")
			bundletest.WritePackage(t, parent, "1.0.0", test.children...)
			members, problems := load(t, test.loader, parent)
			if diff := cmp.Diff(test.members, members); diff != "" {
				t.Errorf("members:\n%s", diff)
			}
			if len(problems) != len(test.problems) {
				t.Fatalf("got problems %q, want %q", problems, test.problems)
			}
			for i, problem := range problems {
				if !strings.Contains(problem, test.problems[i]) {
					t.Errorf("got problem %q, want %q", problem, test.problems[i])
				}
			}
			for file, count := range requests {
				if count > 1 {
					t.Errorf("%s was asked for %d times", file, count)
				}
			}
		})
	}
}

// storedVersions returns versions on the hub.
func storedVersions(names ...string) func() ([]kudo.OperatorVersion, error) {
	var versions []kudo.OperatorVersion
	for _, name := range names {
		v := kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
		v.Spec.Operator = corev1.ObjectReference{}
		v.Spec.Operator.Name, v.Spec.Version, _ = strings.Cut(name, "-")
		versions = append(versions, v)
	}
	return func() ([]kudo.OperatorVersion, error) { return versions, nil }
}

// An unreachable server is not a problem of the package.
func TestLoadingEndsAtUnreachableSources(t *testing.T) {
	address, _ := shop(t, nil)
	none := filepath.Join(t.TempDir(), "none")
	interrupted, interrupt := context.WithCancel(context.Background())
	interrupt()
	for sentence, test := range map[string]struct {
		ctx    context.Context
		loader *Loader
		want   string
	}{
		"a repository that is not there": {context.Background(), &Loader{Repository: address + "/none"},
			"reading the repository: downloading " + address + "/none/index.yaml: the server returned 404 Not Found"},
		"a folder that is not there": {context.Background(), &Loader{Repository: none},
			"reading the repository: open " + none + "/index.yaml: no such file or directory"},
		"a hub that is not there": {context.Background(),
			&Loader{Versions: func() ([]kudo.OperatorVersion, error) { return nil, errors.New("connection refused") }}, "connection refused"},
		"an interruption": {interrupted, &Loader{}, "context canceled"},
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			parent := filepath.Join(dir, "parent")
			bundletest.WritePackage(t, parent, "1.0.0", "package: ../child")
			bundletest.WritePackage(t, filepath.Join(dir, "child"), "1.0.0", "package: zz")
			_, err := test.loader.LoadBundle(test.ctx, parent)
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestPackageDoesNotLeadOut(t *testing.T) {
	dir := t.TempDir()
	parent, outside := filepath.Join(dir, "parent"), filepath.Join(dir, "outside")
	bundletest.WritePackage(t, parent, "1.0.0")
	bundletest.WritePackage(t, outside, "1.0.0")
	if err := os.Symlink(outside, filepath.Join(parent, "templates")); err != nil {
		t.Fatal(err)
	}
	_, problems := load(t, &Loader{}, parent)
	if len(problems) != 1 || !strings.Contains(problems[0], "templates: error: cannot be read: ") || !strings.Contains(problems[0], "it is a symbolic link that leads out of the package") {
		t.Errorf("got %q", problems)
	}
}

// A tarball of a few kilobytes may contain a hundred tarballs, each of which unpacks to many megabytes.
func TestTarballsTogetherAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "zz")
	bundletest.WritePackage(t, dir, "1.0.0")
	content := bundletest.TarballOf(t, dir)
	_, size, err := pack.Archive(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	l := &Loader{room: 2*size + 1}
	for range 2 {
		if _, err := l.ReadArchive("zz.tgz", bytes.NewReader(content)); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.ReadArchive("zz.tgz", bytes.NewReader(content)); err == nil || !strings.Contains(err.Error(), "zz.tgz: the required tarballs") {
		t.Errorf("a third one: %v", err)
	}
}

// A package may refer to a hundred tarballs: what was found to be too much is not downloaded, too.
func TestNothingIsDownloadedAfterTheLimit(t *testing.T) {
	dir := t.TempDir()
	bundletest.WritePackage(t, filepath.Join(dir, "zz"), "1.0.0")
	content := bundletest.TarballOf(t, filepath.Join(dir, "zz"))
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests++
		if _, err := w.Write(content); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	parent := filepath.Join(dir, "parent")
	bundletest.WritePackage(t, parent, "1.0.0", "package: "+server.URL+"/1.tgz", "package: "+server.URL+"/2.tgz", "package: "+server.URL+"/3.tgz")
	_, problems := load(t, &Loader{Room: 1}, parent)
	if requests != 1 || len(problems) != 3 || !strings.Contains(problems[2], "the required tarballs contain more than 1 bytes in total") {
		t.Errorf("%d requests, %q", requests, problems)
	}
}

// Apache, for example, sends a tarball as a tar file with the encoding gzip to clients that accept it.
func TestDownloadTakesTarballsAsTheyAre(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "zz")
	bundletest.WritePackage(t, dir, "1.0.0")
	content := bundletest.TarballOf(t, dir)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			w.Header().Set("Content-Encoding", "gzip")
		}
		if _, err := w.Write(content); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	l := &Loader{http: httpClient(nil)}
	got, err := l.fetch(context.Background(), server.URL+"/zz.tgz")
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(content), err)
	}
}

func TestDownloadIsLimitedInTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	l := &Loader{http: httpClient(nil)}
	l.http.Timeout = 50 * time.Millisecond
	_, err := l.fetch(context.Background(), server.URL+"/zz.tgz")
	if err == nil || !strings.Contains(err.Error(), "downloading "+server.URL+"/zz.tgz: ") || !strings.Contains(err.Error(), "Client.Timeout") {
		t.Errorf("got %v", err)
	}
}

// overHTTPS loads a bundle from a server with https.
func overHTTPS(t *testing.T, tarball []byte) *Bundle {
	t.Helper()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(tarball); err != nil {
			t.Error(err)
		}
	}))
	defer secure.Close()
	l := &Loader{}
	l.Begin()
	l.http.Transport = secure.Client().Transport
	from, err := l.OpenSource(t.Context(), secure.URL+"/parent.tgz")
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.LoadFrom(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPackageOverHTTPSDoesNotLeadToHTTP(t *testing.T) {
	dir := t.TempDir()
	tarballOf := func(name string, packages ...string) []byte {
		folder := filepath.Join(dir, name)
		bundletest.WritePackage(t, folder, "1.0.0", packages...)
		return bundletest.TarballOf(t, folder)
	}
	files := map[string][]byte{"/zz.tgz": tarballOf("zz")}
	plain, requests := shop(t, files)
	files["/yy.tgz"] = tarballOf("yy", "package: '"+plain+"/zz.tgz'")
	pinned := func(name string) string {
		return fmt.Sprintf("%s/%s#sha256=%x", plain, name, sha256.Sum256(files["/"+name]))
	}
	for sentence, test := range map[string]struct {
		address string
		refused bool
	}{
		"without a digest": {plain + "/zz.tgz", true},
		"with one":         {pinned("zz.tgz"), false},
		"without one, through a package with one": {pinned("yy.tgz"), true},
	} {
		t.Run(sentence, func(t *testing.T) {
			clear(requests)
			b := overHTTPS(t, tarballOf("parent", "package: '"+test.address+"'"))
			if err := b.CheckValid("parent"); (err != nil) != test.refused || (requests["/zz.tgz"] == 0) != test.refused {
				t.Errorf("got %v after %d requests", err, requests["/zz.tgz"])
			}
			var problems []pack.Problem
			for _, m := range b.Members {
				problems = append(problems, m.Problems...)
			}
			const problem = "/zz.tgz: the URL must use https, or, for a tarball, have a digest"
			if test.refused && !strings.Contains(fmt.Sprint(problems), "refers to "+plain+problem) {
				t.Errorf("got %v", problems)
			}
		})
	}
	t.Run("without one, through an entry of an index with one", func(t *testing.T) {
		l := &Loader{}
		l.Begin()
		from, err := l.openEntry(t.Context(), IndexEntry{
			index: &url.URL{Scheme: "https", Host: "index.example"}, URLs: []string{plain + "/yy.tgz"}, Digest: fmt.Sprintf("%x", sha256.Sum256(files["/yy.tgz"])),
		})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := l.LoadFrom(t.Context(), from); err != nil || b.CheckValid("yy") == nil {
			t.Errorf("got %v, and no problem", err)
		}
	})
}

func TestATarballWithADigestIsNotTheOneWithout(t *testing.T) {
	dir := t.TempDir()
	tarballOf := func(folder, version string) []byte {
		bundletest.WritePackage(t, filepath.Join(dir, folder, "zz"), version)
		return bundletest.TarballOf(t, filepath.Join(dir, folder, "zz"))
	}
	answers := [][]byte{tarballOf("forged", "6.6.6"), tarballOf("right", "1.0.0")}
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(answers[min(requests, 1)]); err != nil {
			t.Error(err)
		}
		requests++
	}))
	defer server.Close()
	parent := filepath.Join(dir, "parent")
	bundletest.WritePackage(t, parent, "1.0.0", fmt.Sprintf("package: '%s/zz.tgz', instanceName: a", server.URL),
		fmt.Sprintf("package: '%s/zz.tgz#sha256=%x', instanceName: b", server.URL, sha256.Sum256(answers[1])))
	b, err := (&Loader{}).LoadBundle(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Root().Children[2].Name; got != "zz-1.0.0" {
		t.Errorf("the reference with a digest is to %s", got)
	}
}

func TestDownloadDoesNotLeaveHTTPS(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	l := &Loader{http: httpClient(nil)}
	l.http.Transport = secure.Client().Transport
	_, err := l.fetch(context.Background(), secure.URL)
	if err == nil || !strings.Contains(err.Error(), "redirected from https to http") {
		t.Errorf("got %v", err)
	}
}
