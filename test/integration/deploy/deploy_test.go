package deploy

import (
	"fmt"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/test/integration/environment"
)

// The folders of deploy/ that are installed.
var folders = []string{"hub", "hub-ocm", "agent", "uninstall", "ui", "packagesources"}

var _ = Describe("What deploy/ installs", func() {
	DescribeTable("is taken by an API server without a word, and so are its pods by the restricted Pod Security Standard",
		func(ctx SpecContext, before, folder string, components ...string) {
			if before != "" {
				install(ctx, deployedObjects(ctx, before, components...))
			}
			objects := deployedObjects(ctx, folder, components...)
			install(ctx, objects)
			Expect(pods(objects)).To(HaveLen(1))
			for _, pod := range pods(objects) {
				Expect(server.Create(ctx, pod.DeepCopy(), client.DryRunAll)).To(Succeed())

				rooted := pod.DeepCopy()
				rooted.Spec.SecurityContext.RunAsNonRoot = ptr.To(false)
				err := server.Create(ctx, rooted, client.DryRunAll)
				Expect(err).To(MatchError(apierrors.IsForbidden, "forbidden"), "it is Pod Security that has looked")
				Expect(err).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest"`)))
			}
			Expect(warnings.String()).To(BeEmpty())
		},
		Entry("on a hub without OCM", Label(environment.Mutating), "", "hub"),
		Entry("on a hub with OCM, whose definitions are there", Label(environment.Mutating), "hub", "hub-ocm"),
		Entry("on a managed cluster", "", "agent"),
		Entry("on a hub that Tandem leaves", Label(environment.Mutating), "hub", "uninstall"),
		Entry("on a hub with a dashboard", Label(environment.Mutating), "hub", "ui"),
		Entry("on a hub that follows packages", Label(environment.Mutating), "hub", "packagesources"),
		Entry("on a hub without OCM, before Kubernetes 1.36", "", "hub", "before-1.36"),
		Entry("on a hub with OCM, before Kubernetes 1.36", "hub", "hub-ocm", "before-1.36"),
	)

	It("runs programs with flags that they know", func(ctx SpecContext) {
		DeferCleanup(gexec.CleanupBuildArtifacts)
		for _, folder := range folders {
			for _, pod := range pods(deployedObjects(ctx, folder)) {
				container := pod.Spec.Containers[0]
				program, err := gexec.Build("github.com/tandem-addons/tandem/cmd/" + container.Name)
				Expect(err).NotTo(HaveOccurred())
				output, err := exec.CommandContext(ctx, program, append(container.Args, "--version")...).CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), "%s: %s", folder, output)
			}
		}
	})

	It("leads probes, Services and budgets to pods that are there", func(ctx SpecContext) {
		for _, folder := range folders {
			objects := deployedObjects(ctx, folder)
			for _, pod := range pods(objects) {
				container := pod.Spec.Containers[0]
				for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
					if probe != nil {
						Expect(ports(container)).To(ContainElement(probe.HTTPGet.Port.String()), "%s: ports of %s", folder, pod.Name)
					}
				}
			}
			for _, object := range objects {
				switch object.GetKind() {
				case "Service":
					service := as[corev1.Service](object)
					pod := selectPod(objects, service.Namespace, labels.SelectorFromSet(service.Spec.Selector))
					for _, port := range service.Spec.Ports {
						Expect(ports(pod.Spec.Containers[0])).To(ContainElement(port.TargetPort.String()), "%s: ports for Service %s", folder, service.Name)
					}
				case "PodDisruptionBudget":
					budget := as[policyv1.PodDisruptionBudget](object)
					selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
					Expect(err).NotTo(HaveOccurred())
					selectPod(objects, budget.Namespace, selector)
				}
			}
		}
	})

	DescribeTable("defines the kinds that are not defined there otherwise",
		func(ctx SpecContext, folder string, groups ...string) {
			Expect(namesOf(deployedObjects(ctx, folder), "CustomResourceDefinition")).To(ConsistOf(groups))
		},
		Entry("on a hub without OCM", "hub",
			"instances.kudo.dev", "operatorcontents.kudo.dev", "operators.kudo.dev", "operatorversions.kudo.dev", "packagesources.kudo.dev", "managedclusters.cluster.open-cluster-management.io",
			"addondeploymentconfigs.addon.open-cluster-management.io", "clustermanagementaddons.addon.open-cluster-management.io",
			"managedclusteraddons.addon.open-cluster-management.io"),
		Entry("on a hub with OCM", "hub-ocm", "instances.kudo.dev", "operatorcontents.kudo.dev", "operators.kudo.dev", "operatorversions.kudo.dev", "packagesources.kudo.dev"),
		Entry("on a managed cluster", "agent", "instances.kudo.dev", "operatorcontents.kudo.dev", "operatorversions.kudo.dev"),
	)

	It("runs the image, and leaves away the policies, that a kustomization of one's own says", func(ctx SpecContext) {
		whole := deployedObjects(ctx, "hub")
		own := kustomize(ctx, overlay("resources: [%[1]s/hub]\ncomponents: [%[1]s/before-1.36]\n"+
			"images: [{name: addon-manager, newName: registry.example.com/addon-manager, newTag: v1}]\n"))
		Expect(pods(own)[0].Spec.Containers[0].Image).To(Equal("registry.example.com/addon-manager:v1"))
		for _, kind := range []string{"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"} {
			Expect(namesOf(whole, kind)).NotTo(BeEmpty())
			Expect(namesOf(own, kind)).To(BeEmpty())
		}
		Expect(own).To(HaveLen(len(whole) - 2))
	})
})

// overlay writes a folder with a kustomization, in which %[1]s is the path of deploy/.
func overlay(kustomization string) string {
	GinkgoHelper()
	folder, err := environment.Overlay(GinkgoT().TempDir(), filepath.Join(root, "deploy"), kustomization)
	Expect(err).NotTo(HaveOccurred())
	return folder
}

// ports returns the ports of a container, by name and by number.
func ports(container corev1.Container) []string {
	var ports []string
	for _, port := range container.Ports {
		ports = append(ports, port.Name, fmt.Sprint(port.ContainerPort))
	}
	return ports
}

// selectPod returns the pod among the objects that matches the selector.
func selectPod(objects []*unstructured.Unstructured, namespace string, selector labels.Selector) *corev1.Pod {
	GinkgoHelper()
	for _, pod := range pods(objects) {
		if pod.Namespace == namespace && selector.Matches(labels.Set(pod.Labels)) {
			return pod
		}
	}
	Fail(fmt.Sprintf("no pod in %s is %s", namespace, selector))
	return nil
}
