package content

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/facts"
)

// Add adds a file to the content of an OperatorVersion, sorted by name. It replaces a file of that name.
func Add(spec *kudo.OperatorVersionSpec, file string, data []byte) {
	spec.Content = slices.DeleteFunc(slices.Clone(spec.Content), func(f kudo.ContentFile) bool { return f.File == file })
	spec.Content = append(spec.Content, List(file, data))
	slices.SortFunc(spec.Content, func(a, b kudo.ContentFile) int { return strings.Compare(a.File, b.File) })
}

// Find returns the entry of a file in the content of an OperatorVersion; false if there is none.
func Find(spec *kudo.OperatorVersionSpec, file string) (kudo.ContentFile, bool) {
	at := slices.IndexFunc(spec.Content, func(f kudo.ContentFile) bool { return f.File == file })
	if at < 0 {
		return kudo.ContentFile{}, false
	}
	return spec.Content[at], true
}

// Resources returns the names of the templates that become objects and that nothing else uses. The hub renders templates of parameters and
// values, so these stay in the OperatorVersion.
func Resources(spec *kudo.OperatorVersionSpec) map[string]bool {
	names := map[string]bool{}
	for i := range spec.Tasks {
		for _, name := range spec.Tasks[i].Spec.Resources {
			names[name] = true
		}
	}
	for i := range spec.Tasks {
		of := &spec.Tasks[i].Spec
		for _, name := range []string{of.Pod, of.ParameterFile, of.ValuesFile} {
			delete(names, name)
		}
	}
	return names
}

// Fit returns a copy of a specification that has at most that many bytes of JSON, if templates that become objects can be moved to its content,
// the largest first, and the moved templates.
func Fit(spec *kudo.OperatorVersionSpec, maxBytes int) (fitting *kudo.OperatorVersionSpec, moved map[string][]byte) {
	fitting, moved = spec.DeepCopy(), map[string][]byte{}
	excess := sizeOf(spec) - maxBytes
	if excess <= 0 {
		return fitting, moved
	}
	movable := slices.DeleteFunc(slices.Sorted(maps.Keys(Resources(spec))), func(name string) bool {
		return spec.Templates[name] == "" || facts.Use(spec.Templates[name]) // the hub reads whether templates use facts of the cluster
	})
	slices.SortStableFunc(movable, func(a, b string) int { return cmp.Compare(len(spec.Templates[b]), len(spec.Templates[a])) })
	for _, name := range movable {
		if excess <= 0 {
			break
		}
		text := []byte(spec.Templates[name])
		listed := sizeOf(List(name, text)) + len(`,"content":[]`)
		if saved := sizeOf(spec.Templates[name]) - listed; saved > 0 {
			delete(fitting.Templates, name)
			Add(fitting, name, text)
			moved[name] = text
			excess -= saved
		}
	}
	return fitting, moved
}

// sizeOf returns the number of bytes of a value in JSON.
func sizeOf(value any) int {
	text, err := json.Marshal(value)
	if err != nil {
		return 0 // plain data always marshals
	}
	return len(text)
}

// Fill returns a copy of a specification with the templates that are in its content, as read returns them. It returns the specification itself if there
// are none.
func Fill(spec *kudo.OperatorVersionSpec, read func(kudo.ContentFile) (string, error)) (*kudo.OperatorVersionSpec, error) {
	if len(spec.Content) == 0 {
		return spec, nil
	}
	filled, resources := *spec, Resources(spec)
	filled.Templates = maps.Clone(spec.Templates)
	for _, file := range spec.Content {
		if !resources[file.File] {
			continue
		}
		text, err := read(file)
		if err != nil {
			return nil, err
		}
		if filled.Templates == nil {
			filled.Templates = map[string]string{}
		}
		filled.Templates[file.File] = text
	}
	return &filled, nil
}
