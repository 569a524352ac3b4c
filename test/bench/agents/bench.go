package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/sandbox"
	"github.com/tandem-addons/tandem/test/bench/program"
	"github.com/tandem-addons/tandem/test/bench/stage"
)

//go:embed audit.yaml
var auditPolicy []byte

const (
	// quiet is how long Tandem's programs must write nothing but leases and events to count as settled.
	quiet = 3 * time.Second
	// inFlight is the number of concurrent requests of the benchmark itself.
	inFlight = 10
)

// bench is one run.
type bench struct {
	settings
	*stage.Stage
	say      func(format string, arguments ...any)
	clusters []string

	// admin is the administrator's client of the hub, without limits; raw reads what is no object. seen is a cache of the hub's add-ons
	// and Instances.
	admin client.Client
	raw   rest.Interface
	seen  cache.Cache

	agents *agents
	// wire counts what the agents exchange with the hub.
	wire wire
	// value is the current value of the parameter.
	value string
}

// Measure starts a sandbox and runs all scenarios in it. It stops everything that it started, also after an error.
func (s *settings) Measure(ctx context.Context, progress io.Writer) (measured program.Report, err error) {
	b := &bench{settings: *s, say: program.Progress(progress), clusters: clusterNames(s.agents), value: firstValue}
	b.Stage, err = stage.Start(ctx, sandbox.Options{
		Tandem: s.programs, OCM: s.ocm, AuditPolicy: auditPolicy, Progress: func(line string) { b.say("%s", line) },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if b.agents != nil {
			err = errors.Join(err, b.agents.close())
		}
	}()
	return b.scenarios(ctx)
}

// prepare stops the sandbox's own agents, connects to the hub, and creates packages, definitions and the registration of all clusters.
func (b *bench) prepare(ctx context.Context) error {
	if err := b.stopAgents(ctx); err != nil {
		return err
	}
	scheme, err := controller.Scheme(clusterv1beta1.Install, clusterv1beta2.Install, workv1.Install)
	if err != nil {
		return err
	}
	config := b.Hub.Config()
	config.QPS = -1
	var errs [3]error
	b.admin, errs[0] = client.New(config, client.Options{Scheme: scheme})
	b.seen, errs[1] = cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields()})
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if errs[2] = err; errors.Join(errs[:]...) != nil {
		return fmt.Errorf("connecting to the hub: %w", errors.Join(errs[:]...))
	}
	b.raw = discoverer.RESTClient()
	go func() { _ = b.seen.Start(ctx) }() // ends with ctx
	return errors.Join(b.furnish(ctx), b.count(ctx, func(*kudo.Instance) {}), b.countAddOns(ctx, func(*addonv1alpha1.ManagedClusterAddOn) {}))
}

// stopAgents stops the sandbox's own agents.
func (b *bench) stopAgents(ctx context.Context) error {
	err := b.StopProgram(ctx, stage.Managed, "addon-agent")
	if b.ocm == "" {
		return err
	}
	for _, p := range replaced {
		err = errors.Join(err, b.StopProgram(ctx, p.cluster, p.program))
	}
	return err
}

// furnish creates the objects that exist before the agents connect.
func (b *bench) furnish(ctx context.Context) error {
	objects := []client.Object{operatorVersion(firstVersion), operatorVersion(secondVersion), sharedSettings(firstValue)}
	for number := range b.chain() {
		objects = append(objects, definition(number))
	}
	for _, object := range objects {
		if err := b.admin.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %q: %w", object, object.GetName(), err)
		}
	}
	if err := b.register(ctx); err != nil || b.ocm == "" {
		return err
	}
	return b.selectClusters(ctx)
}

// register registers all clusters.
func (b *bench) register(ctx context.Context) error {
	b.say("registering %d managed clusters", len(b.clusters))
	waveOf := waveNames(b.clusters)
	return program.Each(ctx, inFlight, b.clusters, func(ctx context.Context, cluster string) error {
		objects, err := registration(cluster, waveOf[cluster])
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := b.admin.Create(ctx, object); err != nil {
				return fmt.Errorf("registering %s: %w", cluster, err)
			}
		}
		return b.Managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
	})
}

// count calls do for every Instance on the hub.
func (b *bench) count(ctx context.Context, do func(*kudo.Instance)) error {
	var list kudo.InstanceList
	if err := b.seen.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Instances: %w", err)
	}
	for i := range list.Items {
		do(&list.Items[i])
	}
	return nil
}

// countAddOns calls do for every add-on on the hub.
func (b *bench) countAddOns(ctx context.Context, do func(*addonv1alpha1.ManagedClusterAddOn)) error {
	var list addonv1alpha1.ManagedClusterAddOnList
	if err := b.seen.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ManagedClusterAddOns: %w", err)
	}
	for i := range list.Items {
		do(&list.Items[i])
	}
	return nil
}

// change is a change of the fleet: what causes it, and whether its effects are complete.
type change struct {
	do   func(context.Context, *observation) error
	done func(context.Context, *observation) (bool, error)
}

// measure makes a change, and observes its effects until they are complete and everything has settled.
func (b *bench) measure(ctx context.Context, name string, c change) (*scenario, error) {
	b.say("%s", name)
	before, err := b.sample(ctx)
	if err := errors.Join(err, clearPeaks(before)); err != nil {
		return nil, err
	}
	if _, err := b.Hub.Log.Next(); err != nil { // of the time before
		return nil, err
	}
	o, sent, received := newObservation(), b.wire.sent.Load(), b.wire.received.Load()
	if err := c.do(ctx, o); err != nil {
		return nil, err
	}
	if err := b.settle(ctx, o, c.done); err != nil {
		return nil, err
	}
	after, err := b.sample(ctx)
	if err != nil {
		return nil, err
	}
	s, each := newScenario(name, o, len(b.clusters), time.Now()), float64(len(b.clusters))
	s.Programs, s.SentKBEach = usageBetween(before, after), float64(b.wire.sent.Load()-sent)/1024/each
	s.ReceivedKBEach = float64(b.wire.received.Load()-received) / 1024 / each
	s.Watches, err = b.watches(ctx)
	b.say("%s", s)
	return s, err
}

// settle reads the log until the effects of a change are complete and nothing has been written for a while.
func (b *bench) settle(ctx context.Context, o *observation, done func(context.Context, *observation) (bool, error)) error {
	last := time.Now()
	return program.Until(ctx, "everything has settled", func(ctx context.Context) (bool, error) {
		entries, err := b.Hub.Log.Next()
		if err != nil {
			return false, err
		}
		active := o.add(entries)
		complete, err := done(ctx, o)
		if active || !complete {
			last = time.Now()
		}
		select {
		case <-b.agents.failed:
			return false, b.agents.group.Wait()
		default:
			return time.Since(last) >= quiet, err
		}
	})
}
