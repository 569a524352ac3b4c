package install

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var reservedNamespaces = []string{"kube-system", "tandem-system"}

const (
	isReserved    = `nothing is installed in namespace "kube-system", which is reserved: `
	howToAllow    = "(flag --allow-namespaces of addon-manager and of addon-agent allows it)"
	ofTheInstance = isReserved + "delete the Instance, and create it with another spec.installNamespace " + howToAllow
)

func TestAnInstanceIsNotInstalledInAReservedNamespace(t *testing.T) {
	for name, test := range map[string]struct {
		instance *kudo.Instance
		message  string // of Resolved, and of admission; empty if it is resolved and admitted
	}{
		"a reserved one":                       {newInstance("kafka", installedIn("kube-system")), ofTheInstance},
		"another one":                          {newInstance("kafka", installedIn("data")), ""},
		"that of its cluster":                  {newInstance("kafka"), ""},
		"a reserved one in which it runs":      {asStarted(nil, newInstance("kafka", installedIn("kube-system"))), ""},
		"a reserved one that names its parent": {childOf("kafka", "version", installedIn("kube-system")), ofTheInstance},
	} {
		t.Run(name, func(t *testing.T) {
			i := Instance{Instance: test.instance, Version: version(), PackagesNamespace: packages, Reserved: reservedNamespaces}
			got := Judge(i)
			if (got.Status == metav1.ConditionTrue) != (test.message == "") ||
				test.message != "" && (got.Reason != kudo.ReasonNamespaceNotAllowed || got.Message != test.message) {
				t.Errorf("Resolved is %+v", got)
			}
			if _, err := Admit(nil, i); (err != nil) != (test.message != "") || err != nil && !strings.HasSuffix(err.Error(), test.message) {
				t.Errorf("its creation: %v", err)
			}
			if _, err := Admit(&i, i); err != nil {
				t.Errorf("its update: %v", err)
			}
		})
	}
}

func TestAnAddOnIsNotInstalledInAReservedNamespace(t *testing.T) {
	const message = isReserved + "set another one in spec.installNamespace of the ManagedClusterAddOn, or agentInstallNamespace of its " +
		"AddOnDeploymentConfig " + howToAllow
	system := func(a *AddOn) { a.ManagedAddOn.Spec.InstallNamespace = "kube-system" }
	for name, test := range map[string]struct {
		addOn   AddOn
		message string
	}{
		"its own":                           {addOn().with(system), message},
		"that of an AddOnDeploymentConfig":  {addOn(variables("a", "kube-system")), message},
		"its own, which a config overrides": {addOn(variables("a", "data")).with(system), ""},
		"that of an Instance that exists": {addOn().with(func(a *AddOn) {
			a.Instances = []kudo.Instance{own("", 7, installedIn("kube-system"))}
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Decide(test.addOn.with(func(a *AddOn) { a.Reserved = reservedNamespaces }))
			switch {
			case (got.Instance == nil) != (test.message != ""):
				t.Errorf("got Instance %+v", got.Instance)
			case test.message != "" && (got.Resolved.Reason != kudo.ReasonNamespaceNotAllowed || got.Resolved.Message != test.message):
				t.Errorf("Resolved is %+v", got.Resolved)
			}
		})
	}
}

func TestAdmitInstallNamespace(t *testing.T) {
	in := func(namespace string) *addonv1alpha1.ManagedClusterAddOn {
		a := newAddOn()
		a.Spec.InstallNamespace = namespace
		return a
	}
	for name, test := range map[string]struct {
		before, after *addonv1alpha1.ManagedClusterAddOn
		refused       bool
	}{
		"none":                        {nil, in(""), false},
		"another one":                 {nil, in("data"), false},
		"a reserved one":              {nil, in("kube-system"), true},
		"a change to a reserved one":  {in("data"), in("kube-system"), true},
		"a reserved one that it has":  {in("kube-system"), in("kube-system"), false},
		"a change of a reserved one":  {in("kube-system"), in("tandem-system"), true},
		"a change to one that is not": {in("kube-system"), in("data"), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := AdmitInstallNamespace(test.before, test.after, reservedNamespaces)
			if (err != nil) != test.refused || err != nil && !strings.Contains(err.Error(), "spec.installNamespace: nothing is installed in namespace") {
				t.Errorf("got %v", err)
			}
		})
	}
}
