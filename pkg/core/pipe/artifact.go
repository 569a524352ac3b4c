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

// MaxBytes is the maximum size of a file: the limit of a Secret or a ConfigMap (Kubernetes' limit, and KUDO's).
const MaxBytes = 1 << 20

// Keys maps the keys of a version's Pipe tasks to the names of the objects that store their files, for .Pipes in templates. instance is the
// result of render.InstanceName.
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

// ArtifactName returns the name of the object that stores the file of a key. It depends on neither plan nor execution: every plan that runs
// the task updates the same object, and other plans use it.
func ArtifactName(instance, task, key string) string { return nameOf(instance, task, key) }

// PodName returns the name of a task's pod.
func PodName(instance, task string) string { return nameOf(instance, task) }

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf builds a DNS label from parts. A hash distinguishes names whose difference is lost in a label.
func nameOf(parts ...string) string {
	const maxLength, hashed = 63, 8
	readable := unfit.ReplaceAllString(strings.ToLower(strings.Join(parts, "-")), "-")
	readable = readable[:min(len(readable), maxLength-hashed-1)]
	sum := sha256.Sum256([]byte(strings.Join(parts, "/")))
	return strings.Trim(readable, "-") + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// Artifacts returns the objects that store a task's files, without content.
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

// Fill sets the content of the file on an object of Artifacts. The input is not modified. An error is terminal; it names the file and never
// its content.
func Fill(artifact *unstructured.Unstructured, file kudo.PipeSpec, content []byte) (*unstructured.Unstructured, error) {
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("file %q is larger than the %d bytes that a %s can hold", file.File+file.EnvFile, MaxBytes, artifact.GetKind())
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
		case isText(value): // so that it can be used for environment variables
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

// isText reports whether a value can be stored in a ConfigMap's data without growing much in JSON.
func isText(value []byte) bool {
	return utf8.Valid(value) && !bytes.ContainsFunc(value, func(r rune) bool {
		return unicode.IsControl(r) && !strings.ContainsRune("\t\n\r", r)
	})
}

// parseEnvironment parses lines of NAME=VALUE, like kubectl's --from-env-file: it skips empty lines and comments with #, and a value is
// everything after the first =. An error names only the line, because its content may be secret.
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
			return nil, fmt.Errorf("line %d: the name is already set on an earlier line", number)
		}
		entries[name] = value
	}
	return entries, nil
}

// parseVariable parses one line; the name is empty if the line has none.
func parseVariable(line []byte) (name string, value []byte, err error) {
	if !utf8.Valid(line) {
		return "", nil, errors.New("must be UTF-8")
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
	line = bytes.TrimLeftFunc(line, unicode.IsSpace)
	if len(line) == 0 || line[0] == '#' {
		return "", nil, nil
	}
	before, value, found := bytes.Cut(line, []byte("="))
	if !found {
		return "", nil, errors.New("must be NAME=VALUE")
	}
	name = string(before)
	if len(validation.IsEnvVarName(name)) > 0 || len(validation.IsConfigMapKey(name)) > 0 {
		return "", nil, errors.New("the text before = is not a valid name of an environment variable")
	}
	return name, value, nil
}
