package packages

import (
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

func TestListText(t *testing.T) {
	version := func(namespace, operator, appVersion, version string) kudo.OperatorVersion {
		v := kudo.OperatorVersion{}
		v.Namespace, v.Name = namespace, pack.VersionName(operator, appVersion, version)
		v.Spec.Operator.Name, v.Spec.AppVersion, v.Spec.Version = operator, appVersion, version
		return v
	}
	versions := []kudo.OperatorVersion{
		version("cluster1", "web", "", "1.0.0"), version("addon-packages", "web", "", "1.9.0"), version("addon-packages", "web", "", "1.10.0"),
		version("addon-packages", "kafka", "3.9.0", "1.0.0"),
	}
	sortByVersion(versions)
	data := listData{Packages: []listedPackage{}}
	for i, v := range versions {
		p := listedOf(v)
		if v.Namespace != "cluster1" {
			p.Instances = new(100 * i)
		}
		data.Packages = append(data.Packages, p)
	}
	clitest.Golden(t, "list", data.text()+"---\n"+clitest.Render(t, "yaml", terminal.Shown{Data: data})+"---\n"+listData{}.text())
}
