package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestIndex(t *testing.T) {
	index, err := ParseIndex([]byte("apiVersion: v1\nentries:\n  web:\n  -\n  - {name: web, version: 1.0.0, urls: [web.tgz], digest: abc, more: {a: b}}\n" +
		"  - {name: web, version: 1.10, urls: [a.tgz]}\n  - {version: 3.0.0}\n  db: []\n  website: [{version: 1.0.0, urls: [a]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := index.Find("web", "1.0.0")
	if diff := cmp.Diff(Entry{Name: "web", Version: "1.0.0", URLs: []string{"web.tgz"}, Digest: "abc"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, test := range []struct{ name, version, want string }{
		{"websits", "", `it has no chart "websits" (did you mean website?)`}, {"db", "", `it has no chart "db"`}, {"web", "3.0.0", "the nearest are 1.10, 1.0.0"},
	} {
		if _, err := index.Find(test.name, test.version); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: got error %v", test, err)
		}
	}
	if index, err := ParseIndex([]byte(`{"apiVersion": "v1", "entries": {"web": [{"version": "1.0.0", "urls": ["a"]}]}}`)); err != nil || len(index["web"]) != 1 {
		t.Errorf("got %v, %v", index, err)
	}
	for text, want := range map[string]string{"<html>": "index.yaml is invalid", "a: b": "is not that of a Helm repository", "[": "index.yaml is invalid"} {
		if _, err := ParseIndex([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v", text, err)
		}
	}
}

// Large indexes are read in parts. Each is compared with the result of parsing it at once.
func TestPartsOfAnIndex(t *testing.T) {
	long := strings.Repeat("x", maxPartBytes)
	for sentence, text := range map[string]string{
		"as Helm writes it": "apiVersion: v1\nentries:\n  db:\n  - name: db\n    urls:\n    - a\n    version: 1.0.0\n  web:\n  - annotations:\n      a: |\n        - name: no\n\n        web:\n" +
			"    urls:\n    - https://example.com/web.tgz\n    - b\n    version: 1.0.0\n  - urls:\n    - c\n    version: 2.0.0\ngenerated: \"2026-11-29\"\n",
		"with deeper lists, comments and empty lines": "# Charts\n---\nentries:\n\n  # The first chart\n    web:\n      - version: 1.0.0\n# at the margin\n        urls: [a]\n\n      - {version: 2.0.0, urls: [b]}\n",
		"with the lines of Windows":                   "apiVersion: v1\r\nentries:\r\n  web:\r\n  - version: 1.0.0\r\n    urls: [a]\r\n",
		"with quoted names":                           "entries:\n  \"web\":\n  - {version: 1.0.0, urls: [a]}\n  'db':\n  - {version: 1.0.0, urls: [a]}\n",
		"with a long name":                            "entries:\n  ? " + strings.Repeat("a", 200) + "\n  : - version: 1.0.0\n      urls: [a]\n    - {version: 2.0.0, urls: [b]}\n  web: [{version: 1.0.0, urls: [a]}]\n",
		"with spaces at its end":                      "entries:\n  web:\n" + strings.Repeat("  - version: 1.0.0\n    urls: [a]\n", maxPartBytes/20) + "  ",
		"with short lists":                            "entries:\n  web: [{version: 1.0.0, urls: [a]}]\n  db: []\n  none:\n  nil: null\n",
		"without entries":                             "apiVersion: v1\nentries:\n",
		"with a chart of many versions":               "entries:\n  web:\n" + strings.Repeat("  - version: 1.0.0\n    urls: [a]\n", maxPartBytes/20) + "  db:\n  - {version: 1.0.0, urls: [b]}\n",
		"with many charts of a quoted name":           "entries:\n  \"a: b\":\n" + strings.Repeat("  - version: 1.0.0\n    urls: [a]\n", maxPartBytes/20),
	} {
		t.Run(sentence, func(t *testing.T) {
			parts, whole := listing{index: Index{}}, listing{index: Index{}}
			if err := parts.readBlocks([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := whole.readYAML([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(whole.index, parts.index); diff != "" || parts.APIVersion != whole.APIVersion {
				t.Error(diff, parts.APIVersion)
			}
		})
	}
	for text, want := range map[string]string{
		"entries: {}\n": "not the form that Helm writes",
		"entries:\n  web:\n  - {" + manyKeys(maxPartKeys+1) + "}\n":                                        `chart "web": a map has more than 1000 keys`,
		"entries:\n  web:\n  - version: [\n  db:\n":                                                        "line",
		"entries:\n  web:\n  - version: 1.0.0\n    urls: [a]\n    more: " + long + "\n":                    `an entry of chart "web" has more than 262144 bytes`,
		"entries:\n  web: [{version: 1.0.0, urls: [a]}, " + long + "]\n":                                   `has more than 262144 bytes, and not the form that Helm writes`,
		"entries:\n  web:\n  - {version: 1.0.0, urls: [a]}\nmore: " + long + "\n":                          "more than 262144 bytes beside its entries",
		"entries:\n  web:\n" + strings.Repeat("  - {version: 1.0.0, urls: [a]}\n", 10000) + "  - {a: [}\n": `chart "web": yaml: `,
	} {
		l := listing{index: Index{}}
		if err := l.readBlocks([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got error %v, want %s", text, err, want)
		}
	}
}

// manyKeys returns the content of a map. The decoder compares each pair of its keys.
func manyKeys(number int) string {
	var keys strings.Builder
	for i := range number {
		fmt.Fprintf(&keys, "k%d,", i)
	}
	return keys.String()
}

// What is larger than 1 MiB is read in parts, which a large entry shows.
func TestParseIndexReadsLargeOnesInParts(t *testing.T) {
	entry := "  - version: 1.0.0\n    urls: [a]\n    description: " + strings.Repeat("x", 1000) + "\n"
	whole := "apiVersion: v1\nentries:\n  web:\n" + strings.Repeat(entry, maxWholeBytes/1000)
	index, err := ParseIndex([]byte(whole))
	if err != nil || len(index["web"]) != maxWholeBytes/1000 {
		t.Errorf("got %d entries, %v", len(index["web"]), err)
	}
	large := "  - version: 1.0.0\n    urls: [a]\n    description: " + strings.Repeat("x", maxPartBytes) + "\n"
	if _, err := ParseIndex([]byte(whole + large)); err == nil || !strings.Contains(err.Error(), `an entry of chart "web" has more than`) {
		t.Errorf("got error %v", err)
	}
	if _, err := ParseIndex([]byte("entries:\n  web:\n" + large)); err != nil {
		t.Errorf("a small index: %v", err)
	}
	if _, err := ParseIndex([]byte("apiVersion: v1\nentries: {" + manyKeys(maxWholeKeys+1) + "}\n")); err == nil || !strings.Contains(err.Error(), "more than 10000 keys") {
		t.Errorf("got error %v", err)
	}
}

func TestIndexInJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"apiVersion": "v1", "entries": null}`: "",
		`{"generated": [{}], "entries": {"web": [null, {"version": "1.0.0", "urls": ["a"]}], "db": null}}`: "",
		`{"entries": {"web": {}}}`:               "there is",
		`{"entries": {"web": [{"version": 1}]}}`: "index.yaml is invalid",
		`[]`:                                     "there is",
		`{"entries": {"web": [{"more": "` + strings.Repeat("x", maxPartBytes) + `"}]}}`:                                                                     `an entry of chart "web" has more than 262144 bytes`,
		`{"apiVersion": "v1", "entries": {"web": [` + strings.Repeat(`{"version": "1", "urls": ["a"]},`, maxEntries) + `{"version": "1", "urls": ["a"]}]}}`: "more than 200000 versions",
	} {
		if _, err := ParseIndex([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: got error %v, want %q", text, err, want)
		}
	}
}

// FuzzPartsOfAnIndex writes an index as Helm does, and compares what is read in parts with what is read at once.
func FuzzPartsOfAnIndex(f *testing.F) {
	for _, seed := range []string{"web", "- a", "entries:", "a: b\n  - c\n\nd", "#", " \t", "|", "\"", "0x1"} {
		f.Add(seed, seed, uint8(2))
	}
	f.Fuzz(func(t *testing.T, name, more string, number uint8) {
		if strings.ContainsAny(name, "\n\r\u0085\u2028\u2029") { // not the name of a chart: it would be a key on several lines
			return
		}
		entries := []map[string]any{}
		for i := range number {
			entries = append(entries, map[string]any{
				"name": name, "version": fmt.Sprintf("1.0.%d", i), "urls": []string{more + "a"}, "description": more, "annotations": map[string]string{name: more},
			})
		}
		text, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": map[string]any{name: entries, "other": entries}, "generated": more})
		if err != nil {
			return
		}
		parts, whole := listing{index: Index{}}, listing{index: Index{}}
		if err := whole.readYAML(text); err != nil {
			return
		}
		if err := parts.readBlocks(text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(whole.index, parts.index); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
		encoded, err := json.Marshal(map[string]any{"entries": map[string]any{name: entries, "other": entries}})
		if err != nil {
			t.Fatal(err)
		}
		fromJSON := listing{index: Index{}}
		if err := fromJSON.readJSON(encoded); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if want := (listing{index: Index{}}); want.readYAML(encoded) == nil {
			if diff := cmp.Diff(want.index, fromJSON.index); diff != "" {
				t.Errorf("%s: %s", encoded, diff)
			}
		}
	})
}
