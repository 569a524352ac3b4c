package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The folders of deploy/ that the chart contains. The template of an object is named after the first one that has it.
var folders = []string{"hub", "hub-ocm", "agent", "ui", "packagesources", "uninstall"}

// header is a comment of the template language: Helm would take a YAML comment for a document.
const header = "{{- /* Generated from deploy/ by \"make generate\"; do not edit. */ -}}\n"

// templatesOf returns the chart's templates by file name, from the objects of each folder.
func templatesOf(built map[string][]*unstructured.Unstructured) (map[string]string, error) {
	templates := map[string]string{}
	for _, o := range collect(built) {
		text, err := o.template()
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.kind, o.name, err)
		}
		if templates[o.file()] == "" {
			templates[o.file()] = header
		}
		templates[o.file()] += text
	}
	return templates, nil
}

// object is an object of the chart, with its contents by the folders that have it.
type object struct {
	kind, name string
	in         []string // in the order of folders
	contents   map[string]*unstructured.Unstructured
}

// collect merges the objects of the folders, in the order in which they first occur.
func collect(built map[string][]*unstructured.Unstructured) []*object {
	var all []*object
	known := map[string]*object{}
	for _, folder := range folders {
		for _, content := range built[folder] {
			key := content.GetKind() + "/" + content.GetNamespace() + "/" + content.GetName()
			if known[key] == nil {
				known[key] = &object{kind: content.GetKind(), name: content.GetName(), contents: map[string]*unstructured.Unstructured{}}
				all = append(all, known[key])
			}
			known[key].in = append(known[key].in, folder)
			known[key].contents[folder] = content
		}
	}
	return all
}

// file returns the name of the object's template: definitions are large and have one each.
func (o *object) file() string {
	if o.kind == "CustomResourceDefinition" {
		return "crd-" + o.name + ".yaml"
	}
	return o.in[0] + ".yaml"
}

// template returns the object as a document that is rendered where one of its folders is installed.
func (o *object) template() (string, error) {
	var texts []string
	for _, folder := range o.in {
		text, err := textOf(o.contents[folder])
		if err != nil {
			return "", err
		}
		texts = append(texts, text)
	}
	text := texts[0]
	if slices.ContainsFunc(texts, func(other string) bool { return other != text }) {
		if !slices.Equal(o.in, []string{"hub", "hub-ocm"}) {
			return "", fmt.Errorf("its content differs between the folders %s: only hub and hub-ocm may differ", strings.Join(o.in, ", "))
		}
		text = merge(texts[0], texts[1], ".Values.ocm.enabled")
	}
	return "{{- if " + o.condition() + " }}\n---\n" + text + "{{- end }}\n", nil
}

// condition returns the condition in which the chart renders the object.
func (o *object) condition() string {
	var installed []string
	has := func(folder string) bool { return slices.Contains(o.in, folder) }
	switch {
	case has("hub") && has("hub-ocm"), has("uninstall"):
		installed = append(installed, ".Values.hub.enabled")
	case has("hub"):
		installed = append(installed, "(and .Values.hub.enabled (not .Values.ocm.enabled))")
	case has("hub-ocm"):
		installed = append(installed, "(and .Values.hub.enabled .Values.ocm.enabled)")
	}
	for _, part := range []struct{ folder, values string }{{"agent", "agent"}, {"ui", "ui"}, {"packagesources", "packageSources"}} {
		if has(part.folder) {
			installed = append(installed, ".Values."+part.values+".enabled")
		}
	}
	condition := installed[0]
	if len(installed) > 1 {
		condition = "(or " + strings.Join(installed, " ") + ")"
	}
	return cmp.Or(o.and(condition), strings.TrimSuffix(strings.TrimPrefix(condition, "("), ")"))
}

// and returns the condition together with the one that the kind of the object has, or nothing if it has none.
func (o *object) and(condition string) string {
	switch {
	case o.kind == "CustomResourceDefinition":
		return "and .Values.crds.enabled " + condition
	case strings.HasPrefix(o.kind, "MutatingAdmissionPolicy"):
		return "and .Values.admission.mutatingPolicies " + condition
	case o.kind == "Namespace" && o.name == "tandem-system":
		// Helm creates the namespace of the release before it installs the chart, and does not adopt it.
		return "and (ne .Release.Namespace \"" + o.name + "\") " + condition
	}
	return ""
}

// merge returns the text that is one or the other, depending on the condition. Both differ in one place.
func merge(without, with, condition string) string {
	a, b := strings.SplitAfter(without, "\n"), strings.SplitAfter(with, "\n")
	shorter := min(len(a), len(b))
	start := 0
	for start < shorter && a[start] == b[start] {
		start++
	}
	end := 0
	for end < shorter-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	added, removed := b[start:len(b)-end], a[start:len(a)-end]
	text := strings.Join(b[:start], "")
	if len(added) > 0 {
		text += "{{- if " + condition + " }}\n" + strings.Join(added, "") + "{{- end }}\n"
	}
	if len(removed) > 0 {
		text += "{{- if not " + condition + " }}\n" + strings.Join(removed, "") + "{{- end }}\n"
	}
	return text + strings.Join(b[len(b)-end:], "")
}
