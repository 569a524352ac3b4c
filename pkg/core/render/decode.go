package render

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/core/render/template"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

// document is one YAML document of a rendered text.
type document struct {
	text string
	// line is the first line of the document in the rendered text, from 1.
	line int
}

// splitDocuments splits a text at YAML's markers (YAML 1.2, section 9.1): a line that begins with --- or ..., followed by the end of the
// line or white space. Text after --- belongs to its document. Documents that contain only comments are dropped.
func splitDocuments(text string) []document {
	var documents []document
	begin, beginLine := 0, 1
	offset, line := 0, 0
	for part := range strings.Lines(text) {
		line++
		next := offset + len(part)
		switch {
		case isMarker(part, "---"):
			documents = appendDocument(documents, text[begin:offset], beginLine)
			begin, beginLine = offset, line
		case isMarker(part, "..."):
			documents = appendDocument(documents, text[begin:offset], beginLine)
			begin, beginLine = next, line+1
		}
		offset = next
	}
	return appendDocument(documents, text[begin:], beginLine)
}

func appendDocument(documents []document, text string, line int) []document {
	for part := range strings.Lines(text) {
		if part = strings.TrimSpace(part); part != "" && part != "---" && part[0] != '#' {
			return append(documents, document{text: text, line: line})
		}
	}
	return documents
}

// errTaskTooLarge is the error of the document with which the objects of a task become too large.
var errTaskTooLarge = fmt.Errorf("all objects of the task: %w", yaml.TooLarge(yaml.MaxTask))

// decode decodes a document, within a limit. Integers stay exact (int64); everything else decodes as in kubectl. Invalid YAML is a *YAMLError.
func (d document) decode(limit int) (decoded any, err error) {
	encoded, err := yaml.JSON(d.text, limit)
	if err == nil {
		err = utiljson.Unmarshal(encoded, &decoded)
	}
	if err := flawOf(d.text, decoded, err); err != nil {
		return nil, err
	}
	return decoded, nil
}

// decoder decodes the documents of a text and of its variants. It decodes a document that they share only once.
type decoder struct {
	budget *Budget
	// original are the decoded documents of the first text.
	original map[string]any
}

// marksFactor is how much larger the marks of a variant may make a document.
const marksFactor = 2

// decodeAll decodes all documents of a text. All of them together are as limited as the objects of a task.
func (d *decoder) decodeAll(text string) ([]any, error) {
	limit, room := marksFactor*yaml.MaxDocument, marksFactor*yaml.MaxTask
	first := d.original == nil
	if first {
		d.original = map[string]any{}
		limit, room = yaml.MaxDocument, yaml.MaxTask
	}
	if err := d.budget.spend(len(text) / bytesPerStep); err != nil {
		return nil, err
	}
	var all []any
	for _, doc := range splitDocuments(text) {
		decoded, known := d.original[doc.text]
		if !known {
			var size int
			var err error
			if decoded, size, err = d.decode(doc, limit); err != nil {
				return nil, err
			}
			if room -= size; room < 0 {
				return nil, errTaskTooLarge
			}
		}
		if first {
			d.original[doc.text] = decoded
		}
		all = append(all, decoded)
	}
	return all, nil
}

// decode decodes a document within a limit and the budget, and returns its size.
func (d *decoder) decode(doc document, limit int) (decoded any, size int, err error) {
	return d.budget.decode(doc.text, func() (any, error) { return doc.decode(limit) })
}

// objects decodes the objects of a document, and takes its size from room. They are not shared with another document of the same text.
func (d *decoder) objects(doc document, room *int) ([]map[string]any, error) {
	decoded, known := d.original[doc.text]
	delete(d.original, doc.text)
	if !known {
		var err error
		if decoded, _, err = d.decode(doc, yaml.MaxDocument); err != nil {
			return nil, err
		}
	}
	size, err := yaml.Size(decoded)
	if err != nil {
		return nil, err
	}
	if *room -= size; *room < 0 {
		return nil, errTaskTooLarge
	}
	switch object := decoded.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		objects, err := expand(object)
		if *room -= len(objects) * yaml.ObjectBytes; err == nil && *room < 0 {
			err = errTaskTooLarge
		}
		return objects, err
	default:
		return nil, fmt.Errorf("must be an object with apiVersion, kind and metadata, got %s", describe(decoded))
	}
}

