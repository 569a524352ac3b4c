package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func fromSecret(parameter, secret string) kudo.ParameterFrom {
	return kudo.ParameterFrom{Name: parameter, SecretKeyRef: kudo.SecretKeyRef{Name: secret, Key: "k"}}
}

// definePassword makes the add-on's OperatorVersion define the sensitive parameter PASSWORD.
func definePassword(a *AddOn) {
	a.Version = versionOf("kafka", "kafka-1.0.0", "TEXT", "PASSWORD")
	a.Version.Spec.Parameters[1].Sensitive = new(true)
}

func TestVariablesOfSensitiveParametersAreReferences(t *testing.T) {
	decision := Decide(addOn(variables("a", "", "PASSWORD", "secret:db/k", "TEXT", "secret:db/k")).with(definePassword))
	if decision.Instance == nil {
		t.Fatalf("got %v", decision.Resolved)
	}
	if diff := cmp.Diff([]kudo.ParameterFrom{fromSecret("PASSWORD", "db")}, decision.Instance.Spec.ParametersFrom); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"TEXT": "secret:db/k"}, decision.Instance.Spec.Parameters); diff != "" {
		t.Error(diff)
	}
}

func TestAVariableOfASensitiveParameterIsNoValue(t *testing.T) {
	decision := Decide(addOn(variables("a", "", "PASSWORD", "hunter2")).with(definePassword))
	if decision.Instance != nil || decision.Resolved == nil || decision.Resolved.Reason != addonv1alpha1.ReasonConfigurationInvalid {
		t.Fatalf("got %v and %v", decision.Instance, decision.Resolved)
	}
	message := decision.Resolved.Message
	if !strings.Contains(message, "variable PASSWORD: sensitive: must be secret:NAME/KEY") || strings.Contains(message, "hunter2") {
		t.Error(message)
	}
}

// parentWithParameterFile returns a parent with the sensitive parameter PASSWORD, whose parameter file is text, and its child, whose
// parameters are these.
func parentWithParameterFile(text string, parameters ...kudo.Parameter) Parent {
	version, child := parentVersion(), operatorVersion("bb", "1.0.0")
	version.Spec.Parameters = append(version.Spec.Parameters, kudo.Parameter{Name: "PASSWORD", Sensitive: new(true)})
	version.Spec.Templates["bb.yaml"] = text
	child.Spec.Parameters = parameters
	aa := deployingParent(func(aa *kudo.Instance) {
		aa.Spec.ParametersFrom = []kudo.ParameterFrom{fromSecret("PASSWORD", "newer")}
		aa.Status.Execution.ParametersFrom = []kudo.StartedParameterFrom{
			{ParameterFrom: fromSecret("PASSWORD", "db"), Digest: "d", DigestKey: "k"},
		}
	})
	return Parent{Instance: aa, Running: version, Instances: []kudo.Instance{*aa}, Candidates: []kudo.OperatorVersion{child}}
}

func TestASensitiveParameterIsPassedOnToAChild(t *testing.T) {
	p := parentWithParameterFile("TEXT: {{ .Params.TEXT }}\nKEY: {{ .Params.PASSWORD }}\n", kudo.Parameter{Name: "TEXT"}, kudo.Parameter{Name: "KEY", Sensitive: new(true)})
	steps := Children(p)
	if len(steps) != 1 || steps[0].Apply == nil {
		t.Fatalf("got %v", steps)
	}
	spec := steps[0].Apply.Spec
	if diff := cmp.Diff([]kudo.ParameterFrom{fromSecret("KEY", "db")}, spec.ParametersFrom); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"TEXT": "t"}, spec.Parameters); diff != "" {
		t.Error(diff)
	}
	other := steps[0].Apply.DeepCopy()
	other.Spec.ParametersFrom = nil
	if matchesChild(other, steps[0].Apply) {
		t.Error("a child without the reference is as desired")
	}
}

