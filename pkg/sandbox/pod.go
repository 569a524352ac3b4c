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

// podRunner simulates the kubelet for pods with programs known to the sandbox: addon-agent, if its Deployment is delivered, and the
// programs of Options.Images. kwok sets the pod's status, and the podRunner runs its programs as the pod would: with the arguments of the
// container, the files of its Secrets and the identity of its service account. A pod with missing Secrets does not start.
type podRunner struct {
	cluster *Cluster
	client  client.Client
}

// container is a container of a pod that runs here: its program, and the folders of its volumes.
type container struct {
	program program
	folders map[string]string
}

// newPodRunner returns a manager that runs pods of the cluster.
func (c *Cluster) newPodRunner(logger logr.Logger) (manager.Manager, error) {
	known := labels.SelectorFromSet(agentLabels())
	if c.plan.Images != "" {
		known = labels.Everything()
	}
	mgr, err := ctrl.NewManager(c.Config(), ctrl.Options{
		Logger:     logger,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: uniqueNamesNotNeeded(),
		Cache:      cache.Options{ByObject: map[client.Object]cache.ByObject{&appsv1.Deployment{}: {Label: known}}},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the pod runner: %w", err)
	}
	runner := &podRunner{cluster: c, client: mgr.GetClient()}
	err = ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(runner.deploymentsOf)).
		Complete(runner)
	if err != nil {
		return nil, fmt.Errorf("creating the pod runner: %w", err)
	}
	return mgr, nil
}

// agentLabels returns the labels of addon-agent's Deployment.
func agentLabels() labels.Set {
	return labels.Set{"app.kubernetes.io/name": agentProgram, "app.kubernetes.io/part-of": "tandem"}
}

// runsPods reports whether the cluster can have pods with programs known to the sandbox.
func (c clusterPlan) runsPods() bool { return c.Images != "" || c.isManaged() && c.DeliverAgents }

// deploymentsOf returns the Deployments of pods that mount the Secret.
func (r *podRunner) deploymentsOf(ctx context.Context, secret client.Object) []reconcile.Request {
	var deployments appsv1.DeploymentList
	if err := r.client.List(ctx, &deployments, client.InNamespace(secret.GetNamespace())); err != nil {
		return nil // the cache always has the kind
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

// Reconcile starts or stops the programs of the Deployment's pod.
func (r *podRunner) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	err := r.client.Get(ctx, request.NamespacedName, &deployment)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil || ptr.Deref(deployment.Spec.Replicas, 1) == 0 {
		r.cluster.end(func(p program) bool { return p.Pod == request.NamespacedName })
		return ctrl.Result{}, nil
	}
	containers := r.cluster.plan.containers(&deployment)
	if len(containers) == 0 {
		return ctrl.Result{}, nil
	}
	secrets, err := r.secrets(ctx, &deployment)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // creating the Secret triggers another Reconcile
	}
	for _, container := range containers {
		if err := r.startContainer(ctx, container, secrets, serviceAccountOf(&deployment)); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// secrets returns the Secrets mounted by the Deployment's pod, by volume.
func (r *podRunner) secrets(ctx context.Context, deployment *appsv1.Deployment) (map[string]*corev1.Secret, error) {
	secrets := map[string]*corev1.Secret{}
	for _, volume := range secretVolumes(deployment) {
		secret := &corev1.Secret{}
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: deployment.Namespace, Name: volume.Secret.SecretName}, secret); err != nil {
			return nil, err
		}
		secrets[volume.Name] = secret
	}
	return secrets, nil
}

// startContainer starts a container's program unless it is running, and updates the files of its Secrets.
func (r *podRunner) startContainer(ctx context.Context, c container, secrets map[string]*corev1.Secret, account client.ObjectKey) error {
	for volume, folder := range c.folders {
		if err := mount(secrets[volume], folder); err != nil {
			return fmt.Errorf("writing volume %s: %w", volume, err)
		}
	}
	if r.cluster.runs(c.program) {
		return nil
	}
	if err := r.identify(ctx, c.program, account); err != nil {
		return err
	}
	r.cluster.end(func(p program) bool { return p.Pod == c.program.Pod && p.Name == c.program.Name })
	r.cluster.startProgram(c.program)
	return nil
}

