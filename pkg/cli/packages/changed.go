package packages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/compatibility"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// changedFields returns the names of the fields that differ between two versions. The exact name of a child's OperatorVersion is no
// difference if the stored task has none, because earlier releases did not store it.
func changedFields(stored, wanted *kudo.OperatorVersionSpec) []string {
	wanted = asStored(stored, wanted)
	if equality.Semantic.DeepEqual(stored, wanted) { // also if one has an empty list and the other none
		return nil
	}
	var changed []string
	for _, c := range pack.Compare(stored, wanted) {
		changed = append(changed, changedName(c, stored, wanted))
	}
	sameOrder := equality.Semantic.DeepEqual(stored.Parameters, wanted.Parameters) && equality.Semantic.DeepEqual(stored.Tasks, wanted.Tasks)
	if len(changed) == 0 && !sameOrder {
		return []string{"order of parameters or tasks"}
	}
	slices.Sort(changed)
	return slices.Compact(changed)
}

// asStored returns wanted without the names of children's OperatorVersions in tasks that are stored without one, and without the required versions of
// Kubernetes if none are stored: earlier releases stored neither.
func asStored(stored, wanted *kudo.OperatorVersionSpec) *kudo.OperatorVersionSpec {
	wanted = wanted.DeepCopy()
	for i := range wanted.Tasks {
		at := slices.IndexFunc(stored.Tasks, func(t kudo.Task) bool { return t.Name == wanted.Tasks[i].Name })
		if at >= 0 && stored.Tasks[at].Spec.OperatorVersionName == "" {
			wanted.Tasks[i].Spec.OperatorVersionName = ""
		}
	}
	if !compatibility.IsConstrained(stored) {
		wanted.KubernetesVersion = ""
		for i := range wanted.Content {
			wanted.Content[i].KubeVersion = ""
		}
	}
	return wanted
}

// changedName names the changed field. For a task whose child operator has another version it states that: the package itself may be
// unchanged, and the operator's name now resolves to a higher version.
func changedName(c pack.Change, stored, wanted *kudo.OperatorVersionSpec) string {
	if c.Section == pack.InVersion {
		return c.Name
	}
	name := strings.TrimSuffix(string(c.Section), "s") + " " + c.Name
	if c.Section != pack.InTasks {
		return name
	}
	if now, once := childName(wanted.Tasks, c.Name), childName(stored.Tasks, c.Name); now != once && now != "" && once != "" {
		return fmt.Sprintf("%s with child operator %s instead of %s", name, now, once)
	}
	return name
}

// childName returns the child OperatorVersion of the resolved task of that name, or an empty string.
func childName(tasks []kudo.Task, name string) string {
	i := slices.IndexFunc(tasks, func(t kudo.Task) bool { return t.Name == name })
	if i < 0 || !tree.MakesChild(tasks[i]) {
		return ""
	}
	spec := tasks[i].Spec
	return cmp.Or(spec.OperatorVersionName, pack.VersionName(spec.Package, spec.AppVersion, spec.OperatorVersion))
}