// expand replaces a list by its items: kind List, or a list of one kind with items that may omit their kind.
func expand(object map[string]any) ([]map[string]any, error) {
	kind, _ := object["kind"].(string)
	itemKind, isList := strings.CutSuffix(kind, "List")
	items, hasItems := object["items"].([]any)
	if !isList || (!hasItems && itemKind != "") {
		return []map[string]any{object}, nil
	}
	var objects []map[string]any
	for i, item := range items {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("items[%d] of the %s must be an object, got %s", i, kind, describe(item))
		}
		if itemKind != "" {
			setDefault(m, "apiVersion", object["apiVersion"])
			setDefault(m, "kind", itemKind)
		}
		expanded, err := expand(m)
		if err != nil {
			return nil, err
		}
		objects = append(objects, expanded...)
	}
	return objects, nil
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}

func setDefault(m map[string]any, key string, value any) {
	if m[key] == nil {
		m[key] = value
	}
}

// fail adds template, document and line to an error.
func (d document) fail(name string, number int, err error) *template.Error {
	problem := template.NewError(name, err)
	problem.Document, problem.Line = number, d.line
	var malformed *YAMLError
	if errors.As(err, &malformed) {
		problem.Line = malformed.Line
	}
	return problem
}

// maxTypeBytes limits apiVersion and kind: a group is a DNS subdomain of at most 253 characters, a version and a kind are labels.
const maxTypeBytes = 253 + 1 + 63

// validate checks the fields that every object requires.
func validate(object map[string]any) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if err := requireType(object, field); err != nil {
			return err
		}
	}
	gv, err := schema.ParseGroupVersion(object["apiVersion"].(string))
	switch {
	case err != nil:
		return fmt.Errorf("apiVersion %q must be VERSION or GROUP/VERSION", object["apiVersion"])
	case gv.Group == kudo.GroupVersion.Group: // it would never run, or be mistaken for a mirror
		return fmt.Errorf("objects of %s are created on the hub and cannot be created by a template: use a task of kind %s",
			gv.Group, kudo.TaskKudoOperator)
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("metadata must be an object with a name, got %s", describe(object["metadata"]))
	}
	if generate, ok := metadata["generateName"]; ok && generate != nil && metadata["name"] == nil {
		return errors.New("metadata.generateName is not supported, because each run would create another object: set metadata.name")
	}
	if err := requireText(metadata, "name", "metadata.name"); err != nil {
		return err
	}
	if metadata["namespace"] == nil {
		delete(metadata, "namespace")
		return nil
	}
	return requireText(metadata, "namespace", "metadata.namespace")
}

// requireType requires an apiVersion or a kind of limited length.
func requireType(object map[string]any, field string) error {
	if err := requireText(object, field, field); err != nil {
		return err
	}
	if value := object[field].(string); len(value) > maxTypeBytes { // all items of a list may have it
		return fmt.Errorf("%s %s has %d bytes, more than %d", field, text.Quote(value), len(value), maxTypeBytes)
	}
	return nil
}

func requireText(m map[string]any, key, path string) error {
	switch value := m[key].(type) {
	case nil:
		return fmt.Errorf("%s is missing or empty", path)
	case string:
		if value == "" {
			return fmt.Errorf("%s is empty", path)
		}
		return nil
	default:
		return fmt.Errorf("%s must be a string, got %s: quote it", path, describe(value))
	}
}

// describe describes a JSON value for a message.
func describe(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return text.Quote(v)
	default:
		return fmt.Sprint(v)
	}
}

// identity identifies an object within a task.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

// identify returns the identity of an object; an object without a namespace gets the default namespace.
func identify(obj *unstructured.Unstructured, defaultNamespace string) identity {
	id := identity{kind: obj.GroupVersionKind().GroupKind(), namespace: obj.GetNamespace(), name: obj.GetName()}
	if id.namespace == "" {
		id.namespace = defaultNamespace
	}
	return id
}

// String returns `Kind namespace/name`.
func (id identity) String() string {
	if id.namespace == "" {
		return id.kind.Kind + " " + id.name
	}
	return id.kind.Kind + " " + id.namespace + "/" + id.name
}

// readFile decodes a parameter file within the budget, also with marks.
func (r *renderer) readFile(text string) ([]any, error) {
	var documents []any
	_, _, err := r.Budget.decode(text, func() (any, error) {
		var err error
		documents, err = parameter.ReadFile(text, marksFactor*yaml.MaxParameters)
		return documents, err
	})
	return documents, err
}
