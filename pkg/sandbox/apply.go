package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fieldManager = client.FieldOwner("sandbox")
	pollInterval = 100 * time.Millisecond
)

// applyAll applies the objects in order, by server-side apply. Mutating admission policies are left out before Kubernetes 1.36, as by deploy/before-1.36.
func applyAll(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), fieldManager, client.ForceOwnership)
		if meta.IsNoMatchError(err) && strings.HasPrefix(object.GetKind(), "MutatingAdmissionPolicy") {
			continue
		}
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// applyStatusOnce applies the status of an object that has none yet. An existing status belongs to other writers.
func applyStatusOnce(ctx context.Context, c client.Client, status *unstructured.Unstructured) error {
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(status.GroupVersionKind())
	key := client.ObjectKeyFromObject(status)
	if err := c.Get(ctx, key, current); err != nil {
		return fmt.Errorf("reading %s %s: %w", status.GetKind(), key, err)
	}
	if conditions, _, _ := unstructured.NestedSlice(current.Object, "status", "conditions"); len(conditions) > 0 {
		return nil
	}
	err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), fieldManager, client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying the status of %s %s: %w", status.GetKind(), key, err)
	}
	return nil
}

// applyDefinitions applies CustomResourceDefinitions and waits until all are established.
func applyDefinitions(ctx context.Context, c client.Client, definitions []*unstructured.Unstructured) error {
	if err := applyAll(ctx, c, definitions); err != nil {
		return err
	}
	for _, definition := range definitions {
		current := definition.DeepCopy()
		err := waitUntil(ctx, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(definition), current); err != nil {
				return err
			}
			if !hasTrueCondition(current, "Established") {
				return fmt.Errorf("the definition of %s is not established", definition.GetName())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// waitForController waits until kube-controller-manager has created the default service account, which pods require. With the data of a
// previous sandbox it already exists.
func waitForController(ctx context.Context, c client.Client) error {
	return waitUntil(ctx, func(ctx context.Context) error {
		key := types.NamespacedName{Namespace: "default", Name: "default"}
		if err := c.Get(ctx, key, &corev1.ServiceAccount{}); err != nil {
			return fmt.Errorf("waiting for kube-controller-manager to create the default service account: %w", err)
		}
		return nil
	})
}

// waitForNodes waits until the cluster has nodes and all are Ready.
func waitForNodes(ctx context.Context, c client.Client) error {
	return waitUntil(ctx, func(ctx context.Context) error {
		var nodes corev1.NodeList
		if err := c.List(ctx, &nodes); err != nil {
			return fmt.Errorf("waiting for nodes: %w", err)
		}
		for _, node := range nodes.Items {
			if !nodeReady(&node) {
				return fmt.Errorf("node %s is not ready", node.Name)
			}
		}
		if len(nodes.Items) == 0 {
			return errors.New("there are no nodes")
		}
		return nil
	})
}

// nodeReady reports whether pods can be scheduled to the node.
func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0
		}
	}
	return false
}

func hasTrueCondition(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		if condition, ok := entry.(map[string]any); ok && condition["type"] == kind {
			return condition["status"] == "True"
		}
	}
	return false
}

// waitUntil polls the check until it passes. If ctx ends first, it returns the cause and, for a timeout, the last error of the check.
func waitUntil(ctx context.Context, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return context.Cause(ctx)
}
