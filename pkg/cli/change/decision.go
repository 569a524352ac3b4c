package change

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/preview"
)

// change is what a command makes of one cluster.
type change struct {
	preview.Change
	cluster string
	// step is what is written of an add-on, whose Instance follows from that.
	step *step
	// object is what is deleted on the hub; empty where nothing is.
	object string
	// warnings are what admission says of the write, or who suffers from it.
	warnings []string
}

// refusals are why clusters are left as they are.
type refusals map[string]error

// err names all clusters and why.
func (r refusals) err() error {
	var faults []error
	for _, cluster := range slices.Sorted(maps.Keys(r)) {
		faults = append(faults, r[cluster])
	}
	return errors.Join(faults...)
}

// sameSpec says whether nothing is to be written.
func sameSpec(a, b *kudo.Instance) bool {
	return referenceOf(a) == referenceOf(b) && maps.Equal(a.Spec.Parameters, b.Spec.Parameters)
}

func referenceOf(i *kudo.Instance) corev1.ObjectReference {
	return corev1.ObjectReference{Namespace: i.Spec.OperatorVersion.Namespace, Name: i.Spec.OperatorVersion.Name}
}
