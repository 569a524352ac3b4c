package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	addonv1beta1 "github.com/tandem-addons/tandem/pkg/api/addon/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// convert converts the add-on API between v1alpha1, which is stored, and v1beta1, for the API server.
func convert(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "the request is not a ConversionReview", http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	objects, err := convertAll(review.Request)
	if err != nil {
		message := text.Ends(err.Error(), maxMessage) // it may quote the object
		log.FromContext(r.Context()).Info("refusing a conversion", "error", message)
		response.Result = metav1.Status{Status: metav1.StatusFailure, Message: message}
	} else {
		response.ConvertedObjects = objects
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(review); err != nil {
		log.FromContext(r.Context()).Error(err, "answering a conversion")
	}
}

// maxMessage is the maximum number of characters of the answer to a conversion that fails.
const maxMessage = 1024

// convertAll converts all objects of a request.
func convertAll(request *apiextensionsv1.ConversionRequest) ([]runtime.RawExtension, error) {
	var objects []runtime.RawExtension
	for _, raw := range request.Objects {
		converted, err := convertOne(raw.Raw, request.DesiredAPIVersion)
		if err != nil {
			return nil, err
		}
		objects = append(objects, runtime.RawExtension{Object: converted})
	}
	return objects, nil
}

// convertOne converts an object to a version. It stays untyped, so that unset fields stay unset.
func convertOne(raw []byte, desired string) (*unstructured.Unstructured, error) {
	if !isObject(raw) {
		return nil, errors.New("an object of the request is not a JSON object")
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	stored, served := addonv1alpha1.GroupVersion.String(), addonv1beta1.GroupVersion.String()
	current := object.GetAPIVersion()
	switch {
	case current == stored && desired == served:
		return addonv1beta1.FromV1alpha1(object)
	case current == served && desired == stored:
		return addonv1beta1.ToV1alpha1(object)
	default:
		return nil, fmt.Errorf("%s %q cannot be converted from %q to %q", object.GetKind(), object.GetName(), current, desired)
	}
}
