package webhook

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// ask posts a body to the converter, and returns the status and the body of the response.
func ask(t testing.TB, handler http.Handler, body []byte) (int, string) {
	t.Helper()
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/convert", strings.NewReader(string(body))))
	return answer.Code, answer.Body.String()
}

// review returns a request to convert objects, given as JSON, to a version.
func review(t testing.TB, version string, objects ...string) []byte {
	t.Helper()
	request := &apiextensionsv1.ConversionRequest{UID: types.UID("42"), DesiredAPIVersion: version}
	for _, object := range objects {
		request.Objects = append(request.Objects, runtime.RawExtension{Raw: []byte(object)})
	}
	text, err := json.Marshal(apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "ConversionReview"}, Request: request,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

const (
	storedDefinition = `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn",` +
		`"metadata":{"name":"kafka"},"spec":{"dependencies":[{"name":"zookeeper","type":"Required"}],"supportedConfigs":[]}}`
	servedDefinition = `{"apiVersion":"addon.open-cluster-management.io/v1beta1","kind":"ClusterManagementAddOn",` +
		`"metadata":{"name":"kafka"},"spec":{"defaultConfigs":[],"dependencies":[{"name":"zookeeper","type":"Required"}]}}`
	storedAddOn = `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ManagedClusterAddOn",` +
		`"metadata":{"generation":9007199254740993,"name":"kafka","namespace":"cluster1"},"spec":{"installNamespace":"streams"}}`
	servedAddOn = `{"apiVersion":"addon.open-cluster-management.io/v1beta1","kind":"ManagedClusterAddOn",` +
		`"metadata":{"annotations":{"addon.open-cluster-management.io/v1alpha1-install-namespace":"streams"},` +
		`"generation":9007199254740993,"name":"kafka","namespace":"cluster1"},"spec":{}}`
)

func TestConverterAnswers(t *testing.T) {
	const success = `"result":{"metadata":{},"status":"Success"}}`
	tests := map[string]struct {
		body []byte
		want string // the response, or a part of it for a failure
	}{
		"objects of several kinds, in the order asked for": {
			body: review(t, "addon.open-cluster-management.io/v1beta1", storedDefinition, storedAddOn),
			want: `{"uid":"42","convertedObjects":[` + servedDefinition + `,` + servedAddOn + `],` + success,
		},
		"the stored version": {
			body: review(t, "addon.open-cluster-management.io/v1alpha1", servedDefinition, servedAddOn),
			want: `{"uid":"42","convertedObjects":[` + storedDefinition + `,` + storedAddOn + `],` + success,
		},
		"a kind that has no versions": {
			body: review(t, "addon.open-cluster-management.io/v1beta1",
				`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate"}`),
			want: `kind \"AddOnTemplate\" has no versions to convert between`,
		},
		"a version that there is not": {
			body: review(t, "addon.open-cluster-management.io/v1", storedDefinition),
			want: `ClusterManagementAddOn \"kafka\" cannot be converted from \"addon.open-cluster-management.io/v1alpha1\" to \"addon.open-cluster-management.io/v1\"`,
		},
		"an object that is in the version already": {
			body: review(t, "addon.open-cluster-management.io/v1alpha1", storedDefinition),
			want: `ClusterManagementAddOn \"kafka\" cannot be converted from `,
		},
		"one object among others that is not what its schema says": {
			body: review(t, "addon.open-cluster-management.io/v1beta1", storedAddOn,
				`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn",`+
					`"metadata":{"name":"broken"},"spec":5}`),
			want: `converting ClusterManagementAddOn \"broken\" to v1beta1: spec is a int64`,
		},
		"a name of a megabyte": {
			body: review(t, "addon.open-cluster-management.io/v1", `{"apiVersion":"addon.open-cluster-management.io/v1alpha1",`+
				`"kind":"ClusterManagementAddOn","metadata":{"name":"`+strings.Repeat("x", 1<<20)+`"}}`),
			want: `ClusterManagementAddOn \"` + strings.Repeat("x", 488) + `…`,
		},
		"no object": {
			body: review(t, "addon.open-cluster-management.io/v1beta1", `null`),
			want: `not a JSON object`,
		},
		"a list, which would be YAML": {
			body: review(t, "addon.open-cluster-management.io/v1beta1", `[{"kind":"ManagedClusterAddOn"}]`),
			want: `not a JSON object`,
		},
		"a text, which would be YAML": {
			body: review(t, "addon.open-cluster-management.io/v1beta1", `"kind: ManagedClusterAddOn"`),
			want: `not a JSON object`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			code, text := ask(t, http.HandlerFunc(convert), test.body)
			var answer struct{ Response json.RawMessage }
			if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusOK {
				t.Fatalf("status %d, %v: %s", code, err, text)
			}
			got := string(answer.Response)
			if strings.HasPrefix(test.want, "{") {
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			} else if !strings.Contains(got, test.want) || !strings.Contains(got, `"status":"Failure"`) {
				t.Errorf("response %s, want a failure with %s", got, test.want)
			}
		})
	}
}

func TestConverterRefusesWhatIsNoReview(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "no JSON": "{", "no request": "{}", "another document": `{"kind":"Pod"}`, "a list": "[]",
	} {
		t.Run(name, func(t *testing.T) {
			if code, text := ask(t, http.HandlerFunc(convert), []byte(body)); code != http.StatusBadRequest {
				t.Errorf("status %d: %s", code, text)
			}
		})
	}
}

// Every request gets a response: objects for objects, or a failure with a reason.
func FuzzConverter(f *testing.F) {
	for _, object := range []string{storedDefinition, servedDefinition, storedAddOn, servedAddOn, `{}`, `null`, `5`} {
		f.Add("addon.open-cluster-management.io/v1alpha1", []byte(object))
		f.Add("addon.open-cluster-management.io/v1beta1", []byte(object))
	}
	f.Fuzz(func(t *testing.T, version string, object []byte) {
		if !json.Valid(object) {
			if code, _ := ask(t, http.HandlerFunc(convert), object); code != http.StatusBadRequest {
				t.Fatalf("status %d for what is no JSON", code)
			}
			return
		}
		code, text := ask(t, http.HandlerFunc(convert), review(t, version, string(object)))
		var answer apiextensionsv1.ConversionReview
		if err := json.Unmarshal([]byte(text), &answer); err != nil || code != http.StatusOK {
			t.Fatalf("status %d, %v: %s", code, err, text)
		}
		switch response := answer.Response; {
		case response.Result.Status == metav1.StatusSuccess && len(response.ConvertedObjects) == 1:
		case response.Result.Status == metav1.StatusFailure && response.Result.Message != "" &&
			response.Result.Message != "internal error occurred during conversion":
		default:
			t.Errorf("%s\nis answered by\n%s", object, text)
		}
	})
}

func BenchmarkConverter(b *testing.B) {
	body := review(b, "addon.open-cluster-management.io/v1beta1", storedAddOn)
	b.ReportAllocs()
	for b.Loop() {
		if code, text := ask(b, http.HandlerFunc(convert), body); code != http.StatusOK {
			b.Fatal(text)
		}
	}
}
