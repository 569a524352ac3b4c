package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// podRunner plays the kubelet for addon-agent where somebody delivers its Deployment to a managed cluster: kwok says that the pod
// runs, and this runs the program, as the pod would: with the arguments of the container, the files of its Secrets and the identity of
// its service account. A pod whose Secrets are not all there does not start.
type podRunner struct {
	cluster *Cluster
	client  client.Client
}

// newPodRunner makes a manager that runs pods of the cluster.
func (c *Cluster) newPodRunner(logger logr.Logger) (manager.Manager, error) {
	agents := labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": agentProgram, "app.kubernetes.io/part-of": "tandem"})
	mgr, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Logger:     logger,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: uniqueNamesNotNeeded(),
		Cache:      cache.Options{ByObject: map[client.Object]cache.ByObject{&appsv1.Deployment{}: {Label: agents}}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the runner of pods: %w", err)
	}
	runner := &podRunner{cluster: c, client: mgr.GetClient()}
	err = ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(runner.mounting)).
		Complete(runner)
	if err != nil {
		return nil, fmt.Errorf("making the runner of pods: %w", err)
	}
	return mgr, nil
}

// mounting are the Deployments whose pods the Secret is mounted in.
func (r *podRunner) mounting(ctx context.Context, secret client.Object) []reconcile.Request {
	var deployments appsv1.DeploymentList
	if err := r.client.List(ctx, &deployments, client.InNamespace(secret.GetNamespace())); err != nil {
		return nil // from a cache, which knows the kind
	}
	var requests []reconcile.Request
	for _, d := range deployments.Items {
		named := func(v corev1.Volume) bool { return v.Secret.SecretName == secret.GetName() }
		if slices.ContainsFunc(secretVolumes(&d), named) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&d)})
		}
	}
	return requests
}

// Reconcile runs the program of the Deployment's pod, or ends it.
func (r *podRunner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	err := r.client.Get(ctx, request.NamespacedName, &deployment)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil || ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		r.cluster.end(agentProgram)
		return ctrl.Result{}, nil
	}
	for _, volume := range secretVolumes(&deployment) {
		if err := r.mount(ctx, request.Namespace, volume); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err) // a Secret that comes is seen
		}
	}
	id := serviceAccount(request.Namespace, deployment.Spec.Template.Spec.ServiceAccountName)
	p := r.cluster.plan.podProgram(&deployment)
	if r.cluster.runs(p) {
		return ctrl.Result{}, nil
	}
	if err := r.cluster.issueKubeconfig(r.cluster.plan.identity(agentProgram), id, time.Now()); err != nil {
		return ctrl.Result{}, err
	}
	r.cluster.end(agentProgram)
	r.cluster.run(p)
	return ctrl.Result{}, nil
}

// mount keeps the files of a volume as its Secret has them. Each is replaced in one step, so that nobody reads half of it.
func (r *podRunner) mount(ctx context.Context, namespace string, volume corev1.Volume) error {
	var secret corev1.Secret
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume.Secret.SecretName}, &secret); err != nil {
		return err
	}
	folder := r.cluster.plan.volume(volume.Name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("making the folder of volume %s: %w", volume.Name, err)
	}
	for key, data := range secret.Data {
		file := filepath.Join(folder, key)
		former, err := os.ReadFile(file)
		if err == nil && bytes.Equal(former, data) {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading volume %s: %w", volume.Name, err)
		}
		if err := errors.Join(writePrivate(file+".next", data), os.Rename(file+".next", file)); err != nil {
			return fmt.Errorf("writing volume %s: %w", volume.Name, err)
		}
	}
	return nil
}

// volume is the folder that stands for a volume of addon-agent's pod.
func (c clusterPlan) volume(name string) string { return filepath.Join(c.folder().path("pod"), name) }

// podProgram is what the pod of the Deployment runs, at the sandbox's own addresses.
func (c clusterPlan) podProgram(deployment *appsv1.Deployment) program {
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	var pairs []string
	for _, volume := range secretVolumes(deployment) {
		for _, mount := range container.VolumeMounts {
			if mount.Name == volume.Name {
				pairs = append(pairs, mount.MountPath, c.volume(volume.Name))
			}
		}
	}
	for _, variable := range container.Env {
		pairs = append(pairs, "$("+variable.Name+")", valueOf(variable, deployment.Namespace))
	}
	inPlace := strings.NewReplacer(pairs...)
	p := c.addonAgent()
	p.Args = nil
	for _, argument := range container.Args {
		p.Args = append(p.Args, inPlace.Replace(argument))
	}
	p.Args = slices.Concat(p.Args, []string{"--kubeconfig=" + c.identity(agentProgram)}, c.tandemArgs(), c.AgentFlags)
	return p
}

// secretVolumes are the volumes of the Deployment's pod that are Secrets.
func secretVolumes(deployment *appsv1.Deployment) []corev1.Volume {
	var volumes []corev1.Volume
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}

// valueOf is the value of an environment variable of a container in the namespace.
func valueOf(variable corev1.EnvVar, namespace string) string {
	if from := variable.ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace" {
		return namespace
	}
	return variable.Value
}
