package content_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// noise returns bytes that gzip cannot compress.
func noise(t *testing.T, size int) []byte {
	t.Helper()
	data := make([]byte, size)
	if _, err := rand.Read(data); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAFileIsStoredInPartsAndJoined(t *testing.T) {
	version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "packages", Name: "kafka-1.0.0", UID: "1234"}}
	for _, size := range []int{1, content.PartBytes - 1, content.PartBytes, content.PartBytes + 1, 3 << 20} {
		data := noise(t, size)
		listed := content.List("big.yaml", data)
		if err := content.Validate(listed); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		parts := make([][]byte, len(listed.Parts))
		for i, part := range content.Split(data) {
			made := content.New(version, part)
			if encoded := base64.StdEncoding.EncodedLen(len(made.Data)); encoded > 1_400_000 {
				t.Errorf("a part of %d bytes has %d in JSON", len(part), encoded)
			}
			if made.Name != content.Name("kafka-1.0.0", listed.Parts[i]) || content.VersionOf(made) != "kafka-1.0.0" || made.OwnerReferences[0].UID != "1234" {
				t.Errorf("got %s of %s, %v", made.Name, content.VersionOf(made), made.OwnerReferences)
			}
			var err error
			if parts[i], err = content.Unpack(made); err != nil {
				t.Error(err)
			}
		}
		joined, err := content.Join("packages", listed, parts)
		if err != nil || !bytes.Equal(joined, data) {
			t.Errorf("%d bytes: got %d, %v", size, len(joined), err)
		}
	}
}

func TestContentThatIsIncompleteOrAlteredIsNotJoined(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 2*content.PartBytes)
	data = append(data, 'y')
	listed, parts := content.List("big.yaml", data), content.Split(data)
	file := fmt.Sprintf("file \"big.yaml\" (%s) of the package", listed.Digest)
	part := func(i int) string { return fmt.Sprintf("part %d of 3 (%s) of %s", i, listed.Parts[i-1], file) }
	other := listed
	other.Digest = content.DigestOf(nil)
	for sentence, test := range map[string]struct {
		file  kudo.ContentFile
		parts [][]byte
		want  string
	}{
		"a part is missing":             {listed, [][]byte{parts[0], nil, parts[2]}, part(2) + ` is missing in namespace "packages"`},
		"the last one is missing":       {listed, parts[:2], part(3) + ` is missing in namespace "packages"`},
		"a part is another":             {listed, [][]byte{parts[0], parts[1], []byte("z")}, part(3) + ` is altered in namespace "packages": it is ` + content.DigestOf([]byte("z"))},
		"the order is another":          {listed, [][]byte{parts[2], parts[1], parts[0]}, part(1) + ` is altered in namespace "packages": it is ` + listed.Parts[2]},
		"the parts are of another file": {other, parts, fmt.Sprintf(`file "big.yaml" (%s) of the package is altered in namespace "packages": it is %s`, other.Digest, listed.Digest)},
	} {
		if _, err := content.Join("packages", test.file, test.parts); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v\nwant %s", sentence, err, test.want)
		}
	}
}

