package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// writeDelay is how long Tandem writes no status of an add-on after a change of the add-on or its configuration.
const writeDelay = 2 * time.Second

// configured is a plan-based add-on on a grove, with an AddOnDeploymentConfig of its own that sets parameter TEXT.
type configured struct {
	*grove
	config *addonv1alpha1.AddOnDeploymentConfig
	addOn  *addonv1alpha1.ManagedClusterAddOn
}

// configure installs the add-on, and waits until it is available unless it requires others.
func configure(ctx context.Context, g *grove, requires ...string) *configured {
	GinkgoHelper()
	version := g.pushWith(ctx, "text", "1.0.0", func(v *kudo.OperatorVersionSpec) {
		v.Parameters = []kudo.Parameter{stringParameter("TEXT", "zero")}
	})
	configs := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}
	definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: g.name + "-text"}}
	definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: version.Namespace, Name: version.Name},
	}, {ConfigGroupResource: configs}}
	for _, name := range requires {
		definition.Spec.Dependencies = append(definition.Spec.Dependencies, addonv1alpha1.AddonDependency{Name: name})
	}
	Expect(server.Create(ctx, definition)).To(Succeed())

	c := &configured{
		grove:  g,
		config: &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: "text"}},
		addOn:  &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: definition.Name}},
	}
	Expect(server.Create(ctx, c.config.DeepCopy())).To(Succeed())
	c.addOn.Spec.InstallNamespace = g.name
	c.addOn.Spec.Configs = []upstream.AddOnConfig{{
		ConfigGroupResource: configs, ConfigReferent: upstream.ConfigReferent{Namespace: g.name, Name: c.config.Name},
	}}
	Expect(server.Create(ctx, c.addOn.DeepCopy())).To(Succeed())
	if len(requires) == 0 {
		Eventually(c.condition(ctx, addonv1alpha1.ConditionAvailable)).Should(Equal(works))
	}
	return c
}

// says changes the configuration. The undefined variables, which are not applied, change condition Resolved.
func (c *configured) says(ctx context.Context, text string, undefined ...string) {
	GinkgoHelper()
	variables := []upstream.CustomizedVariable{{Name: "TEXT", Value: text}}
	for _, name := range undefined {
		variables = append(variables, upstream.CustomizedVariable{Name: name, Value: text})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"customizedVariables": variables}})
	Expect(err).NotTo(HaveOccurred())
	Expect(server.Patch(ctx, c.config.DeepCopy(), client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
}

// runs reports whether the plan of the configuration is complete on the cluster.
func (c *configured) runs(ctx context.Context, text string) bool {
	mirror := c.mirror(ctx, c.addOn.Name)
	ready := meta.FindStatusCondition(mirror.Status.Conditions, kudo.ConditionReady)
	return mirror.Spec.Parameters["TEXT"] == text && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == mirror.HubGeneration()
}

// condition returns the state of a condition of the add-on, for Eventually.
func (c *configured) condition(ctx context.Context, conditionType string) func() string {
	return func() string {
		GinkgoHelper()
		current := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(c.addOn), current)).To(Succeed())
		return state(current, conditionType)
	}
}

// message returns the message of a condition of the add-on, for Eventually.
func (c *configured) message(ctx context.Context, conditionType string) func() string {
	return func() string {
		GinkgoHelper()
		current := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(c.addOn), current)).To(Succeed())
		return meta.FindStatusCondition(current.Status.Conditions, conditionType).Message
	}
}

