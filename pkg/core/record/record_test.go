package record

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var first = Revision{Kind: "Secret", Object: "sh.helm.release.v1.web.v1", Release: "web", Number: 1, Status: "deployed"}

// pack encodes a record as Helm does.
func pack(t testing.TB, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	if _, err := zipped.Write([]byte(text)); err != nil || zipped.Close() != nil {
		t.Fatal(err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
}

// of returns a record with more fields, and a chart with more fields.
func of(fields, chart string) string {
	return `{"name": "web", "namespace": "shops", "version": 1, "info": {"status": "deployed"}` + fields +
		`, "chart": {"metadata": {"name": "site", "version": "1.0.0"}` + chart + `}}`
}

func TestDecode(t *testing.T) {
	r, err := Decode(pack(t, of(`, "config": {"a": {"b": 12345678901234567890}}, "manifest": "m", "hooks": [{"path": "p", "manifest": "h"}]`,
		`, "values": {"on": "yes", "n": 1.5, "large": 12345678901234567890, "text": "a\u0085b"}, "schema": "e30=", "lock": {"dependencies": [{"name": "db"}]},
		"templates": [{"name": "templates/a.yaml", "data": "YQ=="}], "files": [{"name": "requirements.yaml", "data": "YQ=="}, {"name": "b/c.txt", "data": "YQ=="}, {"name": "charts/a.tgz.prov"}]`)), first, "shops")
	if err != nil {
		t.Fatal(err)
	}
	encoded, _ := json.Marshal(r.Values)
	if r.Revision != first || string(encoded) != `{"a":{"b":12345678901234567890}}` || r.Manifest != "m" || len(r.Hooks) != 1 || r.Missing() != "" || !r.Disables() {
		t.Errorf("got %+v", r)
	}
	files, err := r.Chart.Files()
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(files)); !slices.Equal(names, []string{"Chart.yaml", "b/c.txt", "charts/a.tgz.prov", "templates/a.yaml", "values.schema.json", "values.yaml"}) {
		t.Errorf("got %v", names)
	}
	if got, want := string(files["Chart.yaml"]), "name: site\nversion: 1.0.0\n"; got != want {
		t.Errorf("got %q", got)
	}
	if got, want := string(files["values.yaml"]), "large: 12345678901234567890\n\"n\": 1.5\n\"on\": \"yes\"\ntext: \"a\\Nb\"\n"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestOldRecordsAreNotCompressed(t *testing.T) {
	if _, err := Decode([]byte(base64.StdEncoding.EncodeToString([]byte(of("", "")))), first, "shops"); err != nil {
		t.Error(err)
	}
}

func TestMissing(t *testing.T) {
	for want, text := range map[string]string{
		"": of(`, "manifest": "# Source: site/templates/a.yaml\n", "config": null`, ""),
		"dependencies, which Helm does not store in its records: db, cache": `{"name": "web", "namespace": "shops", "version": 1, "chart": {"metadata":
			{"name": "site", "version": "1.0.0", "dependencies": [{"name": "db"}, {"name": "cache"}]}}}`,
		`subcharts in its folder charts, which Helm does not store in its records: "site/charts/db/a.yaml" is from one`: of(`, "manifest": "---\n# Source: site/charts/db/a.yaml\n"`, ""),
		`subcharts in its folder charts, which Helm does not store in its records: "site/charts/db/h.yaml" is from one`: of(`, "hooks": [{"path": "site/charts/db/h.yaml"}]`, ""),
	} {
		r, err := Decode(pack(t, text), first, "shops")
		if err != nil || r.Missing() != want {
			t.Errorf("got error %v and %+v, want %q", err, r, want)
		}
	}
}

func TestAlteredRecords(t *testing.T) {
	named := func(list, name string) string {
		encoded, _ := json.Marshal(name)
		return of("", `, "`+list+`": [{"name": `+string(encoded)+`}]`)
	}
	bomb := pack(t, of(`, "manifest": "`+strings.Repeat("x", maxBytes)+`"`, ""))
	for sentence, test := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                      {nil, "its JSON is invalid: unexpected end of JSON input"},
		"no base64":                    {[]byte("{}"), "its key release is not base64"},
		"a text":                       {pack(t, `"x"`), "its JSON is invalid"},
		"an archive that ends":         {pack(t, of("", ""))[:40], "it cannot be decompressed"},
		"one that grows":               {bomb, "it has more than 64 MiB without compression"},
		"one that is too large":        {make([]byte, maxStoredBytes+1), "more than the limit of 4194304"},
		"a wrong type":                 {pack(t, of(`, "manifest": 12345`, "")), `field "manifest" must not be a number`},
		"a wrong type of a value":      {pack(t, of(`, "config": [1]`, "")), "its values are no map"},
		"values that are nested":       {pack(t, of(`, "config": {"a": `+strings.Repeat("[", 200)+strings.Repeat("]", 200)+`}`, "")), "its values are nested more than 100 levels deep"},
		"values of a chart":            {pack(t, of("", `, "values": "x"`)), "the values of its chart are no map"},
		"no chart":                     {pack(t, `{"name": "web", "namespace": "shops", "version": 1}`), "it contains no chart"},
		"a chart without metadata":     {pack(t, `{"chart": {}}`), "its chart has no name or no version"},
		"metadata that is a text":      {pack(t, `{"chart": {"metadata": "x"}}`), "the metadata of its chart is invalid"},
		"a long name":                  {pack(t, `{"chart": {"metadata": {"version": "1", "name": "`+strings.Repeat("x", maxName)+`"}}}`), "or a too long one"},
		"another release":              {pack(t, strings.Replace(of("", ""), `"web"`, `"\u001b[1m"`, 1)), `it is of revision 1 of release "\x1b[1m" in namespace "shops"`},
		"another namespace":            {pack(t, strings.Replace(of("", ""), "shops", "other", 1)), `in namespace "other"`},
		"a file outside":               {pack(t, named("files", "../a")), `its chart contains "../a", which Helm does not store as a file, or twice`},
		"an absolute file":             {pack(t, named("files", "/etc/passwd")), "its chart contains"},
		"a file with a backslash":      {pack(t, named("files", `a\b`)), "its chart contains"},
		"a control character":          {pack(t, named("files", "a\x1b")), `its chart contains "a\x1b"`},
		"a folder":                     {pack(t, named("files", ".")), "its chart contains"},
		"a file without name":          {pack(t, named("files", "")), "its chart contains"},
		"a long name of a file":        {pack(t, named("files", strings.Repeat("x", 2000))), "its chart contains"},
		"another Chart.yaml":           {pack(t, named("files", "Chart.yaml")), "its chart contains"},
		"a template among files":       {pack(t, named("files", "templates/a.yaml")), "its chart contains"},
		"a file among templates":       {pack(t, named("templates", "a.yaml")), "its chart contains"},
		"a subchart":                   {pack(t, named("files", "charts/a/Chart.yaml")), "its chart contains"},
		"a file twice":                 {pack(t, of("", `, "files": [{"name": "a"}, {"name": "a"}]`)), "its chart contains"},
		"too many files":               {pack(t, of("", `, "files": [`+strings.TrimSuffix(strings.Repeat("{},", maxFiles+1), ",")+"]")), "its chart has 10001 files"},
		"content that is not base64":   {pack(t, of("", `, "files": [{"name": "a", "data": "?"}]`)), "its JSON is invalid"},
		"a chart of another structure": {pack(t, `{"chart": []}`), `field "chart" must not be a array`},
	} {
		t.Run(sentence, func(t *testing.T) {
			r, err := Decode(test.data, first, "shops")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v and error %v, want %q", r, err, test.want)
			}
			if !strings.HasPrefix(err.Error(), `Secret sh.helm.release.v1.web.v1 in namespace "shops" is not a record of revision 1 of release "web", as Helm writes it: `) ||
				strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 1000 {
				t.Errorf("got %q", err)
			}
		})
	}
}