func TestABombIsNotUnpacked(t *testing.T) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	for range 1 << 10 {
		_, _ = zipped.Write(make([]byte, 1<<20))
	}
	_ = zipped.Close()
	truncated := bytes.Clone(packed.Bytes()[:100])
	for sentence, test := range map[string]struct {
		data []byte
		want string
	}{
		"a GiB of zeros":     {packed.Bytes(), `OperatorContent "bomb" unpacks to more than 917504 bytes`},
		"data without gzip":  {[]byte("plain"), `OperatorContent "bomb" cannot be unpacked: unexpected EOF`},
		"data that is cut":   {truncated, `OperatorContent "bomb" cannot be unpacked: unexpected EOF`},
		"data that is empty": {nil, `OperatorContent "bomb" cannot be unpacked: EOF`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := content.Unpack(&kudo.OperatorContent{ObjectMeta: metav1.ObjectMeta{Name: "bomb"}, Data: test.data})
		runtime.ReadMemStats(&after)
		if bytes := after.TotalAlloc - before.TotalAlloc; err == nil || err.Error() != test.want || bytes > 16<<20 {
			t.Errorf("%s: got %v with %d bytes of memory", sentence, err, bytes)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(content.New(&kudo.OperatorVersion{}, []byte("text")).Data)
	f.Fuzz(func(t *testing.T, data []byte) {
		part, err := content.Unpack(&kudo.OperatorContent{Data: data})
		if err == nil && len(part) > content.PartBytes {
			t.Errorf("%d bytes", len(part))
		}
	})
}

func TestNamesAreValidAndDiffer(t *testing.T) {
	digest := content.DigestOf([]byte("x"))
	long := strings.Repeat("a", 230)
	names := map[string]bool{}
	versions := []string{"kafka-1.0.0", "kafka-1.0.1", long, long + "-1.0.0-1.0.0-1.0.0-1.0", long + "-1.0.0-1.0.0-1.0.0-2.0", long + "-..........x"}
	for _, version := range versions {
		for _, digest := range []string{digest, content.DigestOf(nil)} {
			name := content.Name(version, digest)
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				t.Errorf("%s: %v", name, problems)
			}
			names[name] = true
		}
	}
	if len(names) != 2*len(versions) {
		t.Errorf("%d names of %d parts", len(names), 2*len(versions))
	}
	if name := content.Name("v", "short"); name != "v.short" {
		t.Error(name)
	}
	for name, want := range map[string]string{"kafka-1.0.0.0123456789abcdef": "kafka-1.0.0", "nothing": ""} {
		if got := content.VersionOf(&kudo.OperatorContent{ObjectMeta: metav1.ObjectMeta{Name: name}}); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// fitted is a specification with templates of these sizes: a and b are resources, pod is a pod, and unused is not used.
func fitted(sizes map[string]int) *kudo.OperatorVersionSpec {
	spec := &kudo.OperatorVersionSpec{Templates: map[string]string{}, Tasks: []kudo.Task{{}, {}}}
	spec.Tasks[0].Spec.Resources = []string{"a", "b", "pod", "missing"}
	spec.Tasks[1].Spec.Pod = "pod"
	for name, size := range sizes {
		spec.Templates[name] = strings.Repeat("x", size)
	}
	return spec
}

func TestTheLargestTemplatesAreMoved(t *testing.T) {
	const maxBytes = 10_000
	for sentence, test := range map[string]struct {
		sizes map[string]int
		want  []string
	}{
		"nothing if all of it fits":                  {map[string]int{"a": 4000, "b": 4000}, nil},
		"one if that is enough":                      {map[string]int{"a": 6000, "b": 6001}, []string{"b"}},
		"the first by name of equal ones":            {map[string]int{"a": 6000, "b": 6000}, []string{"a"}},
		"both if one is not enough":                  {map[string]int{"a": 20_000, "b": 20_000}, []string{"a", "b"}},
		"no pod and no template that is not used":    {map[string]int{"a": 1000, "pod": 20_000, "unused": 20_000}, []string{"a"}},
		"nothing that is smaller than its own entry": {map[string]int{"a": 10, "b": 0, "unused": 20_000}, nil},
	} {
		spec := fitted(test.sizes)
		before := spec.DeepCopy()
		stored, moved := content.Fit(spec, maxBytes)
		if diff := cmp.Diff(test.want, slices.Sorted(maps.Keys(moved))); diff != "" {
			t.Errorf("%s: %s", sentence, diff)
		}
		if diff := cmp.Diff(before, spec); diff != "" {
			t.Errorf("%s: changes its input: %s", sentence, diff)
		}
		filled, err := content.Fill(stored, func(file kudo.ContentFile) (string, error) {
			if listed := content.List(file.File, moved[file.File]); !cmp.Equal(listed, file) {
				t.Errorf("%s: lists %v", sentence, file)
			}
			return string(moved[file.File]), nil
		})
		if err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
		if diff := cmp.Diff(spec.Templates, filled.Templates); diff != "" {
			t.Errorf("%s: is filled with others: %s", sentence, diff)
		}
	}
}

func TestFillReadsTemplatesOnly(t *testing.T) {
	spec := fitted(nil)
	content.Add(spec, "a", []byte("text"))
	content.Add(spec, "chart.tgz", []byte("archive"))
	content.Add(spec, "chart.tgz", []byte("another archive"))
	if file, exists := content.Find(spec, "chart.tgz"); !exists || file.Size != 15 || len(spec.Content) != 2 {
		t.Error(spec.Content)
	}
	if _, exists := content.Find(spec, "b"); exists {
		t.Error("finds b")
	}
	filled, err := content.Fill(spec, func(file kudo.ContentFile) (string, error) { return file.File, nil })
	if diff := cmp.Diff(map[string]string{"a": "a"}, filled.Templates); err != nil || diff != "" || len(spec.Templates) != 0 {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := content.Fill(spec, func(file kudo.ContentFile) (string, error) { return "", fmt.Errorf("no %s", file.File) }); err == nil {
		t.Error("ignores an error")
	}
}
