// Package gitops tests the settings for Argo CD and Flux in deploy/gitops: the health of objects, with the languages in which both evaluate it.
package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

const (
	instance   = "apiVersion: kudo.dev/v1beta1\nkind: Instance\n"
	addOn      = "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ManagedClusterAddOn\n"
	definition = "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: ClusterManagementAddOn\n"

	placed   = "spec: {installStrategy: {type: Placements, placements: [{name: all}, {name: edge}]}}\n"
	observed = "metadata: {generation: 2}\nstatus: {observedGeneration: 2, conditions: [%s]}"
)

// given returns an object of generation 2 that is observed, with conditions.
func given(kind string, conditions ...string) string {
	return kind + strings.Replace(observed, "%s", strings.Join(conditions, ", "), 1)
}

// rolled returns a definition with the reason of the rollout at each placement.
func rolled(reasons ...string) string {
	text := definition + placed + "status:\n  installProgressions:\n"
	for _, reason := range reasons {
		text += "  - conditions: [{type: Progressing, reason: " + reason + ", message: as it is}]\n"
	}
	return text
}

var (
	ready    = "{type: Ready, status: 'True', reason: Healthy, message: all is well}"
	resolved = "{type: Resolved, status: 'True', reason: Resolved, observedGeneration: 2}"
	serving  = "{type: Available, status: 'True', reason: PlanComplete, message: complete}"
)

// cases are objects with their health in Argo CD and Flux. Flux evaluates an object again while an expression fails (error).
var cases = map[string]struct{ object, argo, flux string }{
	"a new Instance":                  {instance + "metadata: {generation: 1}\nstatus: {observedGeneration: -1}", "Progressing", "InProgress"},
	"an Instance that runs":           {given(instance, resolved, ready), "Healthy", "Current"},
	"an Instance with a newer spec":   {instance + "metadata: {generation: 3}\nstatus: {observedGeneration: 2, conditions: [" + ready + "]}", "Progressing", "InProgress"},
	"an Instance with a running plan": {given(instance, resolved, "{type: Ready, status: 'False', reason: PlanInProgress, message: waits}"), "Progressing", "InProgress"},
	"an Instance with a failed plan that is retried": {
		given(instance, resolved, "{type: Ready, status: 'False', reason: PlanFailed, message: failed and will be retried}"), "Progressing", "InProgress"},
	"an Instance with a failed plan": {
		given(instance, resolved, "{type: Ready, status: 'False', reason: PlanFailed, message: failed}", "{type: Stalled, status: 'True', reason: PlanFailed, message: failed}"),
		"Degraded", "Failed"},
	"an Instance with an unhealthy object": {given(instance, resolved, "{type: Ready, status: 'False', reason: Unhealthy, message: crashes}"), "Degraded", "InProgress"},
	"an Instance that the hub refuses": {
		instance + "metadata: {generation: 2}\nstatus: {observedGeneration: 1, conditions: [" + ready +
			", {type: Resolved, status: 'False', reason: ParametersInvalid, message: no such parameter, observedGeneration: 2}]}", "Degraded", "InProgress"},
	"an Instance that was refused before": {
		instance + "metadata: {generation: 3}\nstatus: {observedGeneration: 1, conditions: [" + ready +
			", {type: Resolved, status: 'False', reason: ParametersInvalid, message: no such parameter, observedGeneration: 2}]}", "Progressing", "InProgress"},
	"an Instance that is being removed": {
		instance + "metadata: {generation: 2, deletionTimestamp: '2026-01-01T00:00:00Z'}\nstatus: {observedGeneration: 1, conditions: [" + ready + "]}", "Progressing", "InProgress"},

	"a new add-on":         {addOn + "metadata: {generation: 1}", "Progressing", "error"},
	"an add-on that runs":  {given(addOn, resolved, serving), "Healthy", "Current"},
	"an add-on of OCM":     {given(addOn, "{type: Available, status: 'True', reason: ManagedClusterAddOnLeaseUpdated, message: alive}"), "Healthy", "Current"},
	"an add-on in update":  {given(addOn, resolved, "{type: Available, status: 'True', reason: Updating, message: is updated}"), "Progressing", "InProgress"},
	"an add-on in rollout": {given(addOn, resolved, serving, "{type: Progressing, status: 'True', reason: Progressing, message: rolls out}"), "Progressing", "InProgress"},
	"an add-on whose rollout failed": {
		given(addOn, resolved, serving, "{type: Progressing, status: 'False', reason: Failed, message: too late}"), "Degraded", "Failed"},
	"an add-on with a newer spec": {addOn + "metadata: {generation: 3}\nstatus: {conditions: [" + resolved + ", " + serving + "]}", "Progressing", "InProgress"},
	"an add-on that waits for dependencies": {
		given(addOn, "{type: Resolved, status: 'False', reason: WaitingForDependencies, message: waits, observedGeneration: 2}",
			"{type: Degraded, status: 'True', reason: RequiredDependencyNotSatisfied, message: kafka is missing}"), "Progressing", "InProgress"},
	"an add-on with an invalid configuration": {
		given(addOn, serving, "{type: Resolved, status: 'False', reason: ConfigurationInvalid, message: misspelt, observedGeneration: 2}"), "Degraded", "Failed"},
	"an add-on without its dependencies": {
		given(addOn, resolved, "{type: Available, status: 'False', reason: RequiredDependencyNotSatisfied, message: kafka is missing}",
			"{type: Degraded, status: 'True', reason: RequiredDependencyNotSatisfied, message: kafka is missing}"), "Degraded", "InProgress"},
	"an add-on without an optional dependency": {
		given(addOn, resolved, serving, "{type: Degraded, status: 'True', reason: DependencyNotSatisfied, message: kafka is missing}"), "Healthy", "Current"},
	"an add-on on a silent cluster": {given(addOn, resolved, "{type: Available, status: Unknown, reason: ManagedClusterLeaseUpdateStopped, message: silent}"), "Progressing", "InProgress"},
	"an add-on whose plan failed":   {given(addOn, resolved, "{type: Available, status: 'False', reason: PlanFailed, message: failed}"), "Degraded", "InProgress"},

	"a definition without placements":       {definition + "spec: {installStrategy: {type: Manual}}", "Healthy", "Current"},
	"a definition before its rollout":       {definition + placed, "Progressing", "error"},
	"a definition with a part of rollouts":  {rolled("Completed"), "Progressing", "InProgress"},
	"a definition in rollout":               {rolled("Completed", "Progressing"), "Progressing", "InProgress"},
	"a definition whose rollout failed":     {rolled("Progressing", "Failed"), "Degraded", "Failed"},
	"a definition that is rolled out":       {rolled("Completed", "Completed"), "Healthy", "Current"},
	"a definition that an add-on cannot do": {rolled("ConfigurationUnsupported", "Completed"), "Degraded", "Failed"},
}

