package change

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// Choice selects a version of an operator by OperatorVersion, operatorVersion or appVersion; the highest version if both are empty.
type Choice struct{ Version, AppVersion string }

// chooseFor returns the requested version of the operator of a running OperatorVersion, from the same namespace.
func (s *State) chooseFor(ctx context.Context, runs client.ObjectKey, choice Choice) (*kudo.OperatorVersion, error) {
	version, err := s.Version(ctx, runs)
	if err != nil {
		return nil, err
	}
	if version == nil {
		return nil, fmt.Errorf("the operator is unknown because the current OperatorVersion %s does not exist; "+
			"set spec.operatorVersion ('kubectl edit instance.kudo.dev')", runs)
	}
	return s.choose(runs.Namespace, version.OperatorName(), choice)
}

// choose returns the requested version of an operator in a namespace.
func (s *State) choose(namespace, operator string, choice Choice) (*kudo.OperatorVersion, error) {
	versions, err := s.reader.stored(namespace)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(versions, func(v kudo.OperatorVersion) bool { return v.Name == choice.Version && v.OperatorName() == operator })
	if i >= 0 {
		return &versions[i], nil
	}
	var task kudo.Task
	task.Spec.Package, task.Spec.OperatorVersion, task.Spec.AppVersion = operator, choice.Version, choice.AppVersion
	version, err := tree.Choose(task, versions)
	return &version, err
}

func reference(version *kudo.OperatorVersion) corev1.ObjectReference {
	return corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
}
