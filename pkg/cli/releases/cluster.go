// Package releases reads releases of Helm on a cluster: their records, and what their charts depend on there. It only reads the cluster.
package releases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/core/record"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Cluster is a connection to the cluster of the kubeconfig, of --context if it is set.
type Cluster struct {
	client    client.Client
	discovery discovery.DiscoveryInterface
	// Namespace is the value of --namespace, or the namespace of the context.
	Namespace string
	// context is the name of the context, for messages.
	context string
}

// Connect connects to a cluster. It sends no request.
func Connect(f *hubclient.Factory) (*Cluster, error) {
	loader := f.Flags.ToRawKubeConfigLoader()
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := f.Flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.WarningHandler = rest.NewWarningWriter(f.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	c := &Cluster{Namespace: namespace, context: cmp.Or(ptr.Deref(f.Flags.Context, ""), raw.CurrentContext, config.Host)}
	if c.client, err = client.New(config, client.Options{Scheme: scheme}); err == nil {
		c.discovery, err = discovery.NewDiscoveryClientForConfig(config)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %s: %w", text.Quote(c.context), err)
	}
	return c, nil
}

const (
	// pageSize is the number of objects that are read at a time.
	pageSize = 500
	// maxRecords limits the records in a namespace.
	maxRecords = 20_000
)

// Find returns the record of a revision of a release; of the latest one that is deployed, if the number is 0. A user who may not list records gets
// the one of a number that is given.
func (c *Cluster) Find(ctx context.Context, release string, number int) (*record.Record, error) {
	known, err := revisions(ctx, c.client, c.Namespace)
	switch {
	case apierrors.IsForbidden(err) && number > 0:
		return c.get(ctx, release, number)
	case err != nil:
		return nil, c.advise(err)
	}
	chosen, err := record.Choose(release, number, c.Namespace, known)
	if err != nil {
		return nil, err
	}
	data, _, err := c.read(ctx, chosen.Kind, chosen.Object)
	if err != nil {
		return nil, err
	}
	return record.Decode(data, chosen, c.Namespace)
}

// get returns the record of a revision without a list of revisions: it is a Secret, or else a ConfigMap, of a known name.
func (c *Cluster) get(ctx context.Context, release string, number int) (*record.Record, error) {
	kind, name := "Secret", record.ObjectName(release, number)
	data, stored, err := c.read(ctx, kind, name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		if other, of, problem := c.read(ctx, "ConfigMap", name); problem == nil {
			kind, data, stored, err = "ConfigMap", other, of, nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("release %s in namespace %s has no revision %d: you may not list the existing ones", text.Quote(release), text.Quote(c.Namespace), number)
	case err != nil:
		return nil, err
	}
	found, is := record.RevisionOf(kind, stored)
	if !is {
		return nil, fmt.Errorf("the %s %s in namespace %s lacks the labels of a record of Helm", kind, name, text.Quote(c.Namespace))
	}
	return record.Decode(data, found, c.Namespace)
}

// Names returns the names of all releases in a namespace.
func Names(ctx context.Context, c client.Reader, namespace string) ([]string, error) {
	all, err := revisions(ctx, c, namespace)
	return record.Releases(all), err
}

// revisions returns the revisions of all releases in a namespace, from the metadata of their records. A user who may only list records of one kind gets these.
func revisions(ctx context.Context, c client.Reader, namespace string) ([]record.Revision, error) {
	all, err := list(ctx, c, "Secret", namespace)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	more, other := list(ctx, c, "ConfigMap", namespace)
	switch {
	case apierrors.IsForbidden(other):
	case other != nil:
		return nil, other
	case len(more) > 0:
		return append(all, more...), nil
	}
	return all, err
}

func list(ctx context.Context, c client.Reader, kind, namespace string) ([]record.Revision, error) {
	var found []record.Revision
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind + "List"))
		err := c.List(ctx, page, client.InNamespace(namespace), client.MatchingLabels{record.LabelOwner: record.Owner}, client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if r, is := record.RevisionOf(kind, &page.Items[i]); is {
				found = append(found, r)
			}
		}
		if next = page.Continue; next == "" {
			return found, nil
		}
		if len(found) > maxRecords {
			return nil, fmt.Errorf("there are more than %d records of Helm", maxRecords)
		}
	}
}

// read returns the content of a record, and the metadata of the object that stores it.
func (c *Cluster) read(ctx context.Context, kind, name string) ([]byte, *metav1.PartialObjectMetadata, error) {
	key := client.ObjectKey{Namespace: c.Namespace, Name: name}
	if kind == "ConfigMap" {
		stored := &corev1.ConfigMap{}
		if err := c.client.Get(ctx, key, stored); err != nil {
			return nil, nil, c.advise(err)
		}
		return []byte(stored.Data[record.Key]), &metav1.PartialObjectMetadata{ObjectMeta: stored.ObjectMeta}, nil
	}
	stored := &corev1.Secret{}
	if err := c.client.Get(ctx, key, stored); err != nil {
		return nil, nil, c.advise(err)
	}
	if stored.Type != record.SecretType {
		return nil, nil, fmt.Errorf("the Secret %s in namespace %s has type %s instead of %s: it is not a record of Helm",
			name, text.Quote(c.Namespace), text.Quote(string(stored.Type)), record.SecretType)
	}
	return stored.Data[record.Key], &metav1.PartialObjectMetadata{ObjectMeta: stored.ObjectMeta}, nil
}

// advise adds to an error what it is about, and what to do.
func (c *Cluster) advise(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("reading releases of Helm in namespace %s of cluster %s: %w", text.Quote(c.Namespace), text.Quote(c.context), err)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: Helm stores releases in Secrets: you need permission to list and get them, or to get the one that --revision selects. Otherwise, ask for the output of "+
			"'helm get values', and use 'kubectl addon package from-chart'", err)
	case errors.As(err, new(*url.Error)):
		return fmt.Errorf("%w: check that the cluster is running, and that --context and --kubeconfig name it", err)
	}
	return err
}
