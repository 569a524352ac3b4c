package ui

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/progress"
)

// TestVersionsThatCannotBeChosen checks the Instances whose page has no form for the version, without a look at the versions.
func TestVersionsThatCannotBeChosen(t *testing.T) {
	acts := visit{acts: everything{}}
	for sentence, change := range map[string]func(p *progress.View, v *visit){
		"without permission":                    func(_ *progress.View, v *visit) { v.acts = nil },
		"if the OperatorVersion cannot be read": func(p *progress.View, _ *visit) { p.Version = nil },
		"if it is being deleted":                func(p *progress.View, _ *visit) { p.Instance.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} },
		"of a child": func(p *progress.View, _ *visit) {
			p.Instance.Name = "parent.store"
			p.Instance.OwnerReferences = []metav1.OwnerReference{{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "parent", Controller: ptr.To(true)}}
		},
	} {
		instance, version := store()
		p, v := progress.View{Instance: instance, Version: version}, acts
		change(&p, &v)
		if form, err := v.upgradeForm(t.Context(), p); err != nil || form.Path != "" || form.RolledOut != "" {
			t.Errorf("%s: got %+v, %v", sentence, form, err)
		}
	}
}