// enable acts as `clusteradm addon enable --config-file` with a changed file: it applies the config, reads the add-on and updates it. It
// calls think before the update. It reports whether the update was answered within the write delay.
func (c *configured) enable(ctx context.Context, text string, undefined []string, think func()) (bool, error) {
	GinkgoHelper()
	clientset, err := addonclient.NewForConfig(hubServer.Config)
	Expect(err).NotTo(HaveOccurred())
	addOns := clientset.AddonV1alpha1().ManagedClusterAddOns(c.addOn.Namespace)
	start := time.Now()
	c.says(ctx, text, undefined...)
	current, err := addOns.Get(ctx, c.addOn.Name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	think()
	current.Labels, current.Annotations = c.addOn.Labels, c.addOn.Annotations
	current.Spec.InstallNamespace, current.Spec.Configs = c.addOn.Spec.InstallNamespace, c.addOn.Spec.Configs
	_, err = addOns.Update(ctx, current, metav1.UpdateOptions{})
	return time.Since(start) < writeDelay, err
}

var _ = Describe("A change of an add-on's configuration", func() {
	var g *grove
	plantEach(&g)

	It("is carried out at once, and does not make clusteradm conflict with the status", func(ctx SpecContext) {
		const rounds = 30
		c := configure(ctx, g)
		var conflicts, completed int
		var last string
		for round := 0; round < rounds; {
			last = fmt.Sprint("text ", round)
			undefined := []string{"COLOR", "SIZE"}[round%2:] // one of them in the last round
			inTime, err := c.enable(ctx, last, undefined, func() {
				until, stop := context.WithTimeout(ctx, 500*time.Millisecond)
				defer stop()
				if wait.PollUntilContextCancel(until, 20*time.Millisecond, true, func(context.Context) (bool, error) {
					return c.runs(ctx, last), nil // the last read may take longer
				}) == nil {
					completed++
				}
			})
			if !inTime { // on a machine that is too busy for a promise of two seconds
				continue
			}
			round++
			if apierrors.IsConflict(err) {
				conflicts++
			} else {
				Expect(err).NotTo(HaveOccurred())
			}
		}
		AddReportEntry(fmt.Sprintf("%d of %d plans were complete before the update", completed, rounds))
		Expect(conflicts).To(BeNumerically("<=", rounds/4), "of %d: on a busy machine, writes may be in flight when the changes arrive", rounds)
		Eventually(func() bool { return c.runs(ctx, last) }).WithContext(ctx).Should(BeTrue())
		Eventually(c.condition(ctx, addonv1alpha1.ConditionAvailable)).Should(Equal(works))
		Eventually(c.message(ctx, addonv1alpha1.ConditionResolved)).Should(And(ContainSubstring("SIZE"), Not(ContainSubstring("COLOR"))))
	})

	It("postpones no verdict on its dependencies", func(ctx SpecContext) {
		base := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: g.name, Name: g.name + "-base"}}
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: base.Name}}
		definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
		Expect(server.Create(ctx, definition)).To(Succeed())
		Expect(server.Create(ctx, base)).To(Succeed())
		is := func(status metav1.ConditionStatus) {
			GinkgoHelper()
			Expect(environment.EditStatus(ctx, server, base, func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Status.HealthCheck.Mode = upstream.HealthCheckModeCustomized // else the agent judges it, too, by a lease that does not exist
				meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
					Type: addonv1alpha1.ConditionAvailable, Status: status, Reason: "Said",
				})
			})).To(Succeed())
		}
		c := configure(ctx, g, base.Name)
		var current *addonv1alpha1.ManagedClusterAddOn
		after := func(status metav1.ConditionStatus) func() string {
			return func() string {
				GinkgoHelper()
				is(status)
				current = &addonv1alpha1.ManagedClusterAddOn{}
				Expect(server.Get(ctx, client.ObjectKeyFromObject(c.addOn), current)).To(Succeed())
				return state(current, addonv1alpha1.ConditionAvailable)
			}
		}
		changes := 0
		change := func(undefined ...string) {
			GinkgoHelper()
			changes++
			c.says(ctx, "text", append(undefined, fmt.Sprint("SHAPE", changes))...)
		}
		// overtakes reports whether a verdict follows a change of the required add-on before Resolved follows an earlier change of the
		// configuration. Further changes postpone Resolved for up to a minute, unless a busy machine needs more than writeDelay for one.
		overtakes := func(status metav1.ConditionStatus, verdict string) bool {
			GinkgoHelper()
			undefined := fmt.Sprint("COLOR", changes)
			change(undefined)
			Eventually(func() string {
				GinkgoHelper()
				change(undefined)
				return after(status)()
			}).Should(Equal(verdict))
			first := !strings.Contains(meta.FindStatusCondition(current.Status.Conditions, addonv1alpha1.ConditionResolved).Message, undefined)
			Eventually(c.message(ctx, addonv1alpha1.ConditionResolved)).Should(ContainSubstring(undefined))
			return first
		}
		Eventually(after(metav1.ConditionTrue)).Should(Equal(works))
		var bad, good bool
		Eventually(func() bool {
			bad = overtakes(metav1.ConditionFalse, lacks) || bad
			good = overtakes(metav1.ConditionTrue, works) || good
			return bad && good
		}).WithContext(ctx).WithTimeout(3 * time.Minute).Should(BeTrue())
	})
})
