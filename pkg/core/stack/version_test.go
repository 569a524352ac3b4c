package stack

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

func TestFindVersion(t *testing.T) {
	var versions []kudo.OperatorVersion
	for _, of := range [][3]string{{"kafka", "3.9.0", "1.0.0"}, {"kafka", "3.9.1", "1.0.0"}, {"kafka", "3.9.1", "1.1.0"}, {"web", "", "2.0.0"}} {
		v := kudo.OperatorVersion{}
		v.Name = pack.VersionName(of[0], of[1], of[2])
		v.Spec.Operator.Name, v.Spec.AppVersion, v.Spec.Version = of[0], of[1], of[2]
		versions = append(versions, v)
	}
	for name, test := range map[string]struct{ want, problem string }{
		"kafka":                   {want: "kafka-3.9.1-1.1.0"},
		"kafka-3.9.0-1.0.0":       {want: "kafka-3.9.0-1.0.0"},
		"kafka@1.0.0":             {want: "kafka-3.9.1-1.0.0"},
		"kafka@kafka-3.9.0-1.0.0": {want: "kafka-3.9.0-1.0.0"},
		"web@2.0.0":               {want: "web-2.0.0"},
		"kafka@2.0.0": {problem: "OperatorVersion kafka-2.0.0 does not exist: push its package first (kubectl addon package push DIR), " +
			"or use an existing version: kafka-3.9.1-1.1.0, kafka-3.9.1-1.0.0, kafka-3.9.0-1.0.0"},
		"kafke@1.0.0": {problem: `package "kafke" not found: did you mean kafka?`},
		"kafke":       {problem: `package "kafke" not found: did you mean kafka?`},
		"web@web":     {problem: "OperatorVersion web-web does not exist: push its package first (kubectl addon package push DIR), or use an existing version: web-2.0.0"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := FindVersion(name, versions)
			problem := ""
			if err != nil {
				problem = err.Error()
			}
			if diff := cmp.Diff([]string{test.want, test.problem}, []string{found.Name, problem}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
