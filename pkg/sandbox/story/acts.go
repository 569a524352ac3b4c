package story

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

const (
	packagesNamespace = kudo.DefaultPackagesNamespace
	installNamespace  = "data"

	zookeeperVersion = "zookeeper-3.9.2-1.0.0"
	kafkaVersion     = "kafka-3.9.0-1.0.0"
	streamingVersion = "streaming-1.0.0"

	lacksZookeeper  = "Required addon 'zookeeper' is not installed or not available. Brokers cannot read their metadata."
	lacksMonitoring = "Optional addon 'monitoring' is not installed or not available. Broker metrics are not collected."
)

// story returns the list of acts.
func story() []act {
	return append(slices.Concat(installActs(), changeActs(), removalActs()), childActs())
}

// installActs returns the acts that install the add-ons.
func installActs() []act {
	return []act{
		{
			title: "A platform team pushes two packages to the hub and defines the add-ons. kafka requires zookeeper; monitoring is optional.",
			do:    prepare,
			promises: []promise{
				{"the hub holds both packages", packagesPushed},
			},
		},
		{
			title: "kafka is enabled on both clusters, but zookeeper is not.",
			do:    enable("kafka", "cluster1", "cluster2"),
			promises: []promise{
				heldPromise("cluster1"),
				heldPromise("cluster2"),
				nothingInstalled("cluster1"),
				nothingInstalled("cluster2"),
			},
		},
		{
			title: "zookeeper is enabled on cluster1: it is deployed phase by phase, then kafka is deployed automatically.",
			do:    enable("zookeeper", "cluster1"),
			promises: []promise{
				planComplete("cluster1", "zookeeper", kudo.DeployPlan),
				condition("cluster1", "zookeeper", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""),
				planComplete("cluster1", "kafka", kudo.DeployPlan),
				condition("cluster1", "kafka", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""),
				condition("cluster1", "kafka", addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonDependencyNotSatisfied, lacksMonitoring),
				replicas("cluster1", "zookeeper", 3),
				replicas("cluster1", "kafka", 3),
				installedAfter("cluster1", "kafka", "zookeeper"),
				heldPromise("cluster2"),
			},
		},
	}
}

// changeActs returns the acts that change the running add-ons.
func changeActs() []act {
	return []act{
		{
			title: "kafka is scaled to five brokers on cluster1 with a parameter: plan `update` runs, and no pod is restarted.",
			do:    configure(map[string]string{"BROKERS": "5"}),
			promises: []promise{
				planComplete("cluster1", "kafka", kudo.UpdatePlan),
				replicas("cluster1", "kafka", 5),
				notRestarted("cluster1", "kafka"),
				condition("cluster1", "kafka", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""),
			},
		},
		{
			title: "kafka's exporter is enabled with a parameter (KEP-23).",
			do:    configure(map[string]string{"BROKERS": "5", "EXPORTER_ENABLED": "true"}),
			promises: []promise{
				planComplete("cluster1", "kafka", "exporter"),
				exporter("cluster1", true),
				condition("cluster1", "kafka", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""),
			},
		},
		{
			title: "kafka's exporter is disabled again.",
			do:    configure(map[string]string{"BROKERS": "5", "EXPORTER_ENABLED": "false"}),
			promises: []promise{
				planComplete("cluster1", "kafka", "exporter"),
				exporter("cluster1", false),
				condition("cluster1", "kafka", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""),
			},
		},
	}
}

// removalActs returns the acts that remove the add-ons from cluster1, and then install them on cluster2.
func removalActs() []act {
	return []act{
		{
			title: "zookeeper is disabled on cluster1: kafka keeps running, and the hub reports it as degraded.",
			do:    disable("zookeeper", "cluster1"),
			promises: []promise{
				removedPromise("cluster1", "zookeeper"),
				condition("cluster1", "kafka", addonv1alpha1.ConditionDegraded, metav1.ConditionTrue,
					addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacksZookeeper+"\n"+lacksMonitoring),
				condition("cluster1", "kafka", addonv1alpha1.ConditionAvailable, metav1.ConditionFalse,
					addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacksZookeeper+"\n"+lacksMonitoring),
				replicas("cluster1", "kafka", 5),
			},
		},
		{
			title: "kafka is disabled on cluster1: its plan `cleanup` runs, and all its objects are removed.",
			do:    disable("kafka", "cluster1"),
			promises: []promise{
				removedPromise("cluster1", "kafka"),
				cleanedUp("cluster1", "kafka"),
				heldPromise("cluster2"),
			},
		},
		{
			title: "zookeeper is enabled on cluster2: kafka is deployed there, too.",
			do:    enable("zookeeper", "cluster2"),
			promises: []promise{
				planComplete("cluster2", "kafka", kudo.DeployPlan),
				condition("cluster2", "kafka", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""),
				replicas("cluster2", "kafka", 3),
			},
		},
	}
}

