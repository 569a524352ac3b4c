package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/text"
)

// unreadable returns a remark about the Secrets that the plans of an Instance may not get by the permissions that its package declares; empty if
// there are none. names selects parameters. Agents decide: without declared permissions, those of a parent or of a service account count.
func unreadable(i *kudo.Instance, version *kudo.OperatorVersion, names func(string) bool) string {
	if version == nil || version.Spec.Permissions == nil {
		return ""
	}
	var refused []string
	for _, f := range i.Spec.ParametersFrom {
		secret := types.NamespacedName{Namespace: i.TargetNamespace(), Name: f.SecretKeyRef.Name}
		if names(f.Name) && !rights.MayGet(version.Spec.Permissions, secret) {
			refused = append(refused, fmt.Sprintf("%s (Secret %s)", f.Name, f.SecretKeyRef.Name))
		}
	}
	if len(refused) == 0 {
		return ""
	}
	return fmt.Sprintf("OperatorVersion %q declares no permission to get the Secrets of parameters %s: no new value is read from them until a version "+
		"declares it (permissions.rules), or the parameters refer to other Secrets", version.Name, text.List(refused, problemLimit))
}
