package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/sourcing"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// sources reconciles PackageSources.
type sources struct {
	client client.Client
	// live reads everything but PackageSources, and stores packages.
	live     client.Client
	recorder *controller.Recorder
	metrics  *metrics
	network  Network
	clock    func() time.Time
	logger   logr.Logger
	written  *controller.Writes
	memory   *memories
}

// SetUp adds the controller to a manager.
func (s *sources) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "package-source", controller.Options{}).
		For(&kudo.PackageSource{}, builder.WithPredicates(controller.ChangeIn(view))).
		Complete(&controller.Reconciler[*kudo.PackageSource]{
			Client: s.client, Written: s.written, Forget: s.forget, ReconcileObject: s.reconcile,
		})
}

// viewed is what the controller reads of a source.
type viewed struct {
	uid        types.UID
	generation int64
	request    string
}

func view(source *kudo.PackageSource) viewed {
	return viewed{source.UID, source.Generation, sourcing.RequestOf(source)}
}

// forget drops what is remembered of a source that no longer exists. What it has stored stays.
func (s *sources) forget(name types.NamespacedName) {
	s.memory.drop(name)
	s.metrics.forget(name)
}

// reconcile attempts a source if that is due, and writes its status if it changes.
func (s *sources) reconcile(ctx context.Context, source *kudo.PackageSource) (ctrl.Result, error) {
	switch {
	case controller.IsDeleted(source):
		return ctrl.Result{}, nil
	case source.Spec.Suspend:
		s.metrics.noteState(source, nil)
		return controller.RetryConflict(s.commit(ctx, source, sourcing.Suspended(source)))
	}
	name := client.ObjectKeyFromObject(source)
	last := s.memory.get(name)
	if sourcing.Wait(source, last.Memory, s.clock()) == 0 {
		started := s.clock()
		outcome, stored, err := s.attempt(ctx, source, last.stored)
		if err != nil { // the program stops, or the hub cannot be read
			return ctrl.Result{}, err
		}
		last = remembered{last.Note(source, outcome.Failure, started, s.clock()), outcome, stored}
		s.memory.set(name, last)
		s.metrics.noteAttempt(source, outcome, s.clock().Sub(started), s.clock())
	}
	if !last.IsAbout(source) { // the spec has changed again within a moment
		return ctrl.Result{RequeueAfter: max(time.Millisecond, sourcing.Wait(source, last.Memory, s.clock()))}, nil
	}
	s.metrics.noteState(source, last.outcome.Failure)
	result, err := controller.RetryConflict(s.commit(ctx, source, sourcing.Status(source, last.outcome)))
	if err == nil && result.RequeueAfter == 0 {
		result.RequeueAfter = max(time.Millisecond, sourcing.Wait(source, last.Memory, s.clock()))
	}
	return result, err
}

// attempt pulls, verifies and stores the package of a source, within its timeout.
// known identifies what the last attempt that succeeded has stored; the result identifies what is stored now, empty after a failure.
func (s *sources) attempt(ctx context.Context, source *kudo.PackageSource, known identities) (sourcing.Outcome, identities, error) {
	limit := sourcing.Timeout(source)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	a := &attempt{source: source, live: s.live, network: s.network, known: known}
	artifact, err := a.run(limited)
	if ctx.Err() != nil {
		return sourcing.Outcome{}, nil, ctx.Err()
	}
	if err == nil {
		return sourcing.Outcome{Artifact: artifact}, a.stored, nil
	}
	failure := sourcing.FailureOf(err)
	if errors.Is(limited.Err(), context.DeadlineExceeded) {
		failure = &sourcing.Failure{Reason: kudo.ReasonPullFailed, Err: fmt.Errorf("the attempt did not complete in %s: raise spec.timeout, or look at the registry", limit)}
	}
	return sourcing.Outcome{Failure: failure}, nil, nil
}

// commit writes the status of a source if it changes, and then emits an event if Ready has another reason.
func (s *sources) commit(ctx context.Context, source *kudo.PackageSource, want kudo.PackageSourceStatus) error {
	if equality.Semantic.DeepEqual(source.Status, want) {
		return nil
	}
	now := metav1.NewTime(s.clock()).Rfc3339Copy()
	for i := range want.Conditions {
		if want.Conditions[i].LastTransitionTime.IsZero() {
			want.Conditions[i].LastTransitionTime = now
		}
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&want)
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	if err := apply.StatusAsRead(ctx, s.live, source, FieldManager, fields); err != nil {
		return err
	}
	before, after := meta.FindStatusCondition(source.Status.Conditions, kudo.ConditionReady), meta.FindStatusCondition(want.Conditions, kudo.ConditionReady)
	if before != nil && before.Reason == after.Reason && before.Message == after.Message {
		return nil
	}
	kind := corev1.EventTypeNormal
	if after.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	s.recorder.Eventf(source, nil, kind, after.Reason, actionPull, "%s", controller.TruncateNote(after.Message))
	s.logger.Info("package source changed", "source", client.ObjectKeyFromObject(source), "reason", after.Reason, "message", after.Message)
	return nil
}

// actionPull is the action of events.
const actionPull = "PullPackage"

// remembered is the last attempt of a source, with its outcome.
type remembered struct {
	sourcing.Memory
	outcome sourcing.Outcome
	stored  identities
}

// memories are the last attempts of all sources.
type memories struct {
	mu   sync.Mutex
	last map[types.NamespacedName]remembered
}

func newMemories() *memories { return &memories{last: map[types.NamespacedName]remembered{}} }

func (m *memories) get(name types.NamespacedName) remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last[name]
}

func (m *memories) set(name types.NamespacedName, last remembered) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[name] = last
}

func (m *memories) drop(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, name)
}
