package pack

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// scaffold is a package with the name scaffoldName.
//
//go:embed scaffold
var scaffold embed.FS

const scaffoldName = "my-operator"

// Scaffold returns an initial package of that name, text by file: it verifies and runs without changes, and its comments describe further
// features. An invalid operator name is an error.
func Scaffold(name string) (map[string]string, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	files := map[string]string{}
	err := fs.WalkDir(scaffold, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(scaffold, file)
		files[strings.TrimPrefix(file, "scaffold/")] = strings.ReplaceAll(string(text), scaffoldName, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the scaffold: %w", err)
	}
	return files, nil
}

// CheckName returns an error if no operator can have a name.
func CheckName(name string) error {
	spec := kudo.OperatorVersionSpec{Operator: corev1.ObjectReference{Name: name}}
	named := &subject{OperatorVersionSpec: &spec}
	if problems := append(operatorName(named), objectName(named)...); len(problems) > 0 {
		return errors.New(problems[0].Message)
	}
	return nil
}
