package read

import (
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

const (
	// textsLimit is the number of strings that texts holds: the names of tens of thousands of clusters, and those of their add-ons.
	textsLimit = 1 << 16
	// maxTextLength is the maximum length in bytes: longer ones, such as messages of other controllers, are rarely equal.
	maxTextLength = 512
)

// texts holds one copy of each string that many objects of a fleet have: the names of add-ons and clusters, and the fields of conditions.
// Every decoded object has its own copies otherwise. It is safe for concurrent use.
type texts struct {
	mutex sync.Mutex
	known map[string]string
}

func newTexts() *texts { return &texts{known: map[string]string{}} }

// share replaces the strings of an object by the copies in t.
func (t *texts) share(object client.Object) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	object.SetNamespace(t.of(object.GetNamespace()))
	addOn, ok := object.(*addonv1alpha1.ManagedClusterAddOn)
	if !ok {
		return
	}
	addOn.Name, addOn.Spec.InstallNamespace = t.of(addOn.Name), t.of(addOn.Spec.InstallNamespace)
	for i := range addOn.Finalizers {
		addOn.Finalizers[i] = t.of(addOn.Finalizers[i])
	}
	for i := range addOn.Spec.Configs {
		config := &addOn.Spec.Configs[i]
		config.ConfigGroupResource, config.ConfigReferent = t.resource(config.ConfigGroupResource), t.referent(config.ConfigReferent)
	}
	t.shareStatus(&addOn.Status)
}

// shareStatus is share for the status of an add-on.
func (t *texts) shareStatus(status *upstream.ManagedClusterAddOnStatus) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Type, c.Reason, c.Message = t.of(c.Type), t.of(c.Reason), t.of(c.Message)
		c.Status = metav1.ConditionStatus(t.of(string(c.Status)))
	}
	for i := range status.SupportedConfigs {
		status.SupportedConfigs[i] = t.resource(status.SupportedConfigs[i])
	}
	for i := range status.ConfigReferences {
		reference := &status.ConfigReferences[i]
		reference.ConfigGroupResource = t.resource(reference.ConfigGroupResource)
		if desired := reference.DesiredConfig; desired != nil {
			desired.ConfigReferent, desired.SpecHash = t.referent(desired.ConfigReferent), t.of(desired.SpecHash)
		}
	}
	status.HealthCheck.Mode = upstream.HealthCheckMode(t.of(string(status.HealthCheck.Mode)))
}

func (t *texts) resource(r upstream.ConfigGroupResource) upstream.ConfigGroupResource {
	return upstream.ConfigGroupResource{Group: t.of(r.Group), Resource: t.of(r.Resource)}
}

func (t *texts) referent(r upstream.ConfigReferent) upstream.ConfigReferent {
	return upstream.ConfigReferent{Namespace: t.of(r.Namespace), Name: t.of(r.Name)}
}

// of returns the copy of a string. If there are too many, it forgets all of them: objects keep the copies that they have.
func (t *texts) of(text string) string {
	if text == "" || len(text) > maxTextLength {
		return text
	}
	if shared, ok := t.known[text]; ok {
		return shared
	}
	if len(t.known) >= textsLimit {
		clear(t.known)
	}
	text = strings.Clone(text) // it may be a part of a longer one
	t.known[text] = text
	return text
}
