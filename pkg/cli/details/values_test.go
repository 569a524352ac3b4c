package details

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/install"
)

func TestValues(t *testing.T) {
	version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "addon-packages", Name: "kafka-1.0.0"}}
	clitest.Golden(t, "values-none", valuesText(progress.ValuesOf(version, ran(), nil), false))
	version.Spec.Parameters = []kudo.Parameter{
		{Name: "BROKERS", Default: ptr.To("3")}, {Name: "CONFIG", Default: ptr.To("a: 1\nb: 2")}, {Name: "IMAGE", Default: ptr.To("kafka")}, {Name: "ZONE"},
		{Name: "MEMORY", Default: ptr.To("1Gi")}, {Name: "PASSWORD", Sensitive: ptr.To(true)}, {Name: "TOKEN", Sensitive: ptr.To(true)},
		{Name: "KEY", Sensitive: ptr.To(true), Default: ptr.To("hunter2")}, {Name: "EMPTY", Default: ptr.To("")},
	}
	instance := ran()
	instance.Spec.Parameters = map[string]string{"BROKERS": "5", "CONFIG": strings.Repeat("long ", 20), "MEMORY": "2Gi", "IMAGE": "other", "TOKEN": "hunter2"}
	instance.Spec.ParametersFrom = []kudo.ParameterFrom{{Name: "PASSWORD", SecretKeyRef: kudo.SecretKeyRef{Name: "users", Key: "admin"}}}
	config := install.Reference{
		Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs, NamespacedName: types.NamespacedName{Namespace: "cluster1", Name: "kafka-parameters"},
	}
	configMap := install.Reference{Resource: addonv1alpha1.ResourceConfigMaps, NamespacedName: types.NamespacedName{Namespace: "addon-packages", Name: "kafka"}}
	settings := map[string]install.Setting{
		"BROKERS": {Reference: config, Value: "5"}, "MEMORY": {Reference: config, Value: "4Gi"}, "ZONE": {Reference: config, Value: "eu"},
		"CONFIG": {Reference: configMap, Value: instance.Spec.Parameters["CONFIG"]}, "PASSWORD": {Reference: config, Value: "secret:users/admin"},
		"TOKEN": {Reference: configMap, Value: "hunter2"}, "UNKNOWN": {Reference: config, Value: "x"},
	}
	found := progress.ValuesOf(version, instance, settings)
	clitest.Golden(t, "values", valuesText(found, false))
	clitest.Golden(t, "values-wide", valuesText(found, true))
	clitest.Golden(t, "data-values", clitest.Render(t, "yaml", terminal.Shown{Data: found}))
	if shown := clitest.Render(t, "json", terminal.Shown{Data: found}); strings.Contains(shown, "hunter2") {
		t.Errorf("it has the value of a sensitive parameter: %s", shown)
	}
	clitest.Golden(t, "values-instance", valuesText(progress.ValuesOf(version, instance, nil), false))
	instance.Name = "shop.kafka"
	instance.OwnerReferences = []metav1.OwnerReference{{APIVersion: kudo.GroupVersion.String(), Kind: "Instance", Name: "shop", Controller: ptr.To(true)}}
	clitest.Golden(t, "values-child", valuesText(progress.ValuesOf(version, instance, nil), false))
}
