package sensitive

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Traces are what the objects of a package hold of values, beside the values themselves: parts of them, and texts that depend on them.
type Traces struct {
	// Texts are the texts to mask in messages.
	Texts []string
	// Opaque are the objects with a part that cannot be masked, because it is too short, or a number. No foreign message about them is shown.
	Opaque []Object
}

// Object identifies an object of an Instance, in any namespace and version of its kind.
type Object struct{ Group, Kind, Name string }

// ObjectOf returns the identity of an object.
func ObjectOf(o *unstructured.Unstructured) Object {
	return Object{Group: o.GroupVersionKind().Group, Kind: o.GetKind(), Name: o.GetName()}
}

// NotShown replaces what the API server or another controller says about an object that holds a part of a value that cannot be masked.
const NotShown = "the message is not shown, because the object holds a part of a sensitive value that cannot be masked: " +
	"it is a number, or shorter than 4 characters"

// Conceal returns an error with another message. It wraps the original one, whose message may quote what cannot be masked.
func Conceal(err error) error { return &maskedError{message: NotShown, err: err} }
