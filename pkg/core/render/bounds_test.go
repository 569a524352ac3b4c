package render

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// config is the beginning of a ConfigMap.
const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// bombs are templates that would take the memory of the process, with the expected error of each.
var bombs = map[string]struct{ template, want string }{
	"300 aliases to a scalar of 1 MB": {
		config + "x: &x {{ repeat 1000000 \"x\" }}\ny: [{{ repeat 299 \"*x,\" }}*x]\n", "it expands to more than 8 MiB",
	},
	"600 aliases to a scalar of 1 MB": {
		config + "x: &x {{ repeat 1000000 \"x\" }}\ny: [{{ repeat 599 \"*x,\" }}*x]\n", "it expands to more than 8 MiB",
	},
	"ten levels of ten aliases": {
		config + `x0: &x0 [a]{{ range $i := until 10 }}
x{{ add1 $i }}: &x{{ add1 $i }} [{{ repeat 9 (printf "*x%d," $i) }}*x{{ $i }}]{{ end }}`, "it expands to more than 8 MiB",
	},
	"merged maps": {
		config + "x: &x {a: {{ repeat 1000000 \"x\" }}}\ny:\n{{ repeat 300 \"- <<: *x\\n\" }}", "it expands to more than 8 MiB",
	},
	"an anchor that contains itself":    {config + "x: &x {a: [*x]}", "an anchor contains an alias to itself"},
	"a value that makes an alias":       {config + "x: {{ .Params.BOMB }}", "it expands to more than 8 MiB"},
	"two million values":                {config + "x: [{{ repeat 2000000 \"a,\" }}]", "it expands to more than 8 MiB"},
	"a million maps":                    {config + "x: [{{ repeat 1000000 \"{a},\" }}]", "it expands to more than 8 MiB"},
	"empty values on lines":             {config + "x:\n{{ repeat 1000000 \"-\\n\" }}", "it expands to more than 8 MiB"},
	"a value nested in 9000 lists":      {config + "x: {{ repeat 9000 \"[\" }}{{ repeat 9000 \"]\" }}", "nested more than 100 levels deep"},
	"a value nested in a million lists": {config + "x: {{ repeat 1000000 \"[\" }}", "it expands to more than 8 MiB"},
	"documents": {
		"{{ range $i := until 40000 }}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a{{ $i }}}}{{ end }}", "all objects of the task: it expands to more than 32 MiB",
	},
	"items of a list": {
		"apiVersion: v1\nkind: ConfigMapList\nitems:\n{{ range $i := until 30000 }}- metadata: {name: a{{ $i }}}\n{{ end }}", "it expands to more than 8 MiB",
	},
	"a kind that all items of a list get": {
		"apiVersion: v1\nkind: {{ repeat 1000000 \"x\" }}List\nitems: [{metadata: {name: a}}, {metadata: {name: b}}]", "kind \"xxxx",
	},
	"a schema for thousands of versions": {
		"apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec:\n  validation: {openAPIV3Schema: " +
			"{description: {{ repeat 1000000 \"x\" }}}}\n  versions: [{{ repeat 5000 \"{},\" }}]", "with a copy of spec.validation in each of 5000 versions, it expands to more than 8 MiB",
	},
	"volume claim templates": {
		"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {volumeClaimTemplates: [{{ repeat 100000 \"{},\" }}]}", "spec.volumeClaimTemplates has 100000 items, more than 1000",
	},
}

// newBombs returns a context with the bombs as templates, and a parameter that is one.
func newBombs() Context {
	var templates []string
	for name, bomb := range bombs {
		templates = append(templates, name, bomb.template)
	}
	c := newContext(templates...)
	value := "&x " + strings.Repeat("x", 100_000) + "\ny: [" + strings.Repeat("*x,", 1000) + "]"
	c.Version.Parameters = append(c.Version.Parameters, kudo.Parameter{Name: "BOMB", Default: &value})
	return c
}

func TestWhatIsRenderedIsBounded(t *testing.T) {
	const maxMemory = 600 << 20
	c := newBombs()
	for name, bomb := range bombs {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			started := time.Now()
			_, err := Objects(c, name)
			took := time.Since(started)
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), bomb.want) || !strings.Contains(err.Error(), fmt.Sprintf("template %q", name)) {
				t.Errorf("got %.300v, want %s", err, bomb.want)
			}
			t.Logf("%d MiB allocated in %s", (after.TotalAlloc-before.TotalAlloc)>>20, took)
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > maxMemory {
				t.Errorf("it allocates %d MiB in all", bytes>>20)
			}
		})
	}
}

func TestBoundsLeaveRoomForLargeObjects(t *testing.T) {
	for name, test := range map[string]struct {
		template string
		objects  int
	}{
		"a ConfigMap of the largest size":  {config + "data: {x: \"{{ repeat 1500000 \"x\" }}\"}", 1},
		"JSON in a text":                   {config + "data:\n  x: |\n    {{ repeat 100000 \"{\\\"a\\\":[1,2]},\" }}", 1},
		"aliases to a small map":           {config + "x: &x {a: b}\ny: [{{ repeat 999 \"*x,\" }}*x]", 1},
		"five thousand objects":            {"{{ range $i := until 5000 }}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a{{ $i }}}, data: {a: b, c: d}}{{ end }}", 5000},
		"an enormous number":               {config + "x: {{ repeat 100000 \"9\" }}", 1},
		"a number with an enormous power":  {config + "x: 1e999999999", 1},
		"a list of fifty thousand numbers": {config + "x: [{{ repeat 50000 \"1,\" }}]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(newContext("t", test.template), "t")
			if err != nil || len(objects) != test.objects {
				t.Errorf("got %d objects, %.300v", len(objects), err)
			}
		})
	}
}

// TestTheTemplatesOfATaskAreBoundedTogether renders templates that are each within the limits.
func TestTheTemplatesOfATaskAreBoundedTogether(t *testing.T) {
	var templates, names []string
	for i := range 10 {
		names = append(names, fmt.Sprint(i))
		templates = append(templates, names[i], strings.Replace(config, "name: a", fmt.Sprintf("name: a%d", i), 1)+"data: {x: \"{{ repeat 4000000 \"x\" }}\"}")
	}
	c := newContext(templates...)
	if _, err := Objects(c, names[:8]...); err != nil {
		t.Error(err)
	}
	_, err := Objects(c, names...)
	if want := `template "8", document 1 (line 1 of the rendered text): all objects of the task: it expands to more than 32 MiB`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