func TestRevisionOf(t *testing.T) {
	for sentence, test := range map[string]struct {
		name   string
		labels map[string]string
		want   bool
	}{
		"a record":           {first.Object, map[string]string{"owner": "helm", "name": "web", "version": "1", "status": "deployed"}, true},
		"another owner":      {first.Object, map[string]string{"owner": "me", "name": "web", "version": "1", "status": "deployed"}, false},
		"another name":       {"web", map[string]string{"owner": "helm", "name": "web", "version": "1", "status": "deployed"}, false},
		"a version of words": {"sh.helm.release.v1.web.vx", map[string]string{"owner": "helm", "name": "web", "version": "x"}, false},
		"a negative version": {"sh.helm.release.v1.web.v-1", map[string]string{"owner": "helm", "name": "web", "version": "-1"}, false},
	} {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: test.name, Labels: test.labels}}
		if r, is := RevisionOf("Secret", o); is != test.want || is && r != first {
			t.Errorf("%s: got %v and %t", sentence, r, is)
		}
	}
}

func TestChoose(t *testing.T) {
	all := []Revision{
		{"Secret", "", "web", 3, "failed"}, {"Secret", "", "web", 1, "superseded"}, {"Secret", "", "web", 2, "deployed"}, {"ConfigMap", "", "web", 9, "deployed"},
		{"ConfigMap", "", "db", 4, "deployed"}, {"Secret", "", "gone", 1, "superseded"}, {"Secret", "", "gone", 2, "uninstalled"}, {"Secret", "", "bad", 1, "pending-install"},
	}
	for sentence, test := range map[string]struct {
		release string
		number  int
		want    int
		problem string
	}{
		"the latest that is deployed": {"web", 0, 2, ""},
		"a number":                    {"web", 3, 3, ""},
		"one in ConfigMaps":           {"db", 0, 4, ""},
		"one that is uninstalled":     {"gone", 2, 2, ""},
		"no such number":              {"web", 9, 0, `release "web" in namespace "shops" has no revision 9: choose one of 3 (failed), 2 (deployed), 1 (superseded)`},
		"all are gone":                {"gone", 0, 0, `release "gone" in namespace "shops" is uninstalled: choose a revision with --revision: 2 (uninstalled), 1 (superseded)`},
		"none is deployed":            {"bad", 0, 0, `has no deployed revision: install or upgrade it until that succeeds, or choose a revision with --revision: 1 (pending-install)`},
		"a misspelt name":             {"webb", 0, 0, `release "webb" not found in namespace "shops" (did you mean web?): releases there: bad, db, gone, web`},
	} {
		t.Run(sentence, func(t *testing.T) {
			r, err := Choose(test.release, test.number, "shops", all)
			if r.Number != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("got %v and error %v", r, err)
			}
		})
	}
	if _, err := Choose("web", 0, "shops", nil); err == nil || !strings.Contains(err.Error(), `Helm has no release in namespace "shops"`) {
		t.Errorf("got error %v", err)
	}
}

// FuzzDecode checks that a record is refused, or that its chart can be restored with files of valid names.
func FuzzDecode(f *testing.F) {
	f.Add(of("", ""))
	f.Add(of(`, "config": {"a": [1, null, {"b": "c"}]}`, `, "values": {"a": 1e400}, "files": [{"name": "a/b", "data": "YQ=="}]`))
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Decode([]byte(base64.StdEncoding.EncodeToString([]byte(text))), first, "shops")
		if err != nil {
			return
		}
		files, err := r.Chart.Files()
		if err != nil {
			return
		}
		for name := range files {
			if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
				t.Errorf("the chart contains %q", name)
			}
		}
	})
}