// identify provides a program with the credentials of its pod's service account: as a kubeconfig or, if it has a root folder, as in a pod.
func (r *podRunner) identify(ctx context.Context, p program, account client.ObjectKey) error {
	if p.Root != "" {
		return r.furnishRoot(ctx, p, account)
	}
	return r.cluster.issueKubeconfig(r.cluster.plan.identity(agentProgram), serviceAccount(account.Namespace, account.Name), time.Now())
}

// mount updates the files in a folder to match the Secret. Each file is replaced atomically, so that readers never see a partial file. If
// secret is nil, the folder is created and left empty, as for other kinds of volumes.
func mount(secret *corev1.Secret, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil || secret == nil {
		return err
	}
	for key, data := range secret.Data {
		file := filepath.Join(folder, key)
		former, err := os.ReadFile(file)
		if err == nil && bytes.Equal(former, data) {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := errors.Join(writePrivate(file+".next", data), os.Rename(file+".next", file)); err != nil {
			return err
		}
	}
	return nil
}

// containers returns the containers of the Deployment's pod that can run here.
func (c clusterPlan) containers(deployment *appsv1.Deployment) []container {
	if labels.SelectorFromSet(agentLabels()).Matches(labels.Set(deployment.Labels)) {
		return []container{c.agentContainer(deployment)}
	}
	return c.imageContainers(deployment)
}

// agentContainer returns the container of addon-agent, with the sandbox's addresses.
func (c clusterPlan) agentContainer(deployment *appsv1.Deployment) container {
	spec := deployment.Spec.Template.Spec.Containers[0]
	folders := map[string]string{}
	pairs := variablesOf(spec, deployment.Namespace)
	for _, volume := range secretVolumes(deployment) {
		folders[volume.Name] = filepath.Join(c.folder().path("pod"), volume.Name)
		for _, mount := range spec.VolumeMounts {
			if mount.Name == volume.Name {
				pairs = append(pairs, mount.MountPath, folders[volume.Name])
			}
		}
	}
	inPlace := strings.NewReplacer(pairs...)
	p := c.addonAgent()
	p.Pod = client.ObjectKeyFromObject(deployment)
	p.Args = nil
	for _, argument := range spec.Args {
		p.Args = append(p.Args, inPlace.Replace(argument))
	}
	p.Args = slices.Concat(p.Args, []string{"--kubeconfig=" + c.identity(agentProgram)}, c.tandemArgs(), c.AgentFlags)
	return container{program: p, folders: folders}
}

// serviceAccountOf returns the service account of the Deployment's pod.
func serviceAccountOf(deployment *appsv1.Deployment) client.ObjectKey {
	name := deployment.Spec.Template.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	return client.ObjectKey{Namespace: deployment.Namespace, Name: name}
}

// secretVolumes returns the Secret volumes of the Deployment's pod.
func secretVolumes(deployment *appsv1.Deployment) []corev1.Volume {
	var volumes []corev1.Volume
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			volumes = append(volumes, volume)
		}
	}
	return volumes
}

// variablesOf returns old/new pairs that replace references to a container's environment variables in its arguments.
func variablesOf(c corev1.Container, namespace string) []string {
	var pairs []string
	for _, variable := range c.Env {
		pairs = append(pairs, "$("+variable.Name+")", valueOf(variable, namespace))
	}
	return pairs
}

// valueOf returns the value of an environment variable of a container in the namespace.
func valueOf(variable corev1.EnvVar, namespace string) string {
	if from := variable.ValueFrom; from != nil && from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace" {
		return namespace
	}
	return variable.Value
}
