package hub

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

// patched answers patches with a version and a generation of the object.
type patched struct {
	client.Client
	version    string
	generation int64
}

func (patched) GroupVersionKindFor(runtime.Object) (schema.GroupVersionKind, error) {
	return kudo.GroupVersion.WithKind("Instance"), nil
}

func (p patched) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	o.SetResourceVersion(p.version)
	o.SetGeneration(p.generation)
	return nil
}

// Whether the API server stores the facts of a cluster does not depend on what other writers do to the Instance at the same time.
func TestFactsAreStoredIfTheSpecChanges(t *testing.T) {
	for name, test := range map[string]struct {
		answer patched
		stored bool
	}{
		"the spec has changed": {patched{version: "2", generation: 2}, true},
		"nothing has changed":  {patched{version: "1", generation: 1}, false},
		"another writer has changed something else, such as labels": {patched{version: "2", generation: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := install.Instance{Instance: &kudo.Instance{}, Version: &kudo.OperatorVersion{}, Cluster: &kudo.ClusterFacts{Name: "cluster1"}}
			state.Version.Spec.Templates = map[string]string{"config.yaml": "{{ .Cluster.Name }}"}
			state.Instance.ResourceVersion, state.Instance.Generation = "1", 1
			stored, err := (&instances{client: test.answer}).recordFacts(t.Context(), state)
			if stored != test.stored || errors.Is(err, errFactsDropped) == test.stored {
				t.Errorf("stored %t, %v", stored, err)
			}
		})
	}
}
