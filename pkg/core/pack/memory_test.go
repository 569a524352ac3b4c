package pack_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// poisons are OperatorVersions of at most 1 MiB that take as much memory as possible to verify.
func poisons() map[string]*kudo.OperatorVersion {
	templates := func(texts ...string) *kudo.OperatorVersion {
		v := &kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{
			Operator: corev1.ObjectReference{Name: "poison"}, Version: "1.0.0", Templates: map[string]string{},
		}}
		for i, text := range texts {
			v.Spec.Templates[fmt.Sprintf("%d.yaml", i)] = text
		}
		return v
	}
	quarters := func(text string, count int) *kudo.OperatorVersion {
		return templates(strings.Repeat(text, count), strings.Repeat(text, count), strings.Repeat(text, count), strings.Repeat(text, count))
	}
	some, many := templates(), templates()
	for i := range pack.MaxTemplates {
		some.Spec.Templates[fmt.Sprintf("%x", i)] = "{{.X}}"
	}
	for i := range 80_000 {
		many.Spec.Templates[fmt.Sprintf("%x", i)] = ""
	}
	parameters := templates()
	parameters.Spec.Parameters = make([]kudo.Parameter, 80_000)
	tasks := templates()
	tasks.Spec.Tasks = make([]kudo.Task, 9_000)
	long := templates()
	for i := range 12 {
		long.Spec.Templates[fmt.Sprint(i)+strings.Repeat("x", 40_000)] = ""
	}
	for range 5000 {
		long.Spec.Tasks = append(long.Spec.Tasks, kudo.Task{Name: "a", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
			ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"b"}},
		}})
	}
	lists := templates()
	list := "[" + strings.Repeat("{a},", 8_000) + "]"
	for i := range 30 {
		lists.Spec.Parameters = append(lists.Spec.Parameters, kudo.Parameter{Name: fmt.Sprint("P", i), Type: kudo.ArrayType, Default: &list})
	}
	return map[string]*kudo.OperatorVersion{
		"unknown references":               templates(strings.Repeat("{{.X}}", 170_000)),
		"unknown references in templates":  quarters("{{.X}}", 37_000),
		"unknown parameters in templates":  quarters("{{.Params.X}}", 20_000),
		"blocks without an end":            templates(strings.Repeat("{{if 1}}", 130_000)),
		"arguments":                        templates("{{ print" + strings.Repeat(" 1", 500_000) + "}}"),
		"short templates":                  some,
		"templates without text":           many,
		"parameters without a name":        parameters,
		"tasks without a name":             tasks,
		"long names that messages list":    long,
		"lists with many values":           lists,
		"removed API versions":             templates(strings.Repeat("kind: PodDisruptionBudget\napiVersion: policy/v1beta1\n---\n", 17_000)),
		"names that are fixed":             templates(strings.Repeat("metadata:\n name: a\n---\n", 45_000)),
		"lines":                            templates(strings.Repeat("\n", 1_000_000)),
		"a number with a million digits":   templates("{{ " + strings.Repeat("9", 1_000_000) + " }}"),
		"a version with a million numbers": {Spec: kudo.OperatorVersionSpec{Version: strings.Repeat("9", 1_000_000)}},
	}
}

// TestAdmissionTakesLittleMemory bounds what verification allocates in all, so the result does not depend on the garbage collector.
func TestAdmissionTakesLittleMemory(t *testing.T) {
	const maxBytes = 256 << 20
	for name, version := range poisons() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := pack.Admit(version)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it is admitted")
			}
			allocated, stack := after.TotalAlloc-before.TotalAlloc, after.StackInuse-min(after.StackInuse, before.StackInuse)
			t.Logf("%d MiB allocated, %d MiB of stack: %.150v", allocated>>20, stack>>20, err)
			if allocated+stack > maxBytes {
				t.Errorf("it allocates %d MiB, and %d MiB of stack, more than %d", allocated>>20, stack>>20, maxBytes>>20)
			}
			if len(fmt.Sprint(err)) > 64<<10 {
				t.Errorf("the message has %d bytes", len(fmt.Sprint(err)))
			}
		})
	}
}
