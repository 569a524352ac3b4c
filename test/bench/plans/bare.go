package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/test/bench/program"
)

// bareAgent is the bare client's user agent, which distinguishes it from addon-agent in the audit log.
const bareAgent = "bare-client"

// bareClient applies the same objects as addon-agent: the same bytes to the same URLs, as the same user, with the same limits, all
// Instances concurrently, each in its plan's order. It continues with the next step when everything is healthy, and makes no other
// requests.
type bareClient struct{ dynamic.Interface }

// newBareClient returns a client with a token of addon-agent's service account; admin is an administrator's client for the same config.
func newBareClient(ctx context.Context, admin client.Client, config *rest.Config, limits program.Limits) (*bareClient, error) {
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "tandem-system", Name: "addon-agent"}}
	if err := admin.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, fmt.Errorf("getting a token of addon-agent's: %w", err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.UserAgent = token.Status.Token, bareAgent
	config.QPS, config.Burst = limits.Rate()
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting the bare client: %w", err)
	}
	return &bareClient{c}, nil
}

// deploy runs the plan for all Instances with their applied objects.
func (b *bareClient) deploy(ctx context.Context, plan kudo.Plan, applied map[string][]object) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, objects := range applied {
		group.Go(func() error {
			return inOrder(ctx, plan.Strategy, plan.Phases, func(ctx context.Context, phase kudo.Phase) error {
				return inOrder(ctx, phase.Strategy, phase.Steps, func(ctx context.Context, step kudo.Step) error {
					return b.step(ctx, place{phase.Name, step.Name}, objects)
				})
			})
		})
	}
	return group.Wait()
}

// inOrder processes the items of a plan by its strategy.
func inOrder[T any](ctx context.Context, strategy kudo.Ordering, items []T, do func(context.Context, T) error) error {
	atATime := 1
	if strategy == kudo.Parallel {
		atATime = -1
	}
	return program.Each(ctx, atATime, items, do)
}

// step applies the objects of a step and waits until all are healthy.
func (b *bareClient) step(ctx context.Context, at place, objects []object) error {
	var live []*unstructured.Unstructured
	objects = slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return o.place != at })
	for _, o := range objects {
		applied, err := b.to(o).Patch(ctx, o.Name, types.ApplyPatchType, o.body, metav1.PatchOptions{
			FieldManager: bareAgent, Force: ptr.To(true),
		})
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", o.resource.Resource, o.NamespacedName, err)
		}
		live = append(live, applied)
	}
	for i, o := range objects {
		if err := b.wait(ctx, o, live[i]); err != nil {
			return fmt.Errorf("waiting for %s %s: %w", o.resource.Resource, o.NamespacedName, err)
		}
	}
	return nil
}

// wait watches an object until it is healthy, unless it already was when read.
func (b *bareClient) wait(ctx context.Context, o object, live *unstructured.Unstructured) error {
	if health.Of(live).Status == health.Healthy {
		return nil
	}
	changes, err := b.to(o).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name).String(), ResourceVersion: live.GetResourceVersion(),
	})
	if err != nil {
		return err
	}
	defer changes.Stop()
	for event := range changes.ResultChan() {
		live, ok := event.Object.(*unstructured.Unstructured)
		if event.Type != watch.Modified || !ok {
			return fmt.Errorf("it was not only changed: %s", event.Type)
		}
		if health.Of(live).Status == health.Healthy {
			return nil
		}
	}
	return errors.New("the watch ended")
}

// to returns a client for the object's resource and namespace.
func (b *bareClient) to(o object) dynamic.ResourceInterface {
	return b.Resource(o.resource).Namespace(o.Namespace)
}
