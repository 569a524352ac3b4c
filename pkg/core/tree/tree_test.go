package tree_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// version parses an OperatorVersion from "aa-1.0.0: bb cc@1.0.0 dd=name": its children in the order in which deploy runs them, each an
// operator with an optional version and an optional name. The last dash separates operator and version.
func version(line string) kudo.OperatorVersion {
	name, children, _ := strings.Cut(line, ":")
	dash := strings.LastIndex(name, "-")
	v := kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.Operator = corev1.ObjectReference{Name: name[:dash]}
	v.Spec.Version = name[dash+1:]
	var step kudo.Step
	for i, child := range strings.Fields(children) {
		task := kudo.Task{Name: fmt.Sprint("t", i+1), Kind: kudo.TaskKudoOperator}
		child, task.Spec.InstanceName, _ = strings.Cut(child, "=")
		task.Spec.Package, task.Spec.OperatorVersion, _ = strings.Cut(child, "@")
		v.Spec.Tasks = append(v.Spec.Tasks, task)
		step.Tasks = append(step.Tasks, task.Name)
	}
	v.Spec.Plans = map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Steps: []kudo.Step{step}}}}}
	return v
}

func parseVersions(lines []string) []kudo.OperatorVersion {
	versions := make([]kudo.OperatorVersion, len(lines))
	for i, line := range lines {
		versions[i] = version(line)
	}
	return versions
}

