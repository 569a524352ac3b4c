package artifact_test

import (
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/core/artifact"
)

func TestParse(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	for place, want := range map[string]string{
		"oci://registry.example.com/packages/kafka":      "",
		"oci://localhost:5000/kafka:1.0.0":               "",
		"oci://[::1]:5000/kafka:1.0.0@" + digest:         "",
		"oci://registry.example.com/kafka@" + digest:     "",
		"https://registry.example.com/kafka":             "must be oci://HOST/PATH",
		"oci://user:password@registry.example.com/kafka": "must not contain credentials",
		"oci://registry.example.com":                     "the path is invalid",
		"oci://registry.example.com/../kafka":            "the path is invalid",
		"oci://registry.example.com/Kafka":               "the path is invalid",
		"oci:///kafka":                                   "the name of the registry is invalid",
		"oci://registry.example.com/kafka:":              "the tag is invalid",
		"oci://registry.example.com/kafka:a/b":           "the tag is invalid",
		"oci://registry.example.com/kafka@sha256:abc":    "the digest is invalid",
		"oci://registry.example.com/kafka\x1b[1m":        "the path is invalid",
		"oci://" + strings.Repeat("a", 2000) + "/kafka":  "of at most 1024 characters",
	} {
		ref, err := artifact.Parse(place)
		if want == "" && (err != nil || ref.String() != place) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, %v; want %q", place, ref, err, want)
		}
	}
}

func TestMirrorImages(t *testing.T) {
	below, err := artifact.Parse("oci://mirror:5000/tandem")
	if err != nil {
		t.Fatal(err)
	}
	images := []string{"redis:7", "bitnami/kafka", "quay.io/a/b:1", "localhost:5000/c@sha256:" + strings.Repeat("a", 64)}
	copies, registries, err := artifact.MirrorImages(images, below)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range copies {
		got = append(got, c.From.String()+" "+c.To.String())
	}
	for _, r := range registries {
		got = append(got, r.Source+"="+r.Mirror)
	}
	want := []string{
		"oci://docker.io/library/redis:7 oci://mirror:5000/tandem/docker.io/library/redis:7",
		"oci://docker.io/bitnami/kafka:latest oci://mirror:5000/tandem/docker.io/bitnami/kafka:latest",
		"oci://quay.io/a/b:1 oci://mirror:5000/tandem/quay.io/a/b:1",
		"oci://localhost:5000/c@sha256:" + strings.Repeat("a", 64) + " oci://mirror:5000/tandem/localhost-5000/c",
		"redis=mirror:5000/tandem/docker.io/library/redis", "quay.io=mirror:5000/tandem/quay.io",
		"bitnami/kafka=mirror:5000/tandem/docker.io/bitnami/kafka", "localhost:5000=mirror:5000/tandem/localhost-5000",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
