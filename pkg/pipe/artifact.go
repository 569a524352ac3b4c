package pipe

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// MostBytes is how large a file may be: what a Secret or a ConfigMap holds (Kubernetes' limit, and KUDO's).
const MostBytes = 1 << 20

// Keys maps the keys of a version's Pipe tasks to the names of the objects that keep their files: what templates see as .Pipes. The
// name is that of render.InstanceName.
func Keys(version *kudo.OperatorVersionSpec, instance string) map[string]string {
	keys := map[string]string{}
	for _, task := range version.Tasks {
		if task.Kind != kudo.TaskPipe {
			continue
		}
		for _, file := range task.Spec.Pipe {
			keys[file.Key] = ArtifactName(instance, task.Name, file.Key)
		}
	}
	return keys
}

// ArtifactName is the name of the object that keeps the file of a key. It depends on neither plan nor execution: whichever plan runs
// the task renews the same object, and every other plan finds it there.
func ArtifactName(instance, task, key string) string { return nameOf(instance, task, key) }

// PodName is the name of a task's pod.
func PodName(instance, task string) string { return nameOf(instance, task) }

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf makes a DNS label of parts. A hash keeps names apart that differ only in what a label cannot show.
func nameOf(parts ...string) string {
	const most, hashed = 63, 8
	readable := unfit.ReplaceAllString(strings.ToLower(strings.Join(parts, "-")), "-")
	readable = readable[:min(len(readable), most-hashed-1)]
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return strings.Trim(readable, "-") + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// Artifacts are the objects that are to keep a task's files, without what is in them.
func Artifacts(instance string, task kudo.Task) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, file := range task.Spec.Pipe {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       file.Kind,
			"metadata":   map[string]any{"name": ArtifactName(instance, task.Name, file.Key)},
		}}
		if file.Kind == "Secret" {
			object.Object["type"] = "Opaque"
		}
		objects = append(objects, object)
	}
	return objects
}

// Fill gives an object of Artifacts what its file holds. The input is not changed. An error is final; it names the file and never
// what is in it.
func Fill(artifact *unstructured.Unstructured, file kudo.PipeSpec, content []byte) (*unstructured.Unstructured, error) {
	if len(content) > MostBytes {
		return nil, fmt.Errorf("file %q is larger than the %d bytes that a %s can hold", file.File+file.EnvFile, MostBytes, artifact.GetKind())
	}
	entries := map[string][]byte{path.Base(file.File): content}
	if file.EnvFile != "" {
		var err error
		if entries, err = parseEnvironment(content); err != nil {
			return nil, fmt.Errorf("file %q, %w", file.EnvFile, err)
		}
	}
	filled := artifact.DeepCopy()
	for key, value := range entries {
		field, encoded := "data", base64.StdEncoding.EncodeToString(value)
		switch {
		case filled.GetKind() == "Secret":
		case isText(value): // environment variables can be taken from it then
			encoded = string(value)
		default:
			field = "binaryData"
		}
		if err := unstructured.SetNestedField(filled.Object, encoded, field, key); err != nil {
			return nil, err
		}
	}
	return filled, nil
}

// isText reports whether a value can stand in a ConfigMap's data without growing much in JSON.
func isText(value []byte) bool {
	return utf8.Valid(value) && !bytes.ContainsFunc(value, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r)
	})
}

// parseEnvironment reads lines of NAME=VALUE, as kubectl reads those of --from-env-file: empty lines and those that begin with # are
// left out, and a value is all that stands behind the first =. An error names the line only: whatever stands there may be secret.
func parseEnvironment(content []byte) (map[string][]byte, error) {
	entries := map[string][]byte{}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(content, []byte("\ufeff"))) {
		number++
		name, value, err := parseVariable(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if name == "" {
			continue
		}
		if _, twice := entries[name]; twice {
			return nil, fmt.Errorf("line %d: an earlier line gives the same name", number)
		}
		entries[name] = value
	}
	return entries, nil
}

// parseVariable reads one line; the name is empty where the line gives none.
func parseVariable(line []byte) (name string, value []byte, err error) {
	if !utf8.Valid(line) {
		return "", nil, errors.New("it is not UTF-8")
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	line = bytes.TrimLeftFunc(line, unicode.IsSpace)
	if len(line) == 0 || line[0] == '#' {
		return "", nil, nil
	}
	before, value, found := bytes.Cut(line, []byte("="))
	if !found {
		return "", nil, errors.New("it is not NAME=VALUE")
	}
	name = string(before)
	if len(validation.IsEnvVarName(name)) > 0 || len(validation.IsConfigMapKey(name)) > 0 {
		return "", nil, errors.New("what stands before the = is not the name of an environment variable")
	}
	return name, value, nil
}
