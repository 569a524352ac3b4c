package bundle

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
)

func TestRepository(t *testing.T) {
	const old, young = "operatorVersion: 1.9.0, urls: [../zz-1.9.0.tgz]", "operatorVersion: 1.10.0, urls: [../zz-1.10.0.tgz]"
	const lost = "operatorVersion: 1.10.0, urls: [none.tgz]"
	for sentence, test := range map[string]struct {
		main, other, deep []byte // the content of the indexes
		asks              string // of the task, beside the package
		want              string // the resolved version
		problem           string
	}{
		"of several versions the highest": {main: bundletest.IndexOf([]string{old, young}), want: "zz-1.10.0"},
		"the one that is asked for":       {main: bundletest.IndexOf([]string{old, young}), asks: "operatorVersion: 1.9.0", want: "zz-1.9.0"},
		"one that is not there": {main: bundletest.IndexOf([]string{old}), asks: "operatorVersion: 1.10.0",
			problem: "/main/ does not contain zz-1.10.0: available are zz-1.9.0"},
		"one that was removed": {main: bundletest.IndexOf([]string{old, young + ", removed: true"}), want: "zz-1.9.0"},
		"one that was removed, and is asked for": {main: bundletest.IndexOf([]string{old, young + ", removed: true"}), asks: "operatorVersion: 1.10.0",
			problem: "/main/ does not contain zz-1.10.0: available are zz-1.9.0"},
		"versions are text": {main: bundletest.IndexOf([]string{"appVersion: 1.10, " + young}),
			problem: "/zz-1.10.0.tgz contains zz-1.10.0, but the repository index lists zz-1.10-1.10.0"},
		"a tarball of another version": {main: bundletest.IndexOf([]string{"operatorVersion: 2.0.0, urls: [../zz-1.9.0.tgz]"}),
			problem: "/zz-1.9.0.tgz contains zz-1.9.0, but the repository index lists zz-2.0.0"},

		"one that is included":                    {main: bundletest.IndexOf(nil, "../other"), other: bundletest.IndexOf([]string{young}), want: "zz-1.10.0"},
		"one that is included by an included one": {main: bundletest.IndexOf(nil, "../other"), other: bundletest.IndexOf(nil, "../deep"), deep: bundletest.IndexOf([]string{young}), want: "zz-1.10.0"},
		"the highest of all":                      {main: bundletest.IndexOf([]string{old}, "../other"), other: bundletest.IndexOf([]string{young}), want: "zz-1.10.0"},
		"a repository overrules those that it includes": {
			main: bundletest.IndexOf([]string{young}, "../other"), other: bundletest.IndexOf([]string{lost}), want: "zz-1.10.0",
		},
		"what comes first overrules what comes later": {
			main: bundletest.IndexOf(nil, "../other", "../deep"), other: bundletest.IndexOf([]string{young}), deep: bundletest.IndexOf([]string{lost}), want: "zz-1.10.0",
		},
		"and so does what that includes": {
			main: bundletest.IndexOf(nil, "../other", "../lost"), other: bundletest.IndexOf(nil, "../deep"), deep: bundletest.IndexOf([]string{young}), want: "zz-1.10.0",
		},
		"what was removed is not taken from an included one": {
			main: bundletest.IndexOf([]string{old, young + ", removed: true"}, "../other"), other: bundletest.IndexOf([]string{young}), want: "zz-1.9.0",
		},
		"repositories that include each other and themselves": {
			main: bundletest.IndexOf([]string{old}, "../other", ".", "../deep/"), other: bundletest.IndexOf(nil, "../main", "../deep"), deep: bundletest.IndexOf([]string{young}, "../other/"), want: "zz-1.10.0",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			files := map[string][]byte{"/lost/index.yaml": bundletest.IndexOf([]string{lost})}
			for name, content := range bundletest.Tarballs(t, "1.9.0", "1.10.0") {
				files["/"+name] = content
			}
			for name, content := range map[string][]byte{"main": test.main, "other": test.other, "deep": test.deep} {
				files["/"+name+"/index.yaml"] = content
			}
			address, requests := shop(t, files)
			found, problem := childFrom(t, address+"/main/", test.asks)
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("found: %s", diff)
			}
			if (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
				t.Errorf("got problem %q, want %q", problem, test.problem)
			}
			for file, count := range requests {
				if count > 1 {
					t.Errorf("%s was asked for %d times", file, count)
				}
			}
		})
	}
}

// childFrom returns the resolved version of a task that refers to zz, and its problem.
func childFrom(t *testing.T, repository, asks string) (found, problem string) {
	t.Helper()
	parent := filepath.Join(t.TempDir(), "parent")
	bundletest.WritePackage(t, parent, "1.0.0", strings.TrimSuffix("package: zz, "+asks, ", "))
	b, err := (&Loader{Repository: repository}).LoadBundle(context.Background(), parent)
	if err != nil {
		t.Fatal(err)
	}
	if problems := b.Root().Problems; len(problems) > 0 {
		problem = problems[0].Message
	}
	return strings.Join(b.Brings(), ", "), problem
}

func TestRepositoryInAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a mirror, 100%")
	for name, content := range bundletest.Tarballs(t, "1.9.0") {
		if err := os.MkdirAll(filepath.Join(dir, "included"), 0o755); err != nil {
			t.Fatal(err)
		}
		bundletest.WriteFile(t, filepath.Join(dir, name), content)
	}
	bundletest.WriteFile(t, filepath.Join(dir, "index.yaml"), bundletest.IndexOf(nil, "included"))
	bundletest.WriteFile(t, filepath.Join(dir, "included", "index.yaml"), bundletest.IndexOf([]string{"operatorVersion: 1.9.0, urls: [../zz-1.9.0.tgz]"}))
	for sentence, repository := range map[string]string{"by its path": dir, "by its URL": (&url.URL{Scheme: "file", Path: dir}).String()} {
		t.Run(sentence, func(t *testing.T) {
			if found, problem := childFrom(t, repository, ""); found != "zz-1.9.0" || problem != "" {
				t.Errorf("got %s, %s", found, problem)
			}
		})
	}
}

func TestRepositoryThatIsNone(t *testing.T) {
	files := map[string][]byte{
		"/page/index.yaml":     []byte("<!doctype html>\n<title>Not found</title>\n"),
		"/text/index.yaml":     []byte("404: not found"),
		"/typed/index.yaml":    []byte("apiVersion: v1\nentries:\n  zz: {urls: x}\nincludes: a\n"),
		"/empty/index.yaml":    {},
		"/includes/index.yaml": bundletest.IndexOf(nil, "../none"),
		"/local/index.yaml":    bundletest.IndexOf(nil, "file:///etc"),
	}
	for i := range repositoriesLimit + 1 {
		files[fmt.Sprintf("/chain%d/index.yaml", i)] = bundletest.IndexOf(nil, fmt.Sprintf("../chain%d", i+1))
	}
	address, _ := shop(t, files)
	for name, want := range map[string]string{
		"page":     "/page/index.yaml: not an index of KUDO packages: ",
		"text":     "/text/index.yaml: not an index of KUDO packages: apiVersion is missing",
		"typed":    "/typed/index.yaml: not an index of KUDO packages: line 3: cannot unmarshal !!map into []bundle.IndexEntry; line 4: ",
		"empty":    "/empty/index.yaml: not an index of KUDO packages: apiVersion is missing",
		"includes": "downloading " + address + "/none/index.yaml: the server returned 404 Not Found",
		"local":    address + "/local/index.yaml refers to file:///etc: the URL must use https",
		"chain0":   "the index includes more than 50 repositories",
	} {
		t.Run(name, func(t *testing.T) {
			parent := filepath.Join(t.TempDir(), "parent")
			bundletest.WritePackage(t, parent, "1.0.0", "package: zz")
			_, err := (&Loader{Repository: address + "/" + name}).LoadBundle(context.Background(), parent)
			if err == nil || !strings.HasPrefix(err.Error(), "reading the repository: ") || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	for sentence, test := range map[string]struct{ from, address, digest, want string }{
		"what lies beside the index":                     {from: "https://a/r/index.yaml", address: "zz.tgz", want: "https://a/r/zz.tgz"},
		"a repository beside it":                         {from: "https://a/r/index.yaml", address: "../s", want: "https://a/s"},
		"another server":                                 {from: "https://a/index.yaml", address: "https://b/zz.tgz", want: "https://b/zz.tgz"},
		"to http, from http":                             {from: "http://a/index.yaml", address: "http://b/zz.tgz", want: "http://b/zz.tgz"},
		"to https, from http":                            {from: "http://a/index.yaml", address: "https://b/zz.tgz", want: "https://b/zz.tgz"},
		"to http, from https":                            {from: "https://a/index.yaml", address: "http://b/zz.tgz"},
		"to http, from https, to what a digest is of":    {from: "https://a/index.yaml", address: "http://b/zz.tgz", digest: "ff", want: "http://b/zz.tgz"},
		"to a file, from http":                           {from: "http://a/index.yaml", address: "file:///zz.tgz"},
		"to a file, from https, whatever the digest is":  {from: "https://a/index.yaml", address: "file:///zz.tgz", digest: "ff"},
		"to the network, from a file":                    {from: "file:///r/index.yaml", address: "http://b/zz.tgz", want: "http://b/zz.tgz"},
		"to a file, from a file":                         {from: "file:///r/index.yaml", address: "zz.tgz", want: "file:///r/zz.tgz"},
		"nowhere":                                        {from: "https://a/index.yaml", address: "https://b:x/zz.tgz"},
		"a path of the server, from a page with a query": {from: "https://a/r/index.yaml?token=x", address: "zz.tgz", want: "https://a/r/zz.tgz"},
	} {
		t.Run(sentence, func(t *testing.T) {
			from, err := url.Parse(test.from)
			if err != nil {
				t.Fatal(err)
			}
			to, err := follow(from, test.address, test.digest)
			if (err == nil) != (test.want != "") || err == nil && to.String() != test.want {
				t.Errorf("got %v, %v, want %s", to, err, test.want)
			}
		})
	}
}

// FuzzParseIndex checks that an index is either rejected with a one-line error or has an entry that is not removed.
func FuzzParseIndex(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nentries:\n  zz:\n  - {operatorVersion: 1.0.0, appVersion: 1.10, urls: [a], digest: ff, removed: true}\nincludes: [b]\n"))
	f.Add([]byte("apiVersion: [v1]\nentries: {zz: [null, {removed: 1}], yy: }\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		found, err := ParseIndex(content)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			return
		}
		for operator := range found.Entries {
			var task kudo.Task
			task.Spec.Package = operator
			if chosen, err := listing(found.Entries).choose(task); err == nil && chosen.Removed {
				t.Errorf("%q: %+v was removed", operator, chosen)
			}
		}
	})
}
