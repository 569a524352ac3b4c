package structure

import (
	"regexp"
	"strconv"
	"testing"
)

// aliases maps versions of API groups to their import names in all files.
var aliases = map[string]string{
	module + "/pkg/api/addon/v1alpha1": "addonv1alpha1",
	module + "/pkg/api/addon/v1beta1":  "addonv1beta1",
	module + "/pkg/api/kudo/v1beta1":   "kudo",

	"open-cluster-management.io/api/addon/v1alpha1":   "upstream",
	"open-cluster-management.io/api/addon/v1beta1":    "upstreamv1beta1",
	"open-cluster-management.io/api/cluster/v1":       "clusterv1",
	"open-cluster-management.io/api/cluster/v1alpha1": "clusterv1alpha1",
	"open-cluster-management.io/api/cluster/v1beta1":  "clusterv1beta1",
	"open-cluster-management.io/api/cluster/v1beta2":  "clusterv1beta2",
	"open-cluster-management.io/api/work/v1":          "workv1",

	"k8s.io/api/admission/v1":                                  "admissionv1",
	"k8s.io/api/admissionregistration/v1":                      "admissionregistrationv1",
	"k8s.io/api/apps/v1":                                       "appsv1",
	"k8s.io/api/autoscaling/v1":                                "autoscalingv1",
	"k8s.io/api/autoscaling/v2":                                "autoscalingv2",
	"k8s.io/api/authentication/v1":                             "authenticationv1",
	"k8s.io/api/authorization/v1":                              "authorizationv1",
	"k8s.io/api/batch/v1":                                      "batchv1",
	"k8s.io/api/certificates/v1":                               "certificatesv1",
	"k8s.io/api/coordination/v1":                               "coordinationv1",
	"k8s.io/api/flowcontrol/v1":                                "flowcontrolv1",
	"k8s.io/api/core/v1":                                       "corev1",
	"k8s.io/api/events/v1":                                     "eventsv1",
	"k8s.io/api/networking/v1":                                 "networkingv1",
	"k8s.io/api/policy/v1":                                     "policyv1",
	"k8s.io/api/rbac/v1":                                       "rbacv1",
	"k8s.io/api/scheduling/v1":                                 "schedulingv1",
	"k8s.io/api/storage/v1":                                    "storagev1",
	"k8s.io/apimachinery/pkg/apis/meta/v1":                     "metav1",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": "apiextensionsv1",
}

// groupVersion matches the import paths of versions of API groups.
var groupVersion = regexp.MustCompile(`^(` + module + `/pkg/api|open-cluster-management\.io/api|k8s\.io/api|` +
	`k8s\.io/apimachinery/pkg/apis|k8s\.io/apiextensions-apiserver/pkg/apis)/[a-z]+/v[0-9]+[a-z0-9]*$`)

func TestEveryFileCallsAnAPIVersionTheSame(t *testing.T) {
	paths := map[string]string{}
	for importPath, alias := range aliases {
		if other, taken := paths[alias]; taken {
			t.Errorf("%s and %s are both called %s", importPath, other, alias)
		}
		paths[alias] = importPath
	}
	for _, s := range sources(t) {
		if s.isGenerated() {
			continue
		}
		for _, spec := range s.syntax.Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			alias, known := aliases[importPath]
			switch {
			case !groupVersion.MatchString(importPath):
			case !known:
				t.Errorf("%s imports %s: say in aliases what it is called", s.at(spec), importPath)
			case spec.Name == nil || spec.Name.Name != alias:
				t.Errorf("%s: import %s as %s", s.at(spec), importPath, alias)
			}
		}
	}
}