func TestHealth(t *testing.T) {
	scripts, expressions := argoScripts(t), fluxExpressions(t)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(test.object), object); err != nil {
				t.Fatal(err)
			}
			if got := argoHealth(t, scripts, object); got != test.argo {
				t.Errorf("Argo CD: got %s, want %s", got, test.argo)
			}
			if got := fluxHealth(t, expressions, object); got != test.flux {
				t.Errorf("Flux: got %s, want %s", got, test.flux)
			}
			if object.GetKind() == "Instance" && object.GetDeletionTimestamp() == nil { // Flux and others without settings
				if got, err := status.Compute(object); err != nil || got.Status.String() != test.flux {
					t.Errorf("kstatus: got %v, %v, want %s", got, err, test.flux)
				}
			}
		})
	}
}

// TestReasons tries all reasons of Resolved=False: what may end without a change of the object is no failure.
func TestReasons(t *testing.T) {
	scripts, expressions := argoScripts(t), fluxExpressions(t)
	ofAddOns := []string{
		addonv1alpha1.ReasonWaitingForDependencies, addonv1alpha1.ReasonWaitingForConfiguration, addonv1alpha1.ReasonConfigurationNotFound,
		addonv1alpha1.ReasonConfigurationInvalid, addonv1alpha1.ReasonInstanceRefused,
	}
	for _, reason := range append(slices.Clone(ofAddOns), kudo.ReasonManagedClusterNotFound, kudo.ReasonOperatorVersionNotFound, kudo.ReasonOperatorVersionInvalid, kudo.ReasonContentIncomplete, kudo.ReasonPlanMissing,
		kudo.ReasonNamespaceNotAllowed, kudo.ReasonParametersInvalid, kudo.ReasonRequestInvalid, kudo.ReasonClusterFactsInvalid,
		kudo.ReasonFieldNotStored, kudo.ReasonNameCollision, kudo.ReasonNameInvalid, kudo.ReasonChildVersionNotFound,
		kudo.ReasonCircularOperators, kudo.ReasonChildrenInvalid,
	) {
		refused := "{type: Resolved, status: 'False', reason: " + reason + ", message: it is said, observedGeneration: 2}"
		argo, flux := "Progressing", "InProgress"
		if install.IsLasting(&metav1.Condition{Status: metav1.ConditionFalse, Reason: reason}) {
			argo, flux = "Degraded", "Failed"
		}
		subjects := map[string]string{"add-on": given(addOn, serving, refused)}
		if !slices.Contains(ofAddOns, reason) {
			subjects["Instance"] = given(instance, ready, refused)
		}
		for kind, text := range subjects {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), object); err != nil {
				t.Fatal(err)
			}
			if got := argoHealth(t, scripts, object); got != argo {
				t.Errorf("%s with %s in Argo CD: got %s, want %s", kind, reason, got, argo)
			}
			if got := fluxHealth(t, expressions, object); kind == "add-on" && got != flux {
				t.Errorf("%s with %s in Flux: got %s, want %s", kind, reason, got, flux)
			}
		}
	}
}