// childActs returns the act that shows a package with child operators.
func childActs() act {
	return act{
		title: "streaming is enabled on cluster2: zookeeper and kafka are deployed as its child operators (KEP-29).",
		do: func(ctx context.Context, s *stage) error {
			if err := s.kubectlAddon(ctx, "package", "push", filepath.Join(s.Packages, "streaming")); err != nil {
				return err
			}
			if err := s.define(ctx, definition("streaming", streamingVersion)); err != nil {
				return err
			}
			return enable("streaming", "cluster2")(ctx, s)
		},
		promises: []promise{
			planComplete("cluster2", "streaming.zookeeper", kudo.DeployPlan),
			planComplete("cluster2", "streaming.kafka", kudo.DeployPlan),
			installedAfter("cluster2", "streaming.kafka", "streaming.zookeeper"),
			planComplete("cluster2", "streaming", kudo.DeployPlan),
			replicas("cluster2", "streaming-kafka", 3),
			condition("cluster2", "streaming", addonv1alpha1.ConditionAvailable, metav1.ConditionTrue, addonv1alpha1.ReasonPlanComplete, ""),
		},
	}
}

// prepare pushes the packages as a user would, and defines the add-ons.
func prepare(ctx context.Context, s *stage) error {
	for _, name := range addOns() {
		if err := s.kubectlAddon(ctx, "package", "push", filepath.Join(s.Packages, name)); err != nil {
			return err
		}
	}
	zookeeper := definition("zookeeper", zookeeperVersion)
	kafka := definition("kafka", kafkaVersion,
		addonv1alpha1.AddonDependency{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeRequired, Message: "Brokers cannot read their metadata."},
		addonv1alpha1.AddonDependency{Name: "monitoring", Type: addonv1alpha1.DependencyTypeOptional, Message: "Broker metrics are not collected."})
	for _, d := range []*addonv1alpha1.ClusterManagementAddOn{zookeeper, kafka} {
		if err := s.define(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// define creates a definition, or updates an existing one.
func (s *stage) define(ctx context.Context, want *addonv1alpha1.ClusterManagementAddOn) error {
	current := &addonv1alpha1.ClusterManagementAddOn{}
	err := s.hub.Get(ctx, client.ObjectKeyFromObject(want), current)
	if apierrors.IsNotFound(err) {
		return s.hub.Create(ctx, want)
	}
	if err != nil {
		return err
	}
	generation := current.Generation
	current.Spec = want.Spec
	if err := s.hub.Update(ctx, current); err != nil {
		return err
	}
	if current.Generation != generation {
		fmt.Fprintf(s.Out, "   Restored ClusterManagementAddOn %s, which was modified.\n", want.Name)
	}
	return nil
}

// definition returns the definition of an add-on that runs by the plans of an OperatorVersion.
func definition(name, version string, dependencies ...addonv1alpha1.AddonDependency) *addonv1alpha1.ClusterManagementAddOn {
	d := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.Dependencies = dependencies
	d.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	d.Spec.SupportedConfigs = []upstream.ConfigMeta{
		{
			ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
			DefaultConfig:       &upstream.ConfigReferent{Namespace: packagesNamespace, Name: version},
		},
		{ConfigGroupResource: deploymentConfigs},
	}
	return d
}

var deploymentConfigs = upstream.ConfigGroupResource{
	Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs,
}

// kubectlAddon runs the plugin on the hub and prints its output, identical output only once.
func (s *stage) kubectlAddon(ctx context.Context, arguments ...string) error {
	line := "kubectl addon " + strings.Join(arguments, " ")
	s.print("   $ " + line + "\n")
	command := exec.CommandContext(ctx, s.Plugin, append(arguments, "--kubeconfig", s.Hub)...)
	command.Env = append(os.Environ(), "KUBECONFIG=")
	output, err := command.CombinedOutput()
	s.print(indent(string(output)))
	if err != nil {
		s.print(fmt.Sprintf("   … failed; retrying for up to %s\n", actTimeout))
		return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// print prints a text unless it was printed before.
func (s *stage) print(text string) {
	if !s.printed[text] {
		fmt.Fprint(s.Out, text)
		s.printed[text] = true
	}
}

// enable creates ManagedClusterAddOns.
func enable(name string, clusters ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		for _, cluster := range clusters {
			enabled := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster}}
			enabled.Spec.InstallNamespace = installNamespace
			if err := client.IgnoreAlreadyExists(s.hub.Create(ctx, enabled)); err != nil {
				return err
			}
		}
		return nil
	}
}

func disable(name, cluster string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		enabled := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: cluster}}
		return client.IgnoreNotFound(s.hub.Delete(ctx, enabled))
	}
}

