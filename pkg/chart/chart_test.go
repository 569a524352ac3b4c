package chart

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMain makes the test's program also the one that renders charts.
func TestMain(m *testing.M) {
	ServeChild()
	os.Exit(m.Run())
}

func renderer(t *testing.T) *Renderer {
	t.Helper()
	r, err := NewRenderer()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// folder holds the files of a chart by path.
type folder map[string]string

const metadata = "apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: \"9\"\n"

// archive returns the archive of a chart, with metadata unless it has its own.
func (f folder) archive(t *testing.T) []byte {
	t.Helper()
	if _, has := f["Chart.yaml"]; !has {
		f["Chart.yaml"] = metadata
	}
	return archived(t, func(w *tar.Writer) error {
		for _, name := range slices.Sorted(maps.Keys(f)) {
			err := errors.Join(w.WriteHeader(&tar.Header{Name: "web/" + name, Mode: 0o644, Size: int64(len(f[name]))}), write(w, f[name]))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func archived(t *testing.T, add func(*tar.Writer) error) []byte {
	t.Helper()
	var compressed bytes.Buffer
	zipped := gzip.NewWriter(&compressed)
	files := tar.NewWriter(zipped)
	if err := errors.Join(add(files), files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return compressed.Bytes()
}

func write(w *tar.Writer, content string) error {
	_, err := w.Write([]byte(content))
	return err
}

// configMap returns a template of a ConfigMap with one value.
func configMap(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\ndata:\n  value: " + value + "\n"
}

// input returns an input with defaults.
func input(archive []byte, values string) Input {
	return Input{
		Archive: archive, Values: []byte(values), Release: Release{Name: "shop", Namespace: "shops", Revision: 1},
		Capabilities: Capabilities{KubeVersion: "v1.37.2", APIVersions: []string{"v1", "apps/v1", "apps/v1/Deployment"}},
	}
}

func nothing(context.Context, string, string, string, string) (map[string]any, error) {
	return map[string]any{}, nil
}

func TestRender(t *testing.T) {
	subchart := folder{"templates/sub.yaml": configMap("{{ .Values.level }}-{{ .Values.global.zone }}"), "values.yaml": "level: default\n"}
	with := func(dependency string, files folder) folder {
		all := folder{"Chart.yaml": metadata + "dependencies:\n- {name: sub, version: 1.0.0" + dependency + "}\n",
			"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "values.yaml": "global: {zone: here}\n"}
		for name, content := range subchart {
			all["charts/sub/"+name] = content
		}
		maps.Copy(all, files)
		return all
	}
	one := func(value string) folder {
		return folder{"templates/a.yaml": configMap(value), "values.yaml": "a: 1\nb: {c: x}\n"}
	}
	for sentence, test := range map[string]struct {
		chart  folder
		values string
		change func(*Input)
		want   []string
	}{
		"a value of the chart":                      {chart: one("{{ .Values.a | quote }}"), want: []string{"1"}},
		"a value that overrides it":                 {chart: one("{{ .Values.a | quote }}"), values: "a: 2", want: []string{"2"}},
		"a value that removes it":                   {chart: one("{{ .Values.b.c | default \"none\" }}"), values: "b: {c: null}", want: []string{"none"}},
		"values in several documents":               {chart: one("{{ .Values.a }}-{{ .Values.b.c }}"), values: "a: 2\n---\nb: {c: z}", want: []string{"2-z"}},
		"the release":                               {chart: one("{{ .Release.Service }}-{{ .Release.Revision }}-{{ .Release.IsInstall }}-{{ .Release.Namespace }}"), want: []string{"Helm-1-true-shops"}},
		"an upgrade":                                {chart: one("r{{ .Release.Revision }}-{{ .Release.IsInstall }}-{{ .Release.IsUpgrade }}"), change: func(in *Input) { in.Release.Upgrade, in.Release.Revision = true, 7 }, want: []string{"r7-false-true"}},
		"the chart":                                 {chart: one("{{ .Chart.Name }}-{{ .Chart.AppVersion }}-{{ .Template.Name }}"), want: []string{"web-9-web/templates/a.yaml"}},
		"the cluster":                               {chart: one("{{ .Capabilities.KubeVersion.Minor | quote }}"), want: []string{"37"}},
		"a kind that the cluster serves":            {chart: one("{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }}{{ .Capabilities.APIVersions.Has \"x/v1\" }}x"), want: []string{"truefalsex"}},
		"a file":                                    {chart: folder{"templates/a.yaml": configMap("{{ .Files.Get \"f.txt\" }}"), "f.txt": "text"}, want: []string{"text"}},
		"a template of a value":                     {chart: one("{{ tpl \"{{ .Values.b.c }}\" . }}"), want: []string{"x"}},
		"a named template":                          {chart: folder{"templates/_h.tpl": "{{ define \"n\" }}named{{ end }}", "templates/a.yaml": configMap("{{ include \"n\" . }}")}, want: []string{"named"}},
		"a missing value":                           {chart: one("\"{{ .Values.missing }}\""), want: []string{""}},
		"a name that is resolved to no address":     {chart: one("\"{{ getHostByName \"localhost\" }}\""), want: []string{""}},
		"a subchart":                                {chart: with("", nil), want: []string{"default-here"}},
		"a subchart with values":                    {chart: with("", nil), values: "sub: {level: high}\nglobal: {zone: there}", want: []string{"high-there"}},
		"a subchart whose condition is false":       {chart: with(", condition: sub.enabled", nil), values: "sub: {enabled: false}"},
		"a subchart whose tag is false":             {chart: with(", tags: [extra]", nil), values: "tags: {extra: false}"},
		"a subchart with another name":              {chart: with(", alias: other", nil), values: "other: {level: low}", want: []string{"low-here"}},
		"values that the chart takes from it":       {chart: with(", import-values: [{child: exported, parent: b}]", folder{"charts/sub/values.yaml": "level: l\nexported: {c: imported}\n", "templates/a.yaml": configMap("{{ .Values.b.c }}")}), want: []string{"imported", "l-here"}},
		"a document without content, and a list":    {chart: folder{"templates/a.yaml": "# nothing\n---\n{{- if false }}x{{ end }}\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {value: one}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {value: two}}\n"}, want: []string{"one", "two"}},
		"what the cluster has":                      {chart: one("{{ (lookup \"v1\" \"Secret\" \"shops\" \"key\").data.value }}"), want: []string{"found"}},
		"notes are not rendered to objects":         {chart: folder{"templates/NOTES.txt": "Hello", "templates/a.yaml": configMap("x")}, want: []string{"x"}},
		"a schema that the values conform to":       {chart: folder{"templates/a.yaml": configMap("{{ .Values.a | quote }}"), "values.yaml": "a: 1", "values.schema.json": `{"properties":{"a":{"$ref":"types.json#/$defs/n"}}}`, "types.json": `{"$defs":{"n":{"type":"integer"}}}`}, want: []string{"1"}},
		"a version of Kubernetes with a suffix":     {chart: folder{"Chart.yaml": metadata + "kubeVersion: \">=1.30\"\n", "templates/a.yaml": configMap("x")}, change: func(in *Input) { in.Capabilities.KubeVersion = "v1.33.4-gke.1245000" }, want: []string{"x"}},
		"separators of documents that are too long": {chart: folder{"templates/a.yaml": configMap("one") + "--- \n" + configMap("two")}, want: []string{"one", "two"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			in := input(test.chart.archive(t), test.values)
			if test.change != nil {
				test.change(&in)
			}
			out, err := renderer(t).Render(t.Context(), in, func(_ context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
				if got := strings.Join([]string{apiVersion, kind, namespace, name}, " "); got != "v1 Secret shops key" {
					t.Errorf("looked up %q", got)
				}
				return map[string]any{"data": map[string]any{"value": "found"}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range out.Objects {
				value, _, _ := unstructured.NestedString(o.Object.Object, "data", "value")
				got = append(got, value)
			}
			slices.Sort(got)
			if diff := gocmp.Diff(test.want, got); diff != "" {
				t.Errorf("values of the ConfigMaps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHooksAndDefinitions(t *testing.T) {
	hook := func(name, annotations string) string {
		return fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, annotations: {%s}}\nspec: {backoffLimit: 3}\n---\n", name, annotations)
	}
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s}\n"
	chart := folder{
		"templates/hooks.yaml": hook("late", "helm.sh/hook: 'pre-install, Post-Upgrade', helm.sh/hook-weight: '5'") +
			hook("b", "helm.sh/hook: pre-install, helm.sh/hook-delete-policy: 'hook-succeeded,hook-failed'") +
			hook("a", "helm.sh/hook: pre-install") + hook("early", "helm.sh/hook: pre-delete, helm.sh/hook-weight: '-1'") +
			hook("odd", "helm.sh/hook: pre-instal") + hook("tests", "helm.sh/hook: test"),
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n",
		"crds/b.yaml":            fmt.Sprintf(definition, "b") + "---\n" + fmt.Sprintf(definition, "{{ a }}"),
		"crds/README.md":         "not one",
		"Chart.yaml":             metadata + "dependencies:\n- {name: sub, version: 1.0.0}\n- {name: extra, version: 1.0.0, condition: extra.enabled}\n",
		"charts/sub/Chart.yaml":  "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/crds/a.yaml": fmt.Sprintf(definition, "sub"),
		"charts/extra/Chart.yaml": "apiVersion: v2\nname: extra\nversion: 1.0.0\n", "charts/extra/crds/a.yaml": fmt.Sprintf(definition, "off"),
	}
	out, err := renderer(t).Render(t.Context(), input(chart.archive(t), "extra: {enabled: false}"), nothing)
	if err == nil {
		t.Fatalf("a definition that is no YAML is accepted: %v", out)
	}
	chart["crds/b.yaml"] = fmt.Sprintf(definition, "b") + "---\n" + fmt.Sprintf(definition, "c")
	if out, err = renderer(t).Render(t.Context(), input(chart.archive(t), "extra: {enabled: false}"), nothing); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range out.Definitions {
		got = append(got, o.Source+" "+o.Object.GetName())
	}
	for _, h := range out.Hooks {
		got = append(got, fmt.Sprint(h.Weight, " ", h.Object.Object.GetName(), " ", h.Events, " ", h.DeletePolicies))
	}
	for _, o := range out.Objects {
		got = append(got, o.Object.GetKind())
	}
	want := []string{
		"web/charts/sub/crds/a.yaml sub", "web/crds/b.yaml b", "web/crds/b.yaml c",
		"-1 early [pre-delete] [before-hook-creation]", "0 a [pre-install] [before-hook-creation]", "0 b [pre-install] [hook-succeeded hook-failed]",
		"0 tests [test] [before-hook-creation]", "5 late [pre-install post-upgrade] [before-hook-creation]",
		"ServiceAccount", "Service",
		`web/templates/hooks.yaml: Job "odd" is omitted, because Helm has no hook "pre-instal"`,
	}
	if diff := gocmp.Diff(want, append(got, out.Warnings...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if limit, is, _ := unstructured.NestedInt64(out.Hooks[0].Object.Object.Object, "spec", "backoffLimit"); !is || limit != 3 {
		t.Errorf("whole numbers are integers, got %v", out.Hooks[0].Object.Object.Object["spec"])
	}
}

func TestErrors(t *testing.T) {
	one := func(value string) folder { return folder{"templates/a.yaml": configMap(value)} }
	for sentence, test := range map[string]struct {
		chart   folder
		archive []byte
		values  string
		version string
		want    string
	}{
		"an archive that is none":      {archive: []byte("hello"), want: "the archive of the chart is not a gzipped archive"},
		"an archive that is cut off":   {archive: one("x").archive(t)[:60], want: "the archive of the chart cannot be read: unexpected EOF"},
		"an archive that is too large": {archive: make([]byte, MaxArchiveBytes+1), want: "more than the limit of 16777216"},
		"a link": {archive: archived(t, func(w *tar.Writer) error {
			return w.WriteHeader(&tar.Header{Name: "web/values.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
		}), want: `the archive of the chart contains the link "web/values.yaml": replace it by the file`},
		"a path that leads out":         {archive: archived(t, func(w *tar.Writer) error { return w.WriteHeader(&tar.Header{Name: "web/../../x"}) }), want: "loading the chart: chart illegally references parent directory"},
		"many files":                    {archive: archived(t, func(w *tar.Writer) error { return manyFiles(w) }), want: "the archive of the chart has more than 10000 files"},
		"no Chart.yaml":                 {archive: archived(t, func(w *tar.Writer) error { return w.WriteHeader(&tar.Header{Name: "web/values.yaml"}) }), want: "loading the chart: Chart.yaml file is missing"},
		"a missing subchart":            {chart: folder{"Chart.yaml": metadata + "dependencies: [{name: db, version: 1.x}]\n"}, want: `chart "web": dependency "db" is in Chart.yaml, but not in folder charts: run 'helm dependency build'`},
		"defaults that are no YAML":     {chart: folder{"values.yaml": "a: ["}, want: "cannot load values.yaml"},
		"values that are no YAML":       {chart: one("x"), values: "a: [", want: "the values are invalid: cannot unmarshal yaml document"},
		"values that are no map":        {chart: one("x"), values: "- a", want: "the values are invalid: cannot unmarshal yaml document"},
		"a template that is none":       {chart: one("{{ if }}"), want: "parse error at (web/templates/a.yaml:5): missing value for if"},
		"a template that fails":         {chart: one("{{ fail \"no\" }}"), want: "execution error at (web/templates/a.yaml:5:12): no"},
		"a required value":              {chart: one("{{ required \"set .a\" .Values.a }}"), want: "execution error at (web/templates/a.yaml:5:12): set .a"},
		"an error in a named template":  {chart: folder{"templates/_h.tpl": "\n{{ define \"n\" }}{{ .a.b.c }}{{ end }}", "templates/a.yaml": configMap("{{ include \"n\" . }}")}, want: "web/templates/_h.tpl:2"},
		"an object that is no YAML":     {chart: folder{"templates/a.yaml": "a: [\n"}, want: "YAML parse error on web/templates/a.yaml"},
		"an object without kind":        {chart: folder{"templates/a.yaml": "metadata: {name: a}\n"}, want: "web/templates/a.yaml: an object has no apiVersion or no kind"},
		"an object that is a text":      {chart: folder{"templates/a.yaml": "hello\n"}, want: "YAML parse error on web/templates/a.yaml"},
		"a schema that is violated":     {chart: folder{"values.schema.json": `{"properties":{"a":{"type":"string"}}}`}, values: "a: 1", want: `the values do not conform to the schema: chart "web": - at '/a': got number, want string`},
		"a schema that is no JSON":      {chart: folder{"values.schema.json": `{`}, want: `chart "web": values.schema.json is not valid JSON`},
		"a schema of a subchart":        {chart: folder{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.schema.json": `{"required":["a"]}`}, values: "sub: {b: 1}", want: `chart "web/charts/sub": - at '': missing property 'a'`},
		"values of a subchart, no map":  {chart: folder{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, values: "sub: 1", want: "sub"},
		"a reference to a missing file": {chart: folder{"values.schema.json": `{"$ref":"types.json"}`}, want: `it refers to file "types.json", which the chart does not have`},
		"a reference out of the chart":  {chart: folder{"values.schema.json": `{"$ref":"../../etc/passwd"}`}, want: `it refers to file "etc/passwd", which the chart does not have`},
		"a version of Kubernetes":       {chart: folder{"Chart.yaml": metadata + "kubeVersion: \"<1.30\"\n"}, want: `chart "web" requires Kubernetes <1.30, and the cluster has v1.37.2`},
		"a version that is none":        {chart: one("x"), version: "new", want: "the version of the API server is invalid"},
		"a lookup that fails":           {chart: one("{{ lookup \"v1\" \"Secret\" \"n\" \"a\" }}"), want: "looking up Secret n/a: forbidden"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if test.archive == nil {
				test.archive = test.chart.archive(t)
			}
			in := input(test.archive, test.values)
			in.Capabilities.KubeVersion = cmp.Or(test.version, in.Capabilities.KubeVersion)
			out, err := renderer(t).Render(t.Context(), in, func(context.Context, string, string, string, string) (map[string]any, error) {
				return nil, errors.New("forbidden")
			})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v and error %v, want %q", out, err, test.want)
			}
		})
	}
}

func manyFiles(w *tar.Writer) error {
	for i := range maxFiles + 1 {
		if err := w.WriteHeader(&tar.Header{Name: fmt.Sprint("web/f", i)}); err != nil {
			return err
		}
	}
	return nil
}

func TestASchemaReachesNoAddress(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.URL.Path; fmt.Fprint(w, "true") }))
	defer server.Close()
	chart := folder{"values.schema.json": `{"$ref":"` + server.URL + `/schema.json"}`}
	_, err := renderer(t).Render(t.Context(), input(chart.archive(t), ""), nothing)
	if err == nil || !strings.Contains(err.Error(), "it refers to "+server.URL+"/schema.json: it can only refer to files of the chart") {
		t.Errorf("got error %v", err)
	}
	select {
	case path := <-asked:
		t.Errorf("the server was asked for %s", path)
	default:
	}
}

func TestLimits(t *testing.T) {
	one := func(value string) folder { return folder{"templates/a.yaml": configMap(value)} }
	for sentence, test := range map[string]struct {
		chart  folder
		change func(*Limits)
		lookup Lookup // does not end if nil
		want   string
		passes bool // the error says nothing about the chart
	}{
		"a loop":                  {chart: one("{{ range 9999999999 }}{{ end }}"), change: func(l *Limits) { l.CPU = time.Second }, want: "1s of CPU time"},
		"a loop that writes":      {chart: one("{{ range 9999999999 }}x{{ end }}"), want: "256 MiB of memory"},
		"a list":                  {chart: one("{{ until 999999999 }}"), want: "256 MiB of memory"},
		"a template of itself":    {chart: folder{"templates/_t.tpl": "{{ define \"t\" }}{{ tpl (printf \"{{ include %q . }}\" \"t\") . }}{{ end }}", "templates/a.yaml": configMap("{{ include \"t\" . }}")}, want: "256 MiB of memory"},
		"text that is a template": {chart: folder{"values.yaml": "t: '{{ tpl .Values.t . }}'", "templates/a.yaml": configMap("{{ tpl .Values.t . }}")}, want: "processing the chart requires more than"},
		"an archive in the archive": {chart: folder{"charts/sub.tgz": string(archived(t, func(w *tar.Writer) error {
			return errors.Join(w.WriteHeader(&tar.Header{Name: "sub/zeros", Size: 200 << 20}), zeros(w, 200))
		}))}, want: "decompressed chart is larger than the maximum size"},
		"an output": {chart: one("{{ repeat 100000 \"text\" }}"), change: func(l *Limits) { l.OutputBytes = 1 << 18 }, want: "requires more than 0 MiB"},
		"a lookup that does not end": {chart: one("{{ lookup \"v1\" \"Secret\" \"\" \"\" }}"), change: func(l *Limits) { l.Answer = time.Second },
			want: "looking up Secret: context deadline exceeded", passes: true},
		"lookups": {chart: one("{{ range until 4 }}{{ lookup \"v1\" \"Secret\" \"\" \"\" }}{{ end }}"), change: func(l *Limits) { l.Questions = 3 },
			lookup: nothing, want: "requires more than 3 calls of lookup"},
		"a loop, on a slow machine": {chart: one("{{ range 9999999999 }}{{ end }}"), change: func(l *Limits) { l.Timeout = time.Second },
			want: "did not end within 1s", passes: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := renderer(t)
			r.Limits.MemoryBytes = 256 << 20
			if test.change != nil {
				test.change(&r.Limits)
			}
			if test.lookup == nil {
				test.lookup = func(ctx context.Context, _, _, _, _ string) (map[string]any, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
			}
			_, err := r.Render(t.Context(), input(test.chart.archive(t), ""), test.lookup)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
			if isOfChart := errors.As(err, new(*LimitError)) || errors.As(err, new(*Error)); isOfChart == test.passes {
				t.Errorf("got error %#v; is it of the chart?", err)
			}
		})
	}
}

func TestKilledProcess(t *testing.T) {
	r := &Renderer{Command: []string{"sh", "-c", "kill -9 $$"}, Limits: DefaultLimits()}
	_, err := r.Render(t.Context(), Input{}, nothing)
	if err == nil || errors.As(err, new(*LimitError)) || !strings.Contains(err.Error(), "may lack memory") {
		t.Errorf("got error %v, want one that says nothing about the chart", err)
	}
}

func TestTimeOfLookups(t *testing.T) {
	r := renderer(t)
	r.Limits.Timeout = 2 * time.Second
	chart := folder{"templates/a.yaml": configMap("{{ range until 3 }}{{ lookup \"v1\" \"Secret\" \"\" \"\" }}{{ end }}")}
	_, err := r.Render(t.Context(), input(chart.archive(t), ""), func(context.Context, string, string, string, string) (map[string]any, error) {
		<-time.After(r.Limits.Timeout / 2)
		return map[string]any{}, nil
	})
	if err != nil {
		t.Errorf("the time of lookups counts: %v", err)
	}
}

func zeros(w *tar.Writer, megabytes int) error {
	for range megabytes {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
	}
	return nil
}

// TestPublicCharts renders charts as published, if they are beside the checkout.
func TestPublicCharts(t *testing.T) {
	folders, _ := filepath.Glob("../../../shared/charts/*/Chart.yaml")
	for _, file := range folders {
		root := filepath.Dir(file)
		t.Run(filepath.Base(root), func(t *testing.T) {
			chart := folder{}
			err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() {
					return err
				}
				content, err := os.ReadFile(name)
				below, _ := filepath.Rel(root, name)
				chart[below] = string(content)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			out, err := renderer(t).Render(t.Context(), input(chart.archive(t), ""), nothing)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d definitions, %d hooks, %d objects in %v", len(out.Definitions), len(out.Hooks), len(out.Objects), time.Since(began))
		})
	}
}
