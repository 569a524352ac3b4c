package chart

import (
	"errors"
	"strings"
	"testing"
)

// Helm parses all files of a chart to load it: a compressed archive of some kilobytes may require gigabytes.
func TestInspectionsAreLimited(t *testing.T) {
	files := folder{}
	for _, sub := range []string{"a", "b", "c"} {
		files["charts/"+sub+"/Chart.yaml"] = "apiVersion: v2\nname: " + sub + "\nversion: 1.0.0\n"
		files["charts/"+sub+"/values.yaml"] = "v: [" + strings.Repeat("v,", 2<<20) + "v]\n"
	}
	archive := files.archive(t)
	_, errOfCheck := Check(t.Context(), archive)
	_, errOfDescribe := Describe(t.Context(), archive)
	_, errOfViolations := Violations(t.Context(), archive, nil)
	for what, err := range map[string]error{"check": errOfCheck, "describe": errOfDescribe, "violations": errOfViolations} {
		if limit := (*LimitError)(nil); !errors.As(err, &limit) || limit.Limit != "512 MiB of memory" {
			t.Errorf("%s: got error %v", what, err)
		}
	}
	if got := metadataOf(folder{"Chart.yaml": metadata + "keywords: [" + strings.Repeat("v,", 500_000) + "v]\n"}.archive(t)); got.Version != "" {
		t.Errorf("got version %s of a Chart.yaml with half a million keywords", got.Version)
	}
}
