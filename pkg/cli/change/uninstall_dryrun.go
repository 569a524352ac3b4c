package change

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/install"
	"github.com/tandem-addons/tandem/pkg/survey"
)

// uninstallChanges returns the changes made by uninstalling the found objects.
func uninstallChanges(ctx context.Context, c client.Client, found []installed) ([]change, error) {
	known := &changing{
		reader: newReader(ctx, c),
		stored: onceEach(func(namespace string) ([]kudo.OperatorVersion, error) {
			return survey.StoredVersions(ctx, c, namespace)
		}),
	}
	var changes []change
	for _, i := range found {
		if i.instance == nil {
			continue // the add-on has no applied objects
		}
		started, err := known.startedVersion(ctx, i.instance)
		if err != nil {
			return nil, err
		}
		suffer, _ := suffering([]installed{i})
		going := change{cluster: i.Namespace, warnings: suffer, object: i.String()}
		going.Before, going.Started, going.Instances = i.instance, started, i.below
		if going.Candidates, err = known.candidates(install.VersionOf(i.instance).Namespace, started); err != nil {
			return nil, err
		}
		changes = append(changes, going)
	}
	return changes, nil
}