// configure sets parameters of kafka on cluster1 by an AddOnDeploymentConfig that the add-on refers to.
func configure(variables map[string]string) func(context.Context, *stage) error {
	remembered := false
	return func(ctx context.Context, s *stage) error {
		if !remembered {
			if err := s.remember(ctx, "cluster1", "kafka"); err != nil {
				return err
			}
			remembered = true
		}
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: "cluster1"}}
		if err := client.IgnoreNotFound(s.hub.Get(ctx, client.ObjectKeyFromObject(config), config)); err != nil {
			return err
		}
		config.Spec.AgentInstallNamespace = installNamespace
		config.Spec.CustomizedVariables = nil
		for _, name := range []string{"BROKERS", "EXPORTER_ENABLED"} {
			if value, given := variables[name]; given {
				config.Spec.CustomizedVariables = append(config.Spec.CustomizedVariables, upstream.CustomizedVariable{Name: name, Value: value})
			}
		}
		if err := createOrUpdate(ctx, s.hub, config); err != nil {
			return err
		}
		subject := &addonv1alpha1.ManagedClusterAddOn{}
		if err := s.hub.Get(ctx, client.ObjectKeyFromObject(config), subject); err != nil {
			return err
		}
		before := subject.DeepCopy()
		subject.Spec.Configs = []upstream.AddOnConfig{{
			ConfigGroupResource: deploymentConfigs,
			ConfigReferent:      upstream.ConfigReferent{Namespace: config.Namespace, Name: config.Name},
		}}
		return s.hub.Patch(ctx, subject, client.MergeFrom(before))
	}
}

func createOrUpdate(ctx context.Context, c client.Client, o client.Object) error {
	if o.GetResourceVersion() == "" {
		return c.Create(ctx, o)
	}
	return c.Update(ctx, o)
}

// printClearing prints what clear is going to remove.
func printClearing(ctx context.Context, s *stage) error {
	enabled := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := s.hub.List(ctx, enabled); err != nil {
		return err
	}
	var found []string
	for _, a := range enabled.Items {
		if _, managed := s.clusters[a.Namespace]; managed && slices.Contains(packages(), a.Name) {
			found = append(found, a.Name+" on "+a.Namespace)
		}
	}
	if len(found) > 0 {
		fmt.Fprintf(s.Out, "\nThe demo requires empty clusters. Disabling these add-ons, and deleting their workloads and volumes: %s.\n",
			strings.Join(found, ", "))
	}
	return nil
}

// clear removes the objects of an earlier run. It may be called again after a failure.
func clear(ctx context.Context, s *stage) error {
	for cluster, managed := range s.clusters {
		for _, name := range slices.Backward(packages()) {
			if err := disable(name, cluster)(ctx, s); err != nil {
				return err
			}
			if err := removedPromise(cluster, name).kept(ctx, s); err != nil {
				return err
			}
		}
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: cluster}}
		if err := client.IgnoreNotFound(s.hub.Delete(ctx, config)); err != nil {
			return err
		}
		if err := managed.DeleteAllOf(ctx, &corev1.Event{}, client.InNamespace(installNamespace)); err != nil {
			return err
		}
	}
	return nil
}
