package plan_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// A Namespace that a version no longer renders is deleted with everything in it only if the package says so.
func TestKeepNamespace(t *testing.T) {
	space := func(annotations map[string]string) *unstructured.Unstructured {
		namespace := object("Namespace", "space")
		namespace.SetNamespace("")
		namespace.SetAnnotations(annotations)
		return namespace
	}
	prunes := map[string]string{kudo.AnnotationPrune: "true"}
	inside := kudo.InventoryEntry{Kind: "ConfigMap", Namespace: "space", Name: "a", Task: "t"}
	for name, test := range map[string]struct {
		annotations map[string]string
		install     string
		applied     entries
		want        string
	}{
		"nothing says that it may go":            {nil, "apps", nil, "lacks annotation kudo.dev/prune=true"},
		"the package says something else":        {map[string]string{kudo.AnnotationPrune: "false"}, "apps", nil, "lacks annotation"},
		"the package says that it may go":        {prunes, "apps", entries{config("b", "t")}, ""},
		"something that is applied is in it":     {prunes, "apps", entries{config("b", "t"), inside}, "applies 1 object in it, such as ConfigMap space/a"},
		"the Instance itself is installed there": {prunes, "space", nil, "installed in it"},
	} {
		got := plan.NamespaceKeptReason(space(test.annotations), test.install, test.applied)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: want %q, got %q", name, test.want, got)
		}
	}
}

func TestClaimOfReleasedObjects(t *testing.T) {
	owner := plan.Owner{Namespace: "apps", Name: "web"}
	for name, test := range map[string]struct {
		releasedBy string
		labels     map[string]string
		says       string // part of the error, empty for none
	}{
		"its own": {"apps/web", nil, ""},
		"another Instance's": {"other/web", nil, "Namespace space: already exists and was released by Instance other/web; it stays as it is: to hand it over, " +
			"set its annotation kudo.dev/released-by to apps/web; otherwise use another name in the package"},
		"one that has an owner now":          {"apps/web", map[string]string{kudo.LabelHeritage: kudo.Heritage, kudo.LabelInstance: "db"}, "belongs to Instance db"},
		"one that another tool has taken up": {"apps/web", map[string]string{"argocd.argoproj.io/instance": "shop"}, "belongs to Application shop of Argo CD"},
		"one that nobody released":           {"", nil, "was not created by this Instance"},
	} {
		live := object("Namespace", "space")
		live.SetNamespace("")
		live.SetLabels(test.labels)
		live.SetAnnotations(map[string]string{kudo.AnnotationReleasedBy: test.releasedBy})
		err := owner.Claim(plan.Object{Live: live})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: want %q, got %v", name, test.says, err)
		}
	}
}