func TestASensitiveParameterIsNotDisclosedToAChild(t *testing.T) {
	for text, test := range map[string]struct {
		of   kudo.Parameter
		want string
	}{
		"KEY: {{ .Params.PASSWORD }}":          {kudo.Parameter{Name: "KEY"}, `sensitive parameter "PASSWORD" is passed on as parameter "KEY", which OperatorVersion "bb-1.0.0" does not define as sensitive: set sensitive: true there, or pass another value`},
		"OTHER: {{ .Params.PASSWORD }}":        {kudo.Parameter{Name: "KEY", Sensitive: new(true)}, `passed on as parameter "OTHER", which OperatorVersion "bb-1.0.0" does not define as sensitive`},
		"KEY: x{{ .Params.PASSWORD }}":         {kudo.Parameter{Name: "KEY", Sensitive: new(true)}, `sensitive parameter "PASSWORD" can only be passed on as a whole`},
		"KEY: {{ .Params.PASSWORD | b64enc }}": {kudo.Parameter{Name: "KEY", Sensitive: new(true)}, `sensitive parameter "PASSWORD" can only be passed on as a whole`},
	} {
		t.Run(text, func(t *testing.T) {
			steps := Children(parentWithParameterFile(text, test.of))
			if len(steps) != 1 || steps[0].Apply != nil || steps[0].Status.State != kudo.ChildFailed || !strings.Contains(steps[0].Status.Message, test.want) {
				t.Errorf("got %v", steps)
			}
		})
	}
}

func TestAdmitOfASensitiveParameter(t *testing.T) {
	version := versionOf("kafka", "kafka-1.0.0", "TEXT", "PASSWORD", "TOKEN")
	version.Spec.Parameters[1].Sensitive, version.Spec.Parameters[2].Sensitive = new(true), new(true)
	version.Spec.Parameters[1].Trigger, version.Spec.Parameters[2].Trigger = "one", "two"
	version.Spec.Plans = map[string]kudo.Plan{"deploy": {}, "one": {}, "two": {}}
	with := func(parameters map[string]string, from ...kudo.ParameterFrom) *Instance {
		return &Instance{Version: version, PackagesNamespace: packages, Instance: &kudo.Instance{
			ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka"},
			Spec:       kudo.InstanceSpec{OperatorVersion: newInstance("kafka").Spec.OperatorVersion, Parameters: parameters, ParametersFrom: from},
		}}
	}
	for name, test := range map[string]struct {
		before, after *Instance
		want          string
	}{
		"a reference":          {nil, with(nil, fromSecret("PASSWORD", "a")), ""},
		"a plain value":        {nil, with(map[string]string{"PASSWORD": "hunter2"}), `parameter "PASSWORD": sensitive: a value in spec.parameters is rejected`},
		"another reference":    {with(nil, fromSecret("PASSWORD", "a")), with(nil, fromSecret("PASSWORD", "b")), ""},
		"two triggers at once": {with(nil), with(nil, fromSecret("PASSWORD", "b"), fromSecret("TOKEN", "b")), `the changed parameters trigger 2 plans, "one" (PASSWORD) and "two" (TOKEN)`},
		"a reference for text": {with(nil), with(nil, fromSecret("TEXT", "b")), `parameter "TEXT": not sensitive`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Admit(test.before, *test.after)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("got %v", err)
			}
			if resolved := Judge(*test.after); strings.Contains(resolved.Message, "hunter2") ||
				strings.HasPrefix(test.want, "parameter") && resolved.Reason != kudo.ReasonParametersInvalid {
				t.Errorf("got %v", resolved)
			}
		})
	}
}

func TestReferencesToSecretsThatThePackageMayNotGetAreWarnedOf(t *testing.T) {
	const warning = `OperatorVersion "kafka-1.0.0" declares no permission to get the Secrets of parameters PASSWORD (Secret db): no new value is read ` +
		`from them until a version declares it (permissions.rules), or the parameters refer to other Secrets`
	get := func(names ...string) *kudo.Permissions {
		return &kudo.Permissions{Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: []string{"get"}},
		}}
	}
	for name, test := range map[string]struct {
		permissions *kudo.Permissions
		want        string
	}{
		"no permissions are declared": {nil, ""},
		"none to get Secrets":         {&kudo.Permissions{}, warning},
		"to get another Secret":       {get("other"), warning},
		"to get this Secret":          {get("db"), ""},
		"to get all Secrets":          {get(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := addOn(variables("a", "", "PASSWORD", "secret:db/k")).with(definePassword)
			a.Version.Spec.Permissions = test.permissions
			decision := Decide(a)
			if got := strings.Join(decision.Remarks, "\n"); got != test.want || decision.Instance == nil {
				t.Errorf("of an add-on: got %q and Instance %v", got, decision.Instance)
			}
			after := Instance{Instance: decision.Instance, Version: a.Version, PackagesNamespace: packages}
			warnings, err := Admit(nil, after)
			if got := strings.Join(warnings, "\n"); got != test.want || err != nil {
				t.Errorf("of the creation: got %q, %v", got, err)
			}
			if warnings, _ := Admit(&after, after); len(warnings) > 0 {
				t.Errorf("of a write that does not change it: got %q", warnings)
			}
		})
	}
}
