package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// agentDeployment returns a Deployment that mounts a Secret and a scratch folder, and passes its namespace to its program.
func agentDeployment() *appsv1.Deployment {
	secret := corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "tandem-hub-kubeconfig"}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: agentProgram, Namespace: "add-ons", Labels: agentLabels()},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "hub", VolumeSource: secret},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			},
			Containers: []corev1.Container{{
				Name: agentProgram,
				Args: []string{"--hub-kubeconfig=/etc/hub/kubeconfig", "--lease-namespace=$(NAMESPACE)", "--zap-log-level=$(LEVEL)", "--scratch=/tmp"},
				Env: []corev1.EnvVar{
					{Name: "NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}},
					{Name: "LEVEL", Value: "debug"},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "hub", MountPath: "/etc/hub"}, {Name: "scratch", MountPath: "/tmp"}},
			}},
		}}},
	}
}

func TestPodRunsAsItsDeploymentSpecifies(t *testing.T) {
	plan := ocmPlan("cluster1")
	plan.AgentFlags = []string{"--lease-period=1s"}
	c := plan.containers(agentDeployment())[0]
	p := c.program
	if p.Name != agentProgram || p.Path != "/tandem/addon-agent" || p.Port != plan.port("metrics") {
		t.Errorf("it is %s at %s on port %d", p.Name, p.Path, p.Port)
	}
	if diff := cmp.Diff(map[string]string{"hub": "/home/cluster1/pod/hub"}, c.folders); diff != "" {
		t.Errorf("folders of Secrets (-want +got):\n%s", diff)
	}
	said := []string{
		"--hub-kubeconfig=/home/cluster1/pod/hub/kubeconfig", "--lease-namespace=add-ons", "--zap-log-level=debug", "--scratch=/tmp",
	}
	if diff := cmp.Diff(said, p.Args[:4]); diff != "" {
		t.Errorf("arguments of the container (-want +got):\n%s", diff)
	}
	for _, own := range []string{
		"--kubeconfig=/home/kubeconfig/identities/cluster1-addon-agent.kubeconfig", "--lease-period=1s",
		"--health-probe-bind-address=" + loopback(plan.port("health")),
	} {
		if !slices.Contains(p.Args[4:], own) {
			t.Errorf("%s is missing after these in\n%s", own, strings.Join(p.Args, "\n"))
		}
	}
	if slices.Contains(p.Args, "--cluster-name=cluster1") {
		t.Error("it is told what its Deployment does not say")
	}
}

func TestSandboxAddsNoAgentObjectsIfOCMDeliversAgents(t *testing.T) {
	plan := ocmPlan("cluster1")
	plan.DeliverAgents = true
	definitions, err := plan.customResourceDefinitions()
	if err != nil || len(definitions) > 0 || len(plan.tandemManifests()) > 0 {
		t.Errorf("there are %d definitions and manifests %q, %v", len(definitions), plan.tandemManifests(), err)
	}
	hub := ocmPlan(hubName)
	hub.DeliverAgents = true
	if !slices.Contains(hub.addonManager().Args, "--deliver-agents") || slices.Contains(ocmPlan(hubName).addonManager().Args, "--deliver-agents") {
		t.Error("addon-manager delivers agents where it shall not, or the other way round")
	}
}
