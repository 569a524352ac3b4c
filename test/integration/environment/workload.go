package environment

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/core/pipe"
)

// EndJob sets the status of a Job that has ended, with condition JobComplete or JobFailed, as the Job controller does.
func EndJob(job *batchv1.Job, by batchv1.JobConditionType) {
	now := metav1.NewTime(time.Now())
	condition := func(t batchv1.JobConditionType, reason string) batchv1.JobCondition {
		return batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now}
	}
	job.Status = batchv1.JobStatus{StartTime: &now, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	if by == batchv1.JobComplete {
		job.Status.Succeeded, job.Status.CompletionTime = 1, &now
		job.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet, ""), condition(by, "")}
		return
	}
	const reason = batchv1.JobReasonBackoffLimitExceeded
	job.Status.Failed = 7
	job.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobFailureTarget, reason), condition(by, reason)}
}

// WaitInPipe sets the status of a pod of a Pipe task whose init container has succeeded, and whose files can be read.
func WaitInPipe(status *corev1.PodStatus) {
	status.Phase = corev1.PodRunning
	status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "make", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
	status.ContainerStatuses = []corev1.ContainerStatus{{Name: pipe.Container, Ready: true, State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{}}}}
}
