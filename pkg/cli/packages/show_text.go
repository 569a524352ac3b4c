package packages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// parametersText returns a table; wide includes all fields of a definition.
func parametersText(view packageView, wide bool) string {
	spec := &view.version.Spec
	if len(spec.Parameters) == 0 {
		return "none\n"
	}
	header := []string{"NAME", "TYPE", "DEFAULT", "PLAN"}
	if wide {
		header = append(header, "ENUM", "POD-RESTART")
	}
	var rows [][]string
	for _, p := range progress.DefinitionsOf(spec) {
		row := []string{p.Name, p.TypeText(), defaultText(p, wide), p.PlanText()}
		if wide {
			row = append(row, cmp.Or(strings.Join(p.Enum, ", "), "-"), p.RestartText())
		}
		rows = append(rows, append(row, terminal.Cell(text.JoinMessage(cmp.Or(p.Description, p.DisplayName, "-")), wide)))
	}
	return terminal.Table(append(header, "DESCRIPTION"), rows)
}

// defaultText returns the default of a parameter, or a note that an Instance has to set it.
func defaultText(d progress.Definition, wide bool) string {
	switch {
	case d.Default != nil:
		return terminal.Cell(*d.Default, wide)
	case d.NeedsValue():
		return "(required)"
	default:
		return "-"
	}
}

// healthText returns a table of the rules for the health of custom kinds; wide does not shorten the expressions.
func healthText(rules []kudo.HealthRule, wide bool) string {
	expression := func(source string) string { return terminal.Cell(text.OneLine(cmp.Or(source, "-")), wide) }
	rows := make([][]string, 0, len(rules))
	for _, rule := range rules {
		kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		rows = append(rows, []string{text.Word(kind.String()), expression(rule.Healthy), expression(rule.Failed), expression(rule.Message)})
	}
	return terminal.Table([]string{"KIND", "HEALTHY", "FAILED", "MESSAGE"}, rows)
}

// plansText returns the trees of all plans, deploy first.
func plansText(view packageView) string {
	var b strings.Builder
	for _, name := range plansInOrder(view.version.Spec.Plans) {
		terminal.WriteTree(&b, planShape(name, view.version.Spec.Plans[name]))
	}
	return b.String()
}

func plansInOrder(plans map[string]kudo.Plan) []string {
	return slices.SortedFunc(maps.Keys(plans), func(a, b string) int {
		return cmp.Or(-cmp.Compare(deployRank(a), deployRank(b)), strings.Compare(a, b))
	})
}

func deployRank(name string) int {
	if name == kudo.DeployPlan {
		return 1
	}
	return 0
}

// planShape returns the tree of a plan.
func planShape(name string, p kudo.Plan) terminal.Node {
	root := terminal.Node{Text: "Plan " + name + terminal.StrategyText(p.Strategy) + timeoutText(p.Timeout)}
	for _, phase := range p.Phases {
		below := terminal.Node{Text: "Phase " + phase.Name + terminal.StrategyText(phase.Strategy) + timeoutText(phase.Timeout)}
		for _, step := range phase.Steps {
			text := "Step " + step.Name + timeoutText(step.Timeout)
			if len(step.Tasks) > 0 {
				text += ": " + strings.Join(step.Tasks, ", ")
			}
			below.Children = append(below.Children, terminal.Node{Text: text})
		}
		root.Children = append(root.Children, below)
	}
	return root
}

func timeoutText(timeout *metav1.Duration) string {
	if timeout == nil {
		return ""
	}
	return fmt.Sprintf(", timeout %s", timeout.Duration)
}

// tasksText returns a table.
func tasksText(view packageView) string {
	spec := view.version.Spec
	if len(spec.Tasks) == 0 {
		return "none\n"
	}
	var rows [][]string
	for _, task := range spec.Tasks {
		rows = append(rows, []string{task.Name, task.Kind, cmp.Or(strings.Join(plansWith(spec.Plans, task.Name), ", "), "-"), taskText(task)})
	}
	return terminal.Table([]string{"NAME", "KIND", "PLANS", "DETAILS"}, rows)
}

