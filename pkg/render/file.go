package render

import (
	"fmt"

	"github.com/tandem-addons/tandem/pkg/parameter"
)

// FileError reports that a parameter file is not valid.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return fmt.Sprintf("parameterFile %q: %v", e.File, e.Err) }

func (e *FileError) Unwrap() error { return e.Err }

// File renders the parameter file of a KudoOperator task, and returns the parameters that it sets. It returns the errors of Objects, or a
// *FileError.
func File(c Context, name string) (map[string]string, error) {
	r, err := newRenderer(c)
	if err != nil {
		return nil, err
	}
	out, err := r.execute(name)
	if err != nil {
		return nil, err
	}
	g := &guard{renderer: r, template: name, out: out, read: readFile, file: true}
	if err := g.check(); err != nil {
		return nil, err
	}
	parameters, err := parameter.File(out.Text)
	if err != nil {
		return nil, &FileError{File: name, Err: err}
	}
	return parameters, nil
}
