package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseReference(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for place, test := range map[string]struct {
		repository string
		want       Reference
		err        string
	}{
		"oci://registry.example.com/charts/web":    {want: Reference{Repository: "oci://registry.example.com/charts", Chart: "web"}},
		"oci://localhost:5000/web:1.2.3_a":         {want: Reference{Repository: "oci://localhost:5000", Chart: "web", Version: "1.2.3+a"}},
		"oci://localhost:5000/web@" + digest:       {want: Reference{Repository: "oci://localhost:5000", Chart: "web", Manifest: digest}},
		"https://charts.example.com/stable/web":    {want: Reference{Repository: "https://charts.example.com/stable", Chart: "web"}},
		"https://charts.example.com/web-1.0.0.tgz": {want: Reference{Archive: "https://charts.example.com/web-1.0.0.tgz"}},
		"example/web":                {want: Reference{Repository: "example", Chart: "web"}},
		"web":                        {repository: "https://charts.example.com", want: Reference{Repository: "https://charts.example.com", Chart: "web"}},
		"oci://registry.example.com": {err: "the name of the chart is missing"},
		"oci://registry.example.com/web@sha256:12":      {err: `digest "sha256:12" is not sha256: and 64 hexadecimal digits`},
		"https://charts.example.com":                    {err: "name a chart elsewhere as oci://HOST/PATH/NAME"},
		"https://joe:secret@charts.example.com/web":     {err: "the URL contains credentials"},
		"https://joe:secret@charts.example.com/web.tgz": {err: "the URL contains credentials"},
		"ftp://charts.example.com/web":                  {err: `"ftp://charts.example.com" is no URL of a repository (https://) or registry (oci://)`},
		"./a/b":                                         {err: "neither a folder nor an archive"},
		"example/web/":                                  {want: Reference{Repository: "example", Chart: "web"}},
		"example/we b":                                  {err: `"we b" is not the name of a chart`},
		"we/b":                                          {repository: "https://charts.example.com", err: `"we/b" is not the name of a chart`},
		"web\x1b":                                       {repository: "https://charts.example.com", err: `"web\x1b" is not the name of a chart`},
		"web2":                                          {repository: "charts/x", err: "name a chart elsewhere"},
		"https://charts.example.com/" + strings.Repeat("x", 251): {err: "is not the name of a chart"},
	} {
		got, err := ParseReference(place, test.repository)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", place, diff)
		}
		if test.err == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: got error %v, want %q", place, err, test.err)
		}
	}
}

func TestChoose(t *testing.T) {
	versions := []string{"1.2.0", "v1.10.0", "1.9.1", "2.0.0-rc.1", "not-a-version", "0.1.0", "1.2.3+build"}
	for wanted, test := range map[string]struct{ want, err string }{
		"":              {want: "v1.10.0"},
		"1.2.0":         {want: "1.2.0"},
		"v1.2.0":        {want: "1.2.0"},
		"1.10.0":        {want: "v1.10.0"},
		"not-a-version": {want: "not-a-version"},
		"1.2":           {want: "1.2.3+build"},
		"~1.9":          {want: "1.9.1"},
		">=2.0.0-0":     {want: "2.0.0-rc.1"},
		"1.2.4":         {err: `chart "web" has no version "1.2.4": the nearest are v1.10.0, 1.9.1, 1.2.3+build, 1.2.0; the highest is 2.0.0-rc.1`},
		"3.0.0":         {err: `chart "web" has no version "3.0.0": the nearest are 2.0.0-rc.1, v1.10.0`},
		"0.0.1":         {err: `has no version "0.0.1": the nearest are 1.2.0, 0.1.0; the highest is 2.0.0-rc.1`},
		">5":            {err: `chart "web" has no version that satisfies ">5": the highest are 2.0.0-rc.1, v1.10.0, 1.9.1, 1.2.3+build, 1.2.0`},
		"latest":        {err: `version "latest" is neither a version such as 1.2.3 nor a constraint such as 1.x`},
	} {
		got, err := Choose("web", wanted, versions)
		if got != test.want || test.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%q: got %q and error %v, want %q and %q", wanted, got, err, test.want, test.err)
		}
	}
	if _, err := Choose("web", "", []string{"1.0.0-a"}); err == nil || !strings.Contains(err.Error(), "has only pre-releases: choose one with --version: the highest are 1.0.0-a") {
		t.Error(err)
	}
	if _, err := Choose("web", "1.0.0", nil); err == nil || !strings.Contains(err.Error(), `chart "web" has no versions`) {
		t.Error(err)
	}
}

func TestMirrors(t *testing.T) {
	mirrors, err := ParseMirrors("https://charts.example.com=https://mirror.example.org/charts/ oci://docker.io=oci://mirror.example.org,https://charts.example.com/a=oci://other.example.org")
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		"https://charts.example.com":       "https://mirror.example.org/charts",
		"https://charts.example.com/b":     "https://mirror.example.org/charts/b",
		"https://charts.example.com/a/b":   "oci://other.example.org/b",
		"https://charts.example.computer":  "https://charts.example.computer",
		"oci://docker.io/charts":           "oci://mirror.example.org/charts",
		"oci://registry.example.com/a/web": "oci://registry.example.com/a/web",
	} {
		if got := MirrorOf(mirrors, place); got != want {
			t.Errorf("%s: got %s, want %s", place, got, want)
		}
	}
	for _, wrong := range []string{"a", "https://a.example.com", "https://a.example.com=b", "https://u:secret@a.example.com=https://b.example.com"} {
		if _, err := ParseMirrors(wrong); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got error %v", wrong, err)
		}
	}
}

func FuzzParseReference(f *testing.F) {
	for _, seed := range []string{"oci://a/b:1@c", "https://a/b", "a/b", "oci://", "://", "https://a/b.tgz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, place string) {
		ref, err := ParseReference(place, "")
		if err == nil && (ref.Archive == "") == (ref.Chart == "" || ref.Repository == "") {
			t.Errorf("%q: got %+v", place, ref)
		}
	})
}