// argoScripts returns the scripts by the keys of Argo CD.
func argoScripts(t *testing.T) map[string]string {
	t.Helper()
	var settings corev1.ConfigMap
	read(t, "argocd-cm.yaml", &settings)
	return settings.Data
}

// argoHealth runs a script as Argo CD does, with these libraries.
func argoHealth(t *testing.T, scripts map[string]string, object *unstructured.Unstructured) string {
	t.Helper()
	kind := object.GroupVersionKind()
	script, exists := scripts["resource.customizations.health."+kind.Group+"_"+kind.Kind]
	if !exists {
		t.Fatalf("there is no script for %s", kind.Kind)
	}
	machine := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer machine.Close()
	for name, library := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		machine.Push(machine.NewFunction(library))
		machine.Push(lua.LString(name))
		machine.Call(1, 0)
	}
	machine.SetGlobal("obj", luaValue(machine, object.Object))
	if err := machine.DoString(script); err != nil {
		t.Fatal(err)
	}
	health, isTable := machine.Get(-1).(*lua.LTable)
	if !isTable {
		t.Fatalf("the script returns %s, not a table", machine.Get(-1).Type())
	}
	if message := health.RawGetString("message"); message.Type() != lua.LTString || message.String() == "" {
		t.Errorf("the message is %v", message)
	}
	return health.RawGetString("status").String()
}

// luaValue returns a value of an object in Lua.
func luaValue(machine *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case int64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := machine.NewTable()
		for _, element := range value {
			table.Append(luaValue(machine, element))
		}
		return table
	case map[string]any:
		table := machine.NewTable()
		for key, element := range value {
			table.RawSetString(key, luaValue(machine, element))
		}
		return table
	}
	return lua.LNil
}

// checks are the expressions for a kind, as a Kustomization of Flux has them.
type checks struct {
	Kind, APIVersion            string
	InProgress, Failed, Current string
}

// fluxExpressions returns the expressions for all kinds.
func fluxExpressions(t *testing.T) (all []checks) {
	t.Helper()
	var settings struct {
		Spec struct{ HealthCheckExprs []checks }
	}
	read(t, "flux-kustomization.yaml", &settings)
	return settings.Spec.HealthCheckExprs
}

// fluxHealth evaluates an object as Flux does (its RFC 0009): a generation that is not observed first, then the expressions in their order.
func fluxHealth(t *testing.T, all []checks, object *unstructured.Unstructured) string {
	t.Helper()
	for _, c := range all {
		if c.APIVersion != object.GetAPIVersion() || c.Kind != object.GetKind() {
			continue
		}
		seen, exists, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
		if err != nil || exists && seen != object.GetGeneration() {
			return "InProgress"
		}
		for _, step := range []struct{ expression, health string }{{c.InProgress, "InProgress"}, {c.Failed, "Failed"}, {c.Current, "Current"}} {
			if step.expression == "" {
				continue
			}
			switch result := evaluate(t, step.expression, object.Object); result {
			case "true":
				return step.health
			case "error":
				return result
			}
		}
		return "InProgress"
	}
	t.Fatalf("there are no expressions for %s", object.GetKind())
	return ""
}

// evaluate returns the result of an expression: true, false, or error.
func evaluate(t *testing.T, expression string, object map[string]any) string {
	t.Helper()
	environment, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		t.Fatal(err)
	}
	parsed, issues := environment.Parse(expression)
	if issues != nil {
		t.Fatal(issues)
	}
	program, err := environment.Program(parsed, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		t.Fatal(err)
	}
	result, _, err := program.Eval(object)
	if err != nil {
		return "error"
	}
	if result.Value() == true {
		return "true"
	}
	return "false"
}

// read reads a file of deploy/gitops.
func read(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "deploy", "gitops", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatal(err)
	}
}
