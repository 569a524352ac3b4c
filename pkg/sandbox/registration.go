package sandbox

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
)

// writeOCM writes the serving configuration of OCM's programs, if OCM runs.
func (c *Cluster) writeOCM(now time.Time) error {
	if c.plan.OCM == "" {
		return nil
	}
	serving, err := c.authority.server("ocm", now)
	if err != nil {
		return err
	}
	if err := writePair(c.plan.folder(), "ocm", serving); err != nil {
		return err
	}
	return writePrivate(c.plan.folder().path("ocm.yaml"), c.plan.ocmServing())
}

// furnishOCM applies the objects of OCM's installer and operators, if OCM runs.
func (c *Cluster) furnishOCM(ctx context.Context) error {
	if c.plan.OCM == "" {
		return nil
	}
	definitions, others, err := c.plan.ocmObjects(c.authority.Certificate)
	if err != nil {
		return err
	}
	if err := applyDefinitions(ctx, c.client, definitions); err != nil {
		return err
	}
	return applyAll(ctx, c.client, others)
}

// startOCM starts OCM's programs of a hub, each once the previous one is healthy, and then applies Tandem's objects for OCM, which may be
// stored in a version that requires OCM's conversion webhook.
func (c *Cluster) startOCM(ctx context.Context) error {
	ctx, stop := c.withCrashWatch(ctx)
	defer stop()
	for _, p := range c.plan.ocmHub() {
		if err := c.runOCM(ctx, p); err != nil {
			return err
		}
	}
	return c.applyManifests(ctx, manifests.FS, "ocm/*.yaml", nil)
}

// runOCM runs an OCM program and waits until it is healthy.
func (c *Cluster) runOCM(ctx context.Context, p program) error {
	c.startProgram(p)
	trusting, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: c.authority.Certificate}})
	if err != nil {
		return fmt.Errorf("creating a client for %s: %w", p.Name, err)
	}
	url := "https://" + loopback(p.Port) + "/healthz"
	if err := waitUntil(ctx, func(ctx context.Context) error { return probe(ctx, trusting, url) }); err != nil {
		return fmt.Errorf("waiting for the %s of %s: %w", p.Name, c.plan.Name, err)
	}
	return nil
}

// join starts OCM's agents of a managed cluster, and returns when the hub has accepted it and reports it available.
func (c *Cluster) join(ctx context.Context, hub *Cluster) error {
	ctx, stop := c.withCrashWatch(ctx)
	defer stop()
	bootstrap, err := os.ReadFile(c.plan.identity("ocm-bootstrap"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig for the registration of %s: %w", c.plan.Name, err)
	}
	// The registration agent reads the file but watches the Secret, which is also where users of OCM expect it.
	if err := applyAll(ctx, c.client, []*unstructured.Unstructured{bootstrapSecret(bootstrap)}); err != nil {
		return err
	}
	if err := c.runOCM(ctx, c.plan.ocmRegistrationAgent()); err != nil {
		return err
	}
	// Before that, the work agent does not find the hub's kubeconfig and exits.
	if err := hub.waitForManagedCluster(ctx, c.plan.Name, clusterv1.ManagedClusterConditionJoined); err != nil {
		return err
	}
	if err := c.runOCM(ctx, c.plan.ocmWorkAgent()); err != nil {
		return err
	}
	return hub.waitForManagedCluster(ctx, c.plan.Name, clusterv1.ManagedClusterConditionAvailable)
}

// bootstrapSecret returns the Secret with a klusterlet's bootstrap kubeconfig.
func bootstrapSecret(kubeconfig []byte) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"name": "bootstrap-hub-kubeconfig", "namespace": ocmAgentNamespace},
		"data":       map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(kubeconfig)},
	}}
}

// waitForManagedCluster waits until the managed cluster exists on this hub and its condition is True.
func (c *Cluster) waitForManagedCluster(ctx context.Context, name, condition string) error {
	cluster := &unstructured.Unstructured{}
	cluster.SetAPIVersion(clusterv1.GroupVersion.String())
	cluster.SetKind("ManagedCluster")
	return waitUntil(ctx, func(ctx context.Context) error {
		if err := c.client.Get(ctx, client.ObjectKey{Name: name}, cluster); err != nil {
			return fmt.Errorf("waiting for %s to register: %w", name, err)
		}
		if !hasTrueCondition(cluster, condition) {
			return fmt.Errorf("%s of ManagedCluster %s is not True", condition, name)
		}
		return nil
	})
}

// probe checks a program's health endpoint.
func probe(ctx context.Context, through *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := through.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s responds with %s", url, response.Status)
	}
	return nil
}
