package history

import (
	"embed"
	"fmt"
	"io/fs"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// Folder is the folder of the packages in the repository.
const Folder = "test/faults/history/packages"

//go:embed packages
var packages embed.FS

// Load returns the OperatorVersions of the packages, which have no problems.
func Load() ([]*kudo.OperatorVersion, error) {
	folders, err := fs.ReadDir(packages, "packages")
	if err != nil {
		return nil, err
	}
	var versions []*kudo.OperatorVersion
	for _, folder := range folders {
		files, err := fs.Sub(packages, "packages/"+folder.Name())
		if err != nil {
			return nil, err
		}
		loaded, problems := pack.Load(files)
		if problems = append(problems, loaded.Verify()...); len(pack.Errors(problems)) > 0 {
			return nil, fmt.Errorf("%s: %v", folder.Name(), problems)
		}
		_, version := loaded.Objects(Packages)
		version.Spec.Operator = corev1.ObjectReference{Name: loaded.Name}
		versions = append(versions, version)
	}
	return versions, nil
}
