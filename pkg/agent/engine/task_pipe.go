package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/image"
	"github.com/tandem-addons/tandem/pkg/core/outcome"
	"github.com/tandem-addons/tandem/pkg/core/pipe"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
)

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
func (p *pass) pipe(ctx context.Context, x *execution, placed plan.Placed, rendered renderedTask) plan.Outcome {
	artifacts, _, err := p.objects.placeAll(x.instance, rendered.objects)
	if err != nil {
		return outcomeOf(err)
	}
	if len(plan.UnlistedObjects(x.instance.Status.Inventory, artifacts)) > 0 {
		return x.postpone(placed, artifacts)
	}
	run := &piping{execution: x, task: placed.Task, artifacts: artifacts}
	if err := run.complete(rendered, image.Mirrored(x.ImageRegistries, p.pipeImage)); err != nil {
		return outcome.Fatal(err)
	}
	kept, err := p.hasStoredFiles(ctx, run)
	if err != nil {
		return outcomeOf(err)
	}
	if !kept {
		outcome := p.produce(ctx, run)
		if outcome.Status == kudo.FatalError {
			// Errors are ignored here; the deletion is retried when the plan has ended.
			_, _ = p.dropPod(ctx, run)
		}
		if outcome.Status != kudo.Complete {
			return outcome
		}
	}
	x.inventory.markSurplus(placed.Task.Name, artifacts)
	pod, err := p.dropPod(ctx, run)
	if err != nil {
		return outcomeOf(err)
	}
	return plan.DeleteOutcome(p.view.MaskObjects([]plan.Object{pod}))
}

// complete adds the waiting container to the pod of the task. An error is terminal.
func (run *piping) complete(rendered renderedTask, image string) (err error) {
	if rendered.hiddenErr != nil {
		return rendered.hiddenErr
	}
	template := run.task.Spec.Pod
	if namespace := rendered.pod.GetNamespace(); namespace != "" && namespace != run.instance.Namespace {
		return fmt.Errorf("template %q: the Pod of a Pipe task runs in the Instance's namespace %q: remove namespace %q",
			template, run.instance.Namespace, namespace)
	}
	if run.pod, run.paths, err = pipe.Pod(rendered.pod, run.task.Spec.Pipe, image); err != nil {
		return fmt.Errorf("template %q: %w", template, err)
	}
	return nil
}

// hasStoredFiles reports whether this execution has stored all files. The agent may have stopped before it recorded that.
func (p *pass) hasStoredFiles(ctx context.Context, run *piping) (bool, error) {
	kept := true
	for _, artifact := range run.artifacts {
		object, err := p.objects.find(ctx, run.instance, artifact, fromServerAndWatch)
		if err == nil {
			err = run.owner().Claim(object)
		}
		if err != nil {
			return false, err
		}
		if object.AppliedBy(run.UID) && !object.IsDeleted() {
			run.inventory.recordApplied(object)
			continue
		}
		kept = false
	}
	return kept, nil
}

// produce runs the pod until its files can be read, and stores them.
func (p *pass) produce(ctx context.Context, run *piping) plan.Outcome {
	pod, err := p.objects.find(ctx, run.instance, run.pod, fromServerAndWatch)
	if err == nil && pod.Live == nil {
		pod, err = p.apply(ctx, run.execution, run.pod, false, beforeApply)
	}
	if err == nil {
		err = run.owner().Claim(pod)
	}
	if err != nil {
		return outcomeOf(err)
	}
	if !pod.AppliedBy(run.UID) || pod.IsDeleted() { // belongs to an earlier execution, or is lost
		return p.replacePod(ctx, run, pod, plan.Outcome{Status: kudo.InProgress, Message: plan.DeleteOutcome(p.view.MaskObjects([]plan.Object{pod})).Message})
	}
	switch next, result := outcome.OfPod(p.progress(pod.Live)); next {
	case outcome.ReadFiles:
		return p.keep(ctx, run)
	case outcome.ReplacePod:
		return p.replacePod(ctx, run, pod, result)
	default:
		return result
	}
}

// progress returns the progress of a pod, without sensitive values in its message.
func (p *pass) progress(pod *unstructured.Unstructured) (pipe.Stage, string) {
	stage, message := pipe.Progress(p.view.Masker().Object(pod))
	if message != "" && p.view.IsOpaque(pod) {
		message = plan.Describe(pod) + ": " + sensitive.NotShown
	}
	return stage, message
}

// replacePod deletes a pod, which is re-created once it is deleted.
func (p *pass) replacePod(ctx context.Context, run *piping, pod plan.Object, outcome plan.Outcome) plan.Outcome {
	if _, err := p.deleteOwn(ctx, p.acting, run.owner().Has, pod); err != nil {
		return outcomeOf(err)
	}
	return outcome
}

// keep reads all files before it stores the first.
func (p *pass) keep(ctx context.Context, run *piping) plan.Outcome {
	filled := make([]*unstructured.Unstructured, len(run.artifacts))
	for i, file := range run.task.Spec.Pipe {
		content, err := p.readFile(ctx, client.ObjectKeyFromObject(run.pod), run.paths[i])
		var failed exec.CodeExitError
		var missing *missingRight
		switch {
		case errors.As(err, &missing):
			return outcomeOf(fmt.Errorf("reading file %q: %w", file.File+file.EnvFile, err))
		case errors.As(err, &failed):
			return outcome.Fatal(fmt.Errorf("file %q cannot be read: %w", file.File+file.EnvFile, err))
		case err != nil:
			return plan.Outcome{Status: kudo.Error, Message: fmt.Sprintf("reading file %q from Pod %s: %v",
				file.File+file.EnvFile, client.ObjectKeyFromObject(run.pod), err)}
		}
		if filled[i], err = pipe.Fill(run.artifacts[i], file, content); err != nil {
			return outcome.Fatal(err)
		}
	}
	if _, err := p.applyEach(ctx, run.execution, run.task, filled, false); err != nil {
		return outcomeOf(err)
	}
	return plan.Outcome{Status: kudo.Complete}
}

// readFile reads a file from the waiting container; for a file that is too large, just enough to detect it.
func (p *pass) readFile(ctx context.Context, pod types.NamespacedName, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, fileTimeout, fmt.Errorf("timed out after %v", fileTimeout))
	defer cancel()
	const maxBytes = pipe.MaxBytes + 1
	content, err := p.acting.remote.Output(ctx, pod, pipe.Container, maxBytes, "head", "-c", strconv.Itoa(maxBytes), "--", path)
	return content, p.acting.limits.explain(err)
}

// dropPod deletes the task's pod, if there is one.
func (p *pass) dropPod(ctx context.Context, run *piping) (plan.Object, error) {
	pod, err := p.objects.find(ctx, run.instance, run.pod, fromServerAndWatch)
	if err != nil || pod.Live == nil || !run.owner().Owns(pod.Live) {
		return plan.Object{Want: run.pod}, err
	}
	return p.deleteOwn(ctx, p.acting, run.owner().Has, pod)
}
