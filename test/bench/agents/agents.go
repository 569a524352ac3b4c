package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/agent"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/sandbox"
)

// localUser is the agents' identity on the managed cluster.
const localUser = "system:serviceaccount:tandem-system:addon-agent"

// hubGroup is a group of all agents on the hub.
const hubGroup = "system:open-cluster-management:addon:" + addonv1alpha1.AgentAddOn

// hubUser returns the user and the group of a cluster's agent on the hub.
func hubUser(cluster string) (user, group string) {
	group = fmt.Sprintf("system:open-cluster-management:cluster:%s:addon:%s", cluster, addonv1alpha1.AgentAddOn)
	return group + ":agent:" + addonv1alpha1.AgentName, group
}

// agents runs the agents of all clusters in this process, as the program addon-agent does with its default flags, except that it elects no
// leader.
type agents struct {
	group  *errgroup.Group
	stop   context.CancelFunc
	failed <-chan struct{} // closed when an agent has ended
}

// wire counts the bytes of connections, TLS and HTTP/2 included.
type wire struct{ sent, received atomic.Int64 }

// startAgents starts the agents of the clusters, all at the same time; toHub counts their bytes.
func startAgents(ctx context.Context, hub, managed *sandbox.Cluster, clusters []string, toHub *wire) (*agents, error) {
	namespaced, err := namespacedResources(managed.Config())
	if err != nil {
		return nil, err
	}
	local, err := managed.ConfigFor(localUser, "system:serviceaccounts", "system:serviceaccounts:tandem-system")
	if err != nil {
		return nil, err
	}
	a := &agents{}
	ctx, a.stop = context.WithCancel(ctx)
	a.group, ctx = errgroup.WithContext(ctx)
	a.failed = ctx.Done()
	for _, cluster := range clusters {
		user, group := hubUser(cluster)
		onHub, err := hub.ConfigFor(user, group, hubGroup)
		if err != nil {
			return nil, err
		}
		onHub.Dial = toHub.dial
		own := rest.CopyConfig(local)
		own.Dial = new(wire).dial // a connection of its own
		own.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &confinement{namespace: cluster, namespaced: namespaced, next: next}
		})
		a.group.Go(func() error {
			if err := runAgent(ctx, cluster, onHub, own); err != nil {
				return fmt.Errorf("the agent of %s ended: %w", cluster, err)
			}
			return nil
		})
	}
	return a, nil
}

// runAgent runs one agent until ctx ends.
func runAgent(ctx context.Context, cluster string, hub, local *rest.Config) error {
	new(controller.Limit).ApplyTo(local)
	return agent.Run(ctx, agent.Options{
		ClusterName: cluster, Standalone: true, Local: local, MetricsAddress: "0", ProbeAddress: "0",
		Hub: func() (*rest.Config, error) {
			config := rest.CopyConfig(hub)
			new(controller.Limit).ApplyTo(config)
			return config, nil
		},
	})
}

// close stops all agents.
func (a *agents) close() error {
	a.stop()
	return a.group.Wait()
}

// dial connects as client-go does by default.
func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &counted{Conn: conn, wire: w}, nil
}

// counted counts the bytes of a connection.
type counted struct {
	net.Conn
	wire *wire
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.wire.received.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wire.sent.Add(int64(n))
	return n, err
}
