package secret

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// maxRecordBytes limits the texts of a record. Newer ones replace the oldest: templates with random values render others each time.
const maxRecordBytes = 256 << 10

// Record is what the objects of an Instance hold of its sensitive values, as far as this process has rendered them. It is safe for concurrent
// use. A nil Record has nothing.
type Record struct {
	mutex sync.Mutex
	// texts are the texts to mask, the oldest first.
	texts []string
	known map[string]bool
	bytes int
	// opaque are the objects about which no foreign message is shown.
	opaque map[sensitive.Object]bool
	// isFull is true once texts were dropped: no foreign message about any object is shown then.
	isFull bool
	// complete identifies what was rendered completely last.
	complete string
	// masker masks values and texts; valid is false if there are others now.
	masker sensitive.Masker
	values sensitive.Values
	valid  bool
}

// Add adds what objects hold.
func (r *Record) Add(objects []*unstructured.Unstructured, traces sensitive.Traces) {
	if r == nil {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, o := range objects {
		delete(r.opaque, sensitive.ObjectOf(o))
	}
	for _, o := range traces.Opaque {
		r.opaque[o] = true
	}
	for _, text := range traces.Texts {
		if !r.known[text] {
			r.known[text], r.valid = true, false
			r.texts = append(r.texts, text)
			r.bytes += len(text)
		}
	}
	for r.bytes > maxRecordBytes {
		r.isFull = true
		delete(r.known, r.texts[0])
		r.bytes -= len(r.texts[0])
		r.texts = r.texts[1:]
	}
}

// MarkComplete reports whether everything of that name is added already, and notes that it is from now on.
func (r *Record) MarkComplete(name string) bool {
	if r == nil {
		return true
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	was := r.complete == name
	r.complete = name
	return was
}

func (r *Record) isOpaque(o *unstructured.Unstructured) bool {
	if r == nil || o == nil {
		return false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.isFull || r.opaque[sensitive.ObjectOf(o)]
}

// mask returns a masker of values and of the texts of the record.
func (r *Record) mask(values sensitive.Values) sensitive.Masker {
	if r == nil {
		return sensitive.NewMasker(values)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.valid || !maps.Equal(r.values, values) {
		r.masker, r.values, r.valid = sensitive.NewMasker(values).With(r.texts...), maps.Clone(values), true
	}
	return r.masker
}

// Masker masks the values, and what objects hold of them.
func (v View) Masker() sensitive.Masker { return v.Record.mask(v.Values) }

// IsOpaque reports whether an object holds a part of a value that cannot be masked.
func (v View) IsOpaque(o *unstructured.Unstructured) bool { return v.Record.isOpaque(o) }

// Conceal returns an error about an object without its message if the object holds a part of a value that cannot be masked.
func (v View) Conceal(o *unstructured.Unstructured, err error) error {
	if err == nil || !v.IsOpaque(o) {
		return err
	}
	return sensitive.Conceal(err)
}

// MaskObjects returns objects to judge, without sensitive values in their messages.
func (v View) MaskObjects(objects []plan.Object) []plan.Object {
	if v.Record == nil {
		return objects
	}
	masker, shown := v.Masker(), make([]plan.Object, len(objects))
	for i, o := range objects {
		shown[i] = o
		shown[i].Live = masker.Object(o.Live)
		if o.Rule != nil { // its expressions can return a part of any text
			shown[i].Live = masker.Texts(o.Live)
		}
		shown[i].Opaque = v.Record.isOpaque(o.Want) || v.Record.isOpaque(o.Live)
	}
	return shown
}
