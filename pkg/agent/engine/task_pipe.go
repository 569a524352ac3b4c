package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

// fileTimeout is the timeout for reading one file from a container.
const fileTimeout = 30 * time.Second

// piping is a running Pipe task.
type piping struct {
	*execution
	task kudo.Task
	// pod creates the files, at these paths in the waiting container; artifacts store them, one each.
	pod       *unstructured.Unstructured
	paths     []string
	artifacts []*unstructured.Unstructured
}

// pipe runs a Pipe task: a pod creates files, objects store them, and the pod is deleted. Files that this execution has stored are not
// created again. If one file is missing, all are created again, because the files of one run belong together.
func (e *engine) pipe(ctx context.Context, x *execution, placed plan.Placed, artifacts []*unstructured.Unstructured) plan.Outcome {
	artifacts, _, err := e.objects.placeAll(x.instance, artifacts)
	if err != nil {
		return outcomeOf(err)
	}
	if len(plan.UnlistedObjects(x.instance.Status.Inventory, artifacts)) > 0 {
		return x.postpone(placed, artifacts)
	}
	p := &piping{execution: x, task: placed.Task, artifacts: artifacts}
	if err := p.render(placed, e.pipeImage); err != nil {
		return fatal(err)
	}
	kept, err := e.hasStoredFiles(ctx, p)
	if err != nil {
		return outcomeOf(err)
	}
	if !kept {
		outcome := e.produce(ctx, p)
		if outcome.Status == kudo.FatalError {
			// Errors are ignored here; the deletion is retried when the plan has ended.
			_, _ = e.dropPod(ctx, p)
		}
		if outcome.Status != kudo.Complete {
			return outcome
		}
	}
	x.inventory.markSurplus(placed.Task.Name, artifacts)
	pod, err := e.dropPod(ctx, p)
	if err != nil {
		return outcomeOf(err)
	}
	return plan.DeleteOutcome(e.view.MaskObjects([]plan.Object{pod}))
}

// render renders the pod of the task. An error is terminal.
func (p *piping) render(placed plan.Placed, image string) error {
	template := p.task.Spec.Pod
	rendered, err := p.renderPod(placed)
	if err != nil {
		return err
	}
	if namespace := rendered.GetNamespace(); namespace != "" && namespace != p.instance.Namespace {
		return fmt.Errorf("template %q: the Pod of a Pipe task runs in the Instance's namespace %q: remove namespace %q",
			template, p.instance.Namespace, namespace)
	}
	if p.pod, p.paths, err = pipe.Pod(rendered, p.task.Spec.Pipe, image); err != nil {
		return fmt.Errorf("template %q: %w", template, err)
	}
	return nil
}

// hasStoredFiles reports whether this execution has stored all files. The agent may have stopped before it recorded that.
func (e *engine) hasStoredFiles(ctx context.Context, p *piping) (bool, error) {
	kept := true
	for _, artifact := range p.artifacts {
		object, err := e.objects.findLive(ctx, p.instance, artifact)
		if err == nil {
			err = p.owner().Claim(object)
		}
		if err != nil {
			return false, err
		}
		if object.AppliedBy(p.UID) && !object.IsDeleted() {
			p.inventory.recordApplied(object)
			continue
		}
		kept = false
	}
	return kept, nil
}

// produce runs the pod until its files can be read, and stores them.
func (e *engine) produce(ctx context.Context, p *piping) plan.Outcome {
	pod, err := e.objects.findLive(ctx, p.instance, p.pod)
	if err == nil && pod.Live == nil {
		pod, err = e.apply(ctx, p.execution, p.pod, false, e.objects.readBeforeApply)
	}
	if err == nil {
		err = p.owner().Claim(pod)
	}
	if err != nil {
		return outcomeOf(err)
	}
	if !pod.AppliedBy(p.UID) || pod.IsDeleted() { // belongs to an earlier execution, or is lost
		return e.replacePod(ctx, p, pod, plan.Outcome{Status: kudo.InProgress, Message: plan.DeleteOutcome(e.view.MaskObjects([]plan.Object{pod})).Message})
	}
	stage, message := e.progress(pod.Live)
	switch stage {
	case pipe.Ready:
		return e.keep(ctx, p)
	case pipe.Retrying:
		return plan.Outcome{Status: kudo.Error, Message: message}
	case pipe.Lost:
		return e.replacePod(ctx, p, pod, plan.Outcome{Status: kudo.Error, Message: message + "; starting a new Pod"})
	case pipe.Failed:
		return fatal(errors.New(message))
	default:
		return plan.Outcome{Status: kudo.InProgress, Message: message}
	}
}

// progress returns the progress of a pod, without sensitive values in its message.
func (e *engine) progress(pod *unstructured.Unstructured) (pipe.Stage, string) {
	stage, message := pipe.Progress(e.view.Masker().Object(pod))
	if message != "" && e.view.IsOpaque(pod) {
		message = plan.Describe(pod) + ": " + sensitive.NotShown
	}
	return stage, message
}

// replacePod deletes a pod, which is re-created once it is deleted.
func (e *engine) replacePod(ctx context.Context, p *piping, pod plan.Object, outcome plan.Outcome) plan.Outcome {
	if _, err := e.deleteOwn(ctx, e.acting, p.owner().Has, pod); err != nil {
		return outcomeOf(err)
	}
	return outcome
}

// keep reads all files before it stores the first.
func (e *engine) keep(ctx context.Context, p *piping) plan.Outcome {
	filled := make([]*unstructured.Unstructured, len(p.artifacts))
	for i, file := range p.task.Spec.Pipe {
		content, err := e.readFile(ctx, client.ObjectKeyFromObject(p.pod), p.paths[i])
		var failed exec.CodeExitError
		var missing *missingRight
		switch {
		case errors.As(err, &missing):
			return outcomeOf(fmt.Errorf("reading file %q: %w", file.File+file.EnvFile, err))
		case errors.As(err, &failed):
			return fatal(fmt.Errorf("file %q cannot be read: %w", file.File+file.EnvFile, err))
		case err != nil:
			return plan.Outcome{Status: kudo.Error, Message: fmt.Sprintf("reading file %q from Pod %s: %v",
				file.File+file.EnvFile, client.ObjectKeyFromObject(p.pod), err)}
		}
		if filled[i], err = pipe.Fill(p.artifacts[i], file, content); err != nil {
			return fatal(err)
		}
	}
	if _, err := e.applyEach(ctx, p.execution, filled, false); err != nil {
		return outcomeOf(err)
	}
	return plan.Outcome{Status: kudo.Complete}
}

// readFile reads a file from the waiting container; for a file that is too large, just enough to detect it.
func (e *engine) readFile(ctx context.Context, pod types.NamespacedName, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fileTimeout, fmt.Errorf("timed out after %v", fileTimeout))
	defer cancel()
	const maxBytes = pipe.MaxBytes + 1
	content, err := e.acting.remote.Output(ctx, pod, pipe.Container, maxBytes, "head", "-c", strconv.Itoa(maxBytes), "--", path)
	return content, e.acting.limits.explain(err)
}

// dropPod deletes the task's pod, if there is one.
func (e *engine) dropPod(ctx context.Context, p *piping) (plan.Object, error) {
	pod, err := e.objects.findLive(ctx, p.instance, p.pod)
	if err != nil || pod.Live == nil || !p.owner().Owns(pod.Live) {
		return plan.Object{Want: p.pod}, err
	}
	return e.deleteOwn(ctx, e.acting, p.owner().Has, pod)
}
