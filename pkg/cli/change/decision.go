package change

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/parameter"
	"github.com/tandem-addons/tandem/pkg/preview"
)

// change is the change that a command makes on one cluster.
type change struct {
	preview.Change
	cluster string
	// step is the write of an add-on that determines the Instance.
	step *step
	// object is the object to delete on the hub; empty if there is none.
	object string
	// warnings holds the warnings of admission and the affected dependents.
	warnings []string
}

// refusals holds the errors of clusters that are not changed, by cluster.
type refusals map[string]error

// err returns an error that lists the clusters with their reasons.
func (r refusals) err() error {
	var problems []error
	for _, cluster := range slices.Sorted(maps.Keys(r)) {
		problems = append(problems, r[cluster])
	}
	return errors.Join(problems...)
}

// sameSpec reports whether two Instances have the same spec.
func sameSpec(a, b *kudo.Instance) bool {
	return referenceOf(a) == referenceOf(b) && install.SameParameters(a.Spec, b.Spec)
}

func referenceOf(i *kudo.Instance) corev1.ObjectReference {
	return corev1.ObjectReference{Namespace: i.Spec.OperatorVersion.Namespace, Name: i.Spec.OperatorVersion.Name}
}

// setsTo reports whether a spec sets a parameter to a text as given on the command line.
func setsTo(spec kudo.InstanceSpec, name, value string) bool {
	if at := slices.IndexFunc(spec.ParametersFrom, func(f kudo.ParameterFrom) bool { return f.Name == name }); at >= 0 {
		return parameter.ReferenceText(spec.ParametersFrom[at].SecretKeyRef) == value
	}
	return spec.Parameters[name] == value
}
