package change

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/tree"
	"github.com/tandem-addons/tandem/pkg/text"
)

// completeInstance completes the change of an Instance that no add-on owns. It returns an error if the change would be rejected, with the
// message of admission or of condition Resolved.
func (s *State) completeInstance(ctx context.Context, found Change) (Change, error) {
	var err error
	if found.Version, err = s.Version(ctx, install.VersionOf(found.After)); err != nil {
		return found, err
	}
	if found.Started, err = s.reader.startedVersion(ctx, found.Before); err != nil {
		return found, err
	}
	var current *kudo.OperatorVersion
	if found.Before != nil {
		if current, err = s.Version(ctx, install.VersionOf(found.Before)); err != nil {
			return found, err
		}
	}
	found.Instances = s.instances[found.Cluster]
	if found.Candidates, err = s.reader.candidates(install.VersionOf(found.After).Namespace, found.Version, found.Started, current); err != nil {
		return found, err
	}
	found = s.reader.withCluster(ctx, found)
	var before *install.Instance
	messageBefore := ""
	if found.Before != nil {
		before = new(found.state(found.Before, current))
		messageBefore = install.Judge(*before).Message
	}
	after := found.state(found.After, found.Version)
	if found.Warnings, err = install.Admit(before, after); err != nil {
		return found, err
	}
	if judged := install.Judge(after); judged.Status != metav1.ConditionTrue && judged.Message != messageBefore {
		return found, fmt.Errorf("cluster %s: Instance %q cannot run: %s: %s", found.Cluster, found.After.Name, judged.Reason, text.JoinMessage(judged.Message))
	}
	return found, nil
}

// state returns the input for the decision about an Instance.
func (c Change) state(instance *kudo.Instance, version *kudo.OperatorVersion) install.Instance {
	// The namespace of the packages that agents may read is a flag of addon-manager, so any named namespace is accepted here.
	state := install.Instance{
		Instance: instance, Version: version, Started: c.Started, Instances: c.Instances,
		PackagesNamespace: install.VersionOf(instance).Namespace, Cluster: c.Facts,
	}
	if version == nil || len(tree.Tasks(&version.Spec)) == 0 {
		return state
	}
	var err error
	if state.Tree, err = tree.Resolve(version, c.Candidates); err != nil {
		errors.As(err, &state.TreeProblem)
	}
	return state
}