func TestResolve(t *testing.T) {
	const name61 = "a234567890123456789012345678901234567890123456789012345678901"
	for sentence, test := range map[string]struct {
		versions []string // the first is the root
		want     []string // names and versions of the descendants of an Instance x
		problems []string // a reason and a part of the message each
	}{
		"an operator without children": {versions: []string{"aa-1.0.0"}},
		"the proposal's tree, depth first and in plan order": {
			versions: []string{"aa-1.0.0: bb cc", "bb-1.0.0: ee gg", "cc-1.0.0", "ee-1.0.0", "gg-1.0.0"},
			want:     []string{"x.bb bb-1.0.0", "x.bb.ee ee-1.0.0", "x.bb.gg gg-1.0.0", "x.cc cc-1.0.0"},
		},
		"a shared operator is in the tree several times": {
			versions: []string{"aa-1.0.0: bb cc", "bb-1.0.0: zz", "cc-1.0.0: zz", "zz-1.0.0"},
			want:     []string{"x.bb bb-1.0.0", "x.bb.zz zz-1.0.0", "x.cc cc-1.0.0", "x.cc.zz zz-1.0.0"},
		},
		"one operator twice under two names": {
			versions: []string{"aa-1.0.0: zz=left zz=right", "zz-1.0.0"},
			want:     []string{"x.left zz-1.0.0", "x.right zz-1.0.0"},
		},
		"one operator in two versions": {
			versions: []string{"aa-1.0.0: zz@1.0.0=old zz", "zz-2.0.0", "zz-1.0.0"},
			want:     []string{"x.old zz-1.0.0", "x.zz zz-2.0.0"},
		},
		"an older version of an operator may be its child, for that ends": {
			versions: []string{"aa-2.0.0: aa@1.0.0", "aa-1.0.0"},
			want:     []string{"x.aa aa-1.0.0"},
		},
		"an operator without any version": {
			versions: []string{"aa-1.0.0: bb"},
			problems: []string{`ChildVersionNotFound: aa-1.0.0 -> bb: task "t1" of aa-1.0.0: operator "bb" does not exist: push`},
		},
		"a version that does not exist, further below": {
			versions: []string{"aa-1.0.0: bb", "bb-1.0.0: cc@3.0.0", "cc-1.0.0", "cc-2.0.0"},
			problems: []string{`ChildVersionNotFound: aa-1.0.0 -> bb-1.0.0 -> cc-3.0.0: task "t1" of bb-1.0.0: ` +
				`OperatorVersion cc-3.0.0 does not exist: push its package first (kubectl addon package push DIR), or use an existing version: cc-2.0.0, cc-1.0.0`},
		},
		"a package that was not resolved": {
			versions: []string{"aa-1.0.0: ./packages/bb"},
			problems: []string{`ChildVersionNotFound: aa-1.0.0 -> ./packages/bb: task "t1" of aa-1.0.0: package "./packages/bb" is a location`},
		},
		"a child of itself": {
			versions: []string{"aa-1.0.0: aa"},
			problems: []string{"CircularOperators: circular dependency: aa-1.0.0 -> aa-1.0.0: "},
		},
		"a cycle of three": {
			versions: []string{"aa-1.0.0: bb", "bb-1.0.0: cc", "cc-1.0.0: aa"},
			problems: []string{"CircularOperators: circular dependency: aa-1.0.0 -> bb-1.0.0 -> cc-1.0.0 -> aa-1.0.0: "},
		},
		"an indirect cycle is reported with the path to it": {
			versions: []string{"aa-1.0.0: bb", "bb-1.0.0: cc", "cc-1.0.0: bb"},
			problems: []string{"CircularOperators: circular dependency: aa-1.0.0 -> bb-1.0.0 -> cc-1.0.0 -> bb-1.0.0: "},
		},
		"a cycle that the highest version closes": {
			versions: []string{"aa-1.0.0: bb", "bb-1.0.0", "bb-2.0.0: aa"},
			problems: []string{"CircularOperators: circular dependency: aa-1.0.0 -> bb-2.0.0 -> aa-1.0.0: "},
		},
		"all problems together, each operator's once": {
			versions: []string{"aa-1.0.0: bb cc dd", "bb-1.0.0: cc aa", "cc-1.0.0: ee"},
			problems: []string{
				`ChildVersionNotFound: aa-1.0.0 -> bb-1.0.0 -> cc-1.0.0 -> ee: `,
				`CircularOperators: circular dependency: aa-1.0.0 -> bb-1.0.0 -> aa-1.0.0: `,
				`ChildVersionNotFound: aa-1.0.0 -> dd: `,
			},
		},
		"two tasks that make a child of one name": {
			versions: []string{"aa-1.0.0: bb bb", "bb-1.0.0"},
			problems: []string{`ChildrenInvalid: task "t1" of aa-1.0.0 and task "t2" of aa-1.0.0 create children whose names both end in "bb" ` +
				`on the managed cluster: set a different instanceName on one of them`},
		},
		"two levels whose names are the same with dashes": {
			versions: []string{"aa-1.0.0: bb cc=bb-dd", "bb-1.0.0: dd", "cc-1.0.0", "dd-1.0.0"},
			problems: []string{`ChildrenInvalid: task "t1" of bb-1.0.0 and task "t2" of aa-1.0.0 create children whose names both end in "bb-dd"`},
		},
		"a name that leaves room for one letter": {
			versions: []string{"aa-1.0.0: bb=" + name61, "bb-1.0.0"},
			want:     []string{"x." + name61 + " bb-1.0.0"},
		},
		"a name that leaves room for none": {
			versions: []string{"aa-1.0.0: bb=" + name61 + "z", "bb-1.0.0"},
			problems: []string{`ChildrenInvalid: task "t1" of aa-1.0.0 creates a child whose name ends in "` + name61 + `z", which has 62 characters: must be at most 61`},
		},
		"more Instances than any cluster could bear": {
			versions: binaryTree(40),
			problems: []string{"ChildrenInvalid: d0-1.0.0 creates more than 256 Instances: split the operator"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			versions := parseVersions(test.versions)
			node, err := tree.Resolve(&versions[0], versions)
			checkFaults(t, err, test.problems)
			if err != nil {
				return
			}
			var got []string
			for _, d := range node.Descendants("x") {
				got = append(got, d.Name+" "+d.Version.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// binaryTree returns operators with two children of the next one each.
func binaryTree(levels int) []string {
	var lines []string
	for i := range levels {
		lines = append(lines, fmt.Sprintf("d%d-1.0.0: d%d=a d%d=b", i, i+1, i+1))
	}
	return append(lines, fmt.Sprintf("d%d-1.0.0", levels))
}

func checkFaults(t *testing.T, err error, want []string) {
	t.Helper()
	if err == nil {
		if len(want) > 0 {
			t.Errorf("no problems, want %q", want)
		}
		return
	}
	var invalid *tree.Error
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if len(invalid.Problems) != len(want) {
		t.Fatalf("got %d problems, want %d: %v", len(invalid.Problems), len(want), err)
	}
	for i, problem := range invalid.Problems {
		if got := problem.Reason + ": " + problem.Message; !strings.HasPrefix(got, want[i]) {
			t.Errorf("problem %d is\n%s, want\n%s", i, got, want[i])
		}
		if !strings.Contains(err.Error(), problem.Message) {
			t.Errorf("the error does not tell %q", problem.Message)
		}
	}
}

func TestErrorIsBounded(t *testing.T) {
	e := &tree.Error{}
	for i := range 25 {
		e.Problems = append(e.Problems, tree.Problem{Message: fmt.Sprint("problem ", i)})
	}
	lines := strings.Split(e.Error(), "\n")
	if len(lines) != 11 || lines[0] != "problem 0" || lines[10] != "and 15 more problems" {
		t.Errorf("got %q", lines)
	}
}

func TestResolveChangesNothing(t *testing.T) {
	versions := parseVersions([]string{"aa-1.0.0: bb cc zz", "bb-1.0.0: zz", "cc-1.0.0: zz no", "zz-1.0.0"})
	before := make([]kudo.OperatorVersion, len(versions))
	for i := range versions {
		before[i] = *versions[i].DeepCopy()
	}
	_, err := tree.Resolve(&versions[0], versions)
	checkFaults(t, err, []string{"ChildVersionNotFound: aa-1.0.0 -> cc-1.0.0 -> no: "})
	if diff := cmp.Diff(before, versions); diff != "" {
		t.Error(diff)
	}
}

func TestTasks(t *testing.T) {
	child := func(name string) kudo.Task { return kudo.Task{Name: name, Kind: kudo.TaskKudoOperator} }
	steps := func(tasks ...string) kudo.Plan {
		plan := kudo.Plan{}
		for _, task := range tasks {
			plan.Phases = append(plan.Phases, kudo.Phase{Steps: []kudo.Step{{Tasks: []string{task}}}})
		}
		return plan
	}
	spec := &kudo.OperatorVersionSpec{
		Tasks: []kudo.Task{
			{Name: "apply", Kind: kudo.TaskApply}, child("unused"), child("backup"), child("second"), child("first"),
			{Name: "alias", Kind: kudo.TaskOperator},
		},
		Plans: map[string]kudo.Plan{
			"backup": steps("second", "backup"), "deploy": steps("first", "apply", "second", "none"), "another": steps("alias", "first"),
		},
	}
	var got []string
	for _, task := range tree.Tasks(spec) {
		got = append(got, task.Name)
	}
	if want := []string{"first", "second", "alias", "backup"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestChildName(t *testing.T) {
	for sentence, test := range map[string]struct {
		task kudo.KudoOperatorTaskSpec
		want string
	}{
		"the operator's name":          {kudo.KudoOperatorTaskSpec{Package: "ee"}, "aa.bb.ee"},
		"the name that the task gives": {kudo.KudoOperatorTaskSpec{Package: "ee", InstanceName: "store"}, "aa.bb.store"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := tree.ChildName("aa.bb", kudo.Task{Spec: kudo.TaskSpec{KudoOperatorTaskSpec: test.task}}); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestTheHubsReportAboutAChildIsFoundByItsTask(t *testing.T) {
	task := kudo.Task{Name: "cache", Spec: kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{Package: "redis"}}}
	parent := &kudo.Instance{}
	parent.Name = "shop"
	parent.Status.Children = []kudo.ChildStatus{{Task: "other", Instance: "shop.other"}}
	if got := tree.Acknowledged(parent, task); got.Instance != "shop.redis" || got.Task != "" {
		t.Errorf("nothing was reported: got %+v", got)
	}
	parent.Status.Children = append(parent.Status.Children, kudo.ChildStatus{Task: "cache", Instance: "shop.former"})
	if got := tree.Acknowledged(parent, task); got.Instance != "shop.former" {
		t.Errorf("got %+v", got)
	}
}
