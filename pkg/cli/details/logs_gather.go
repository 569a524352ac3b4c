package details

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// podTimeout limits how long a managed cluster may take to return its pods.
	podTimeout = 30 * time.Second
	// podPage is the number of pods that are read at a time.
	podPage = 500
	// maxLogPods limits the pods whose logs are printed.
	maxLogPods = 1000
)

// podCluster is a connection to a managed cluster.
type podCluster struct {
	client.Client
	logs corev1client.PodsGetter
	// name is the name of the managed cluster on the hub.
	name string
	// warn prints a warning.
	warn func(string) error
}

func connectPods(config *rest.Config, name string, warn func(string) error) (*podCluster, error) {
	config.QPS, config.Burst = 50, 300 // kubectl's limits
	c, err := hubclient.AnyClient(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to managed cluster %s: %w", text.Quote(name), err)
	}
	logs, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to managed cluster %s: %w", text.Quote(name), err)
	}
	return &podCluster{Client: c, logs: logs, name: name, warn: warn}, nil
}

// checkMirror returns an error if the cluster has no mirror of the Instance: the kubeconfig may be that of another cluster. A user who may not get
// Instances there gets a warning.
func (c *podCluster) checkMirror(ctx context.Context, instance *kudo.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	mirror := &metav1.PartialObjectMetadata{}
	mirror.SetGroupVersionKind(kudo.GroupVersion.WithKind("Instance"))
	err := c.Get(ctx, client.ObjectKey{Namespace: instance.TargetNamespace(), Name: instance.Name}, mirror)
	switch {
	case err == nil && mirror.Annotations[kudo.AnnotationHubUID] == string(instance.UID):
		return nil
	case apierrors.IsForbidden(err):
		return c.warn(fmt.Sprintf("cannot check that --cluster-context and --cluster-kubeconfig name cluster %s: no permission to get Instances there", text.Quote(c.name)))
	case err == nil || apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster of --cluster-context and --cluster-kubeconfig has no copy of Instance %s in namespace %s: check that they name cluster %s, "+
			"and that its addon-agent runs", text.Quote(instance.Name), text.Quote(instance.TargetNamespace()), text.Quote(c.name))
	}
	return c.advise("Instance "+text.Quote(instance.Name), instance.TargetNamespace(), err)
}

// podsOf returns the pods of an Instance.
func (c *podCluster) podsOf(ctx context.Context, instance *kudo.Instance) ([]corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, podTimeout)
	defer cancel()
	filter := newPodFilter(instance)
	namespaces, more := filter.namespaces()
	if more > 0 {
		if err := c.warn(fmt.Sprintf("%s of Instance %s are not searched for pods", text.Plural(more, "other namespace"), text.Quote(instance.Name))); err != nil {
			return nil, err
		}
	}
	var found []corev1.Pod
	for i, namespace := range namespaces {
		pods, err := c.podsIn(ctx, namespace, filter)
		if apierrors.IsForbidden(err) && i > 0 {
			err = c.warn(fmt.Sprintf("pods in namespace %s are not shown: %v", text.Quote(namespace), err))
		}
		if err != nil {
			return nil, c.advise("pods", namespace, err)
		}
		found = append(found, pods...)
	}
	if len(found) > maxLogPods {
		return nil, fmt.Errorf("there are more than %d pods of Instance %s: use 'kubectl logs' for some of them", maxLogPods, text.Quote(instance.Name))
	}
	return found, nil
}

// podsIn returns the pods of an Instance in a namespace. It stops after more than maxLogPods.
func (c *podCluster) podsIn(ctx context.Context, namespace string, filter podFilter) ([]corev1.Pod, error) {
	var found []corev1.Pod
	for next := ""; ; {
		var page corev1.PodList
		if err := c.List(ctx, &page, client.InNamespace(namespace), client.Limit(podPage), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if filter.isOwn(&page.Items[i]) {
				found = append(found, page.Items[i])
			}
		}
		if next = page.Continue; next == "" || len(found) > maxLogPods {
			return found, nil
		}
	}
}

// advise adds to an error what was read, and what to do.
func (c *podCluster) advise(what, namespace string, err error) error {
	err = fmt.Errorf("reading %s in namespace %s of managed cluster %s: %w", what, text.Quote(namespace), text.Quote(c.name), err)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: you need permission to list pods there, and to get pods/log", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: check the credentials of --cluster-context and --cluster-kubeconfig", err)
	case errors.As(err, new(*url.Error)), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: check that the cluster is running, and that --cluster-context and --cluster-kubeconfig name it", err)
	}
	return err
}
