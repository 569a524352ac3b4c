package engine

import (
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// An object that is gone was not rendered for a plan that is only requested manually.
func TestPlaceOfAnObject(t *testing.T) {
	version := &kudo.OperatorVersionSpec{
		Tasks: []kudo.Task{{Name: "app", Kind: kudo.TaskApply}},
		Plans: map[string]kudo.Plan{},
	}
	for _, name := range []string{"deploy", "stop", "update", "zoom"} {
		version.Plans[name] = kudo.Plan{Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: name, Tasks: []string{"app"}}}}}}
	}
	for name, test := range map[string]struct {
		last  string
		marks map[string]string
		only  string
		want  string
	}{
		"where it was applied":                      {last: "update", marks: map[string]string{kudo.AnnotationPlan: "stop", kudo.AnnotationPhase: "main", kudo.AnnotationStep: "stop"}, want: "stop"},
		"in the last plan":                          {last: "zoom", want: "zoom"},
		"in a plan that applies all":                {last: "backup", want: "update"},
		"in a step that does not exist":             {last: "deploy", marks: map[string]string{kudo.AnnotationPlan: "stop", kudo.AnnotationPhase: "main", kudo.AnnotationStep: "x"}, want: "deploy"},
		"only in a plan that is requested manually": {last: "backup", only: "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			var places []plan.Placed
			for _, placed := range plan.Everywhere(version) {
				if test.only == "" || placed.Plan == test.only {
					places = append(places, placed)
				}
			}
			placed, found := placeFor(places, test.last, test.marks)
			if found != (test.want != "") || found && placed.Plan != test.want {
				t.Errorf("plan %q, %t, want %q", placed.Plan, found, test.want)
			}
		})
	}
}