// plansWith returns the plans that run a task.
func plansWith(plans map[string]kudo.Plan, task string) []string {
	return slices.DeleteFunc(plansInOrder(plans), func(name string) bool {
		return !slices.ContainsFunc(plans[name].Phases, func(phase kudo.Phase) bool {
			return slices.ContainsFunc(phase.Steps, func(step kudo.Step) bool { return slices.Contains(step.Tasks, task) })
		})
	})
}

// taskText describes the operand of a task.
func taskText(task kudo.Task) string {
	spec := task.Spec
	switch {
	case tree.MakesChild(task):
		text := cmp.Or(spec.OperatorVersionName,
			strings.Join(slices.DeleteFunc([]string{spec.Package, spec.AppVersion, spec.OperatorVersion}, func(s string) bool { return s == "" }), "-"))
		if spec.ParameterFile != "" {
			text += " with " + spec.ParameterFile
		}
		if spec.EnablingParameter != "" {
			text += ", if " + spec.EnablingParameter + " is true"
		}
		return text
	case task.Kind == kudo.TaskHelm:
		return chartText(spec)
	case task.Kind == kudo.TaskPipe:
		return spec.Pod + " -> " + strings.Join(pipeTexts(spec.Pipe), ", ")
	case task.Kind == kudo.TaskToggle:
		return fmt.Sprintf("%s, if %s is true", strings.Join(spec.Resources, ", "), spec.Parameter)
	default:
		return cmp.Or(strings.Join(spec.Resources, ", "), "-")
	}
}

// chartText describes the chart of a Helm task.
func chartText(spec kudo.TaskSpec) string {
	text := spec.Chart
	if spec.Repository != "" {
		text += " from " + spec.Repository
	}
	if spec.ValuesFile != "" {
		text += " with " + spec.ValuesFile
	}
	if spec.EnablingParameter != "" {
		text += ", if " + spec.EnablingParameter + " is true"
	}
	return text
}

func pipeTexts(files []kudo.PipeSpec) []string {
	var texts []string
	for _, file := range files {
		texts = append(texts, fmt.Sprintf("%s (%s)", file.Key, file.Kind))
	}
	return texts
}

// permissionsText returns a table of the rules.
func permissionsText(view packageView) string {
	declared := view.version.Spec.Permissions
	if declared == nil {
		return "none declared: plans have the permissions of the agent, unless its flags restrict them\n"
	}
	rows := rulesText("install namespace", declared.Rules)
	for _, n := range declared.Namespaces {
		rows = append(rows, rulesText("namespace "+n.Name, n.Rules)...)
	}
	if rows = append(rows, rulesText("whole cluster", declared.ClusterRules)...); len(rows) == 0 {
		return "none\n"
	}
	return terminal.Table([]string{"WHERE", "RESOURCES", "NAMES", "VERBS"}, rows)
}

// rulesText returns a row for each API group of each rule.
func rulesText(where string, rules []rbacv1.PolicyRule) [][]string {
	var rows [][]string
	for _, rule := range rules {
		names, verbs := cmp.Or(strings.Join(rule.ResourceNames, ", "), "any"), strings.Join(rule.Verbs, ", ")
		if len(rule.NonResourceURLs) > 0 {
			rows = append(rows, []string{where, strings.Join(rule.NonResourceURLs, ", "), "-", verbs})
		}
		for _, group := range rule.APIGroups {
			var resources []string
			for _, name := range rule.Resources {
				resources = append(resources, schema.GroupResource{Group: group, Resource: name}.String())
			}
			rows = append(rows, []string{where, strings.Join(resources, ", "), names, verbs})
		}
	}
	return rows
}

// dependenciesText returns the tree of the Instances that the package creates.
func dependenciesText(view packageView) string {
	switch {
	case view.problem != nil:
		return text.JoinMessage(view.problem.Error()) + "\n"
	case len(view.tree.Children) == 0:
		return "none\n"
	default:
		return view.tree.text()
	}
}
