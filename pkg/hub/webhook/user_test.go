package webhook

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestIsForced(t *testing.T) {
	for options, want := range map[string]bool{
		"": false, `{}`: false, `{"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","propagationPolicy":"Background"}`: false,
		`{"gracePeriodSeconds":1}`: false, `{"gracePeriodSeconds":30}`: false, `{"gracePeriodSeconds":null}`: false, `{"gracePeriodSeconds":"0"}`: false,
		`{"gracePeriodSeconds":0}`: true, `{"gracePeriodSeconds":0,"preconditions":{"uid":"a"}}`: true, `[`: false,
	} {
		for operation, deletes := range map[admissionv1.Operation]bool{admissionv1.Delete: true, admissionv1.Update: false} {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Options: runtime.RawExtension{Raw: []byte(options)}}}
			if got := isForced(request); got != (want && deletes) {
				t.Errorf("%s with %q: got %v", operation, options, got)
			}
		}
	}
}

func TestIsReplacement(t *testing.T) {
	for options, want := range map[string]bool{
		"": false, `{}`: false, `[`: false, `{"kind":"PatchOptions","apiVersion":"meta.k8s.io/v1"}`: false, `{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}`: true,
	} {
		for operation, updates := range map[admissionv1.Operation]bool{admissionv1.Create: false, admissionv1.Update: true} {
			request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Options: runtime.RawExtension{Raw: []byte(options)}}}
			if got := isReplacement(request); got != (want && updates) {
				t.Errorf("%s with %q: got %v", operation, options, got)
			}
		}
	}
}

func TestIsController(t *testing.T) {
	for user, want := range map[string]bool{
		"system:kube-controller-manager":                                                       true,
		"system:serviceaccount:kube-system:generic-garbage-collector":                          true,
		"system:serviceaccount:kube-system:namespace-controller":                               true,
		"system:serviceaccount:open-cluster-management-hub:addon-manager-controller-sa":        true,
		"system:serviceaccount:open-cluster-management:cluster-manager":                        true,
		"system:serviceaccount:hosted:registration-controller-sa":                              true,
		"system:serviceaccount:open-cluster-management-agent:klusterlet":                       true,
		"system:serviceaccount:open-cluster-management-agent-addon:default":                    false,
		"system:serviceaccount:open-cluster-managementx:default":                               false,
		"system:serviceaccount:kube-system:flux":                                               false,
		"system:serviceaccount:argocd:argocd-application-controller":                           false,
		"system:serviceaccount:argocd:open-cluster-management":                                 false,
		"addon-manager-controller-sa":                                                          false,
		"a:addon-manager-controller-sa":                                                        false,
		"kubernetes-admin":                                                                     false,
		"":                                                                                     false,
		"open-cluster-management-hub:addon-manager-controller-sa":                              false,
		"oidc:system:serviceaccount:open-cluster-management-hub:addon-manager-controller-sa:a": false,
	} {
		if got := isController(user); got != want {
			t.Errorf("%q: got %v, want %v", user, got, want)
		}
	}
}
