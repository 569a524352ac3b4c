package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// A slot is a field of an object whose place in the YAML the chart's values take. Its template gets the line that contains the field without its
// value (`    replicas: `), and its indentation.
type slot func(line, indent string) string

// inline is a value on the line of its key.
func inline(expression string) slot {
	return func(line, _ string) string { return line + "{{ " + expression + " }}\n" }
}

// block is a map below its key.
func block(expression string) slot {
	return func(line, indent string) string {
		return fmt.Sprintf("%s{{- toYaml %s | nindent %d }}\n", line, expression, len(indent)+2)
	}
}

// optional is text that replaces the line, unless it is empty.
func optional(expression string) slot {
	return func(_, indent string) string {
		return fmt.Sprintf("%[1]s{{- with %[2]s }}\n%[1]s{{- . | nindent %[3]d }}\n%[1]s{{- end }}\n", indent, expression, len(indent))
	}
}

// kept is the annotation by which Helm keeps an object that is no longer part of a release, if the value is true; the line is its key, or
// the key of all annotations.
func kept(value string) slot {
	return func(line, indent string) string {
		text := line + "keep\n"
		if !strings.Contains(line, resourcePolicy) {
			text = line[:len(line)-1] + "\n" + indent + "  " + resourcePolicy + ": keep\n"
		}
		return indent + "{{- if " + value + " }}\n" + text + indent + "{{- end }}\n"
	}
}

const resourcePolicy = "helm.sh/resource-policy"

// programs are the Deployments, with the names of their values.
var programs = map[string]string{"addon-manager": "hub", "addon-agent": "agent", "addon-manager-ui": "ui", "package-controller": "packageSources"}

// slots replaces fields of an object by marks, and returns what takes the place of each mark.
type slots struct{ filled []slot }

// mark returns the text that is replaced by the slot.
func (s *slots) mark(with slot) string {
	s.filled = append(s.filled, with)
	return "SLOT" + strconv.Itoa(len(s.filled)-1)
}

// marked is a line of YAML whose value is a mark.
var marked = regexp.MustCompile(`(?m)^( *)(.*?)SLOT(\d+)\n`)

// textOf returns the YAML of an object as a template.
func textOf(original *unstructured.Unstructured) (string, error) {
	content, s := original.DeepCopy(), &slots{}
	if err := s.fill(content); err != nil {
		return "", err
	}
	encoded, err := yaml.Marshal(content.Object)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(string(encoded), "{{", `{{ "{{" }}`)
	return marked.ReplaceAllStringFunc(text, func(line string) string {
		parts := marked.FindStringSubmatch(line)
		i, _ := strconv.Atoi(parts[3]) // digits
		return s.filled[i](parts[1]+parts[2], parts[1])
	}), nil
}

// fill marks the fields of an object that values determine.
func (s *slots) fill(content *unstructured.Unstructured) error {
	switch content.GetKind() {
	case "CustomResourceDefinition":
		s.keep(content)
	case "Namespace":
		// Its deletion would delete packages, or the keys of agents and what they keep of Instances that stay.
		annotate(content, resourcePolicy, "keep")
	case "AddOnDeploymentConfig":
		return s.deliveredImage(content)
	case "Job":
		annotate(content, "helm.sh/hook", "pre-delete")
		annotate(content, "helm.sh/hook-delete-policy", "before-hook-creation,hook-succeeded")
		return s.pod(content, "hub")
	case "Deployment":
		return s.deployment(content)
	}
	return nil
}

// keep marks the annotation by which Helm keeps the object.
func (s *slots) keep(content *unstructured.Unstructured) {
	if len(content.GetAnnotations()) > 0 {
		annotate(content, resourcePolicy, s.mark(kept(".Values.crds.keep")))
		return
	}
	content.Object["metadata"].(map[string]any)["annotations"] = s.mark(kept(".Values.crds.keep"))
}

func annotate(content *unstructured.Unstructured, key, value string) {
	annotations := maps.Clone(content.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	content.SetAnnotations(annotations)
}

// deliveredImage marks the image of the agent that addon-manager delivers, and the Secrets with which it is pulled.
func (s *slots) deliveredImage(content *unstructured.Unstructured) error {
	variables, _, err := unstructured.NestedSlice(content.Object, "spec", "customizedVariables")
	if err != nil {
		return err
	}
	isImage := func(v any) bool { return v.(map[string]any)["name"] == "Image" }
	i := slices.IndexFunc(variables, isImage)
	if i < 0 {
		return fmt.Errorf("it has no variable Image")
	}
	variables[i].(map[string]any)["value"] = s.mark(inline(image("addon-agent", "agent")))
	variables = append(variables, s.mark(optional(`include "tandem.deliveredPullSecrets" .`)))
	return unstructured.SetNestedSlice(content.Object, variables, "spec", "customizedVariables")
}

// image returns the expression for the image of a program.
func image(program, values string) string {
	return fmt.Sprintf(`include "tandem.image" (list . %q .Values.%s.image) | quote`, program, values)
}

// deployment marks the fields of a program's Deployment.
func (s *slots) deployment(content *unstructured.Unstructured) error {
	values := programs[content.GetName()]
	if values == "" {
		return fmt.Errorf("the chart has no values for this Deployment")
	}
	content.Object["spec"].(map[string]any)["replicas"] = s.mark(inline(".Values." + values + ".replicas"))
	return s.pod(content, values)
}

// pod marks the fields of the pod, which has one container: the values are those of its program.
func (s *slots) pod(content *unstructured.Unstructured, values string) error {
	pod, found, err := unstructured.NestedMap(content.Object, "spec", "template", "spec")
	if err != nil || !found {
		return fmt.Errorf("it has no pod: %w", err)
	}
	containers := pod["containers"].([]any)
	if len(containers) != 1 {
		return fmt.Errorf("its pod has %d containers, not one", len(containers))
	}
	container := containers[0].(map[string]any)
	program, _ := container["image"].(string)
	owner := programs[program]
	if owner == "" {
		return fmt.Errorf("the chart has no image %q", program)
	}
	container["image"] = s.mark(inline(image(program, owner)))
	container["imagePullPolicy"] = s.mark(inline(".Values.image.pullPolicy"))
	container["resources"] = s.mark(block(".Values." + values + ".resources"))
	if content.GetKind() == "Deployment" {
		container["args"] = append(container["args"].([]any), s.mark(optional("include \"tandem.arguments\" .Values."+values)))
	}
	pod["zzz"] = s.mark(optional("include \"tandem.pod\" (list . .Values." + values + ")")) // after all other fields
	return unstructured.SetNestedMap(content.Object, pod, "spec", "template", "spec")
}
