package story

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func packagesPushed(ctx context.Context, s *stage) error {
	for _, name := range []string{zookeeperVersion, kafkaVersion} {
		version := &kudo.OperatorVersion{}
		if err := s.hub.Get(ctx, client.ObjectKey{Namespace: packagesNamespace, Name: name}, version); err != nil {
			return err
		}
	}
	return nil
}

// condition promises a condition of an add-on; an empty message matches any.
func condition(cluster, name, kind string, status metav1.ConditionStatus, reason, message string) promise {
	return promise{
		says: fmt.Sprintf("%s on %s is %s=%s, reason %s", name, cluster, kind, status, reason),
		kept: func(ctx context.Context, s *stage) error {
			subject := &addonv1alpha1.ManagedClusterAddOn{}
			if err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, subject); err != nil {
				return err
			}
			seen := meta.FindStatusCondition(subject.Status.Conditions, kind)
			if seen == nil {
				return fmt.Errorf("it has no condition %s", kind)
			}
			if seen.Status != status || seen.Reason != reason || message != "" && seen.Message != message {
				return fmt.Errorf("it is %s=%s, reason %s: %q", kind, seen.Status, seen.Reason, seen.Message)
			}
			return nil
		},
	}
}

// heldPromise promises that kafka waits for zookeeper on a cluster: it has a verdict, is not available, and has no Instance.
func heldPromise(cluster string) promise {
	lacks := lacksZookeeper + "\n" + lacksMonitoring
	conditions := []promise{
		condition(cluster, "kafka", addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks),
		condition(cluster, "kafka", addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonRequiredDependencyNotSatisfied, lacks),
		condition(cluster, "kafka", addonv1alpha1.ConditionResolved, metav1.ConditionFalse, addonv1alpha1.ReasonWaitingForDependencies, ""),
	}
	return promise{
		says: fmt.Sprintf("kafka on %s is not installed yet: Degraded and not Available, reason %s", cluster, addonv1alpha1.ReasonRequiredDependencyNotSatisfied),
		kept: func(ctx context.Context, s *stage) error {
			for _, c := range conditions {
				if err := c.kept(ctx, s); err != nil {
					return err
				}
			}
			return absent(ctx, s.hub, &kudo.Instance{}, cluster, "kafka")
		},
	}
}

func nothingInstalled(cluster string) promise {
	return promise{
		says: "neither kafka nor zookeeper is installed on " + cluster,
		kept: func(ctx context.Context, s *stage) error {
			for _, name := range addOns() {
				if err := absent(ctx, s.clusters[cluster], &kudo.Instance{}, installNamespace, name); err != nil {
					return err
				}
			}
			return s.nothingOf(ctx, cluster, "kafka")
		},
	}
}

// planComplete promises that the last execution is of that plan, is not an execution from before the act, and is complete.
func planComplete(cluster, name, plan string) promise {
	return promise{
		says: fmt.Sprintf("plan %q of %s on %s is complete", plan, name, cluster),
		kept: func(ctx context.Context, s *stage) error {
			instance := &kudo.Instance{}
			if err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance); err != nil {
				return err
			}
			last := instance.Status.Execution
			if last == nil || last.Plan != plan || last.UID == s.executed[cluster+"/"+name] {
				return fmt.Errorf("it has not started: the last plan is %s", lastPlan(instance))
			}
			if status := instance.Status.PlanStatus[plan]; status.Status != kudo.Complete {
				return fmt.Errorf("it is %s: %s", status.Status, status.Message)
			}
			return nil
		},
	}
}

func lastPlan(instance *kudo.Instance) string {
	if instance.Status.Execution == nil {
		return "none"
	}
	return instance.Status.Execution.Plan
}

// replicas promises a StatefulSet that is rolled out.
func replicas(cluster, name string, want int32) promise {
	return promise{
		says: fmt.Sprintf("%s on %s runs with %d pods", name, cluster, want),
		kept: func(ctx context.Context, s *stage) error {
			set := &appsv1.StatefulSet{}
			if err := s.clusters[cluster].Get(ctx, client.ObjectKey{Namespace: installNamespace, Name: name}, set); err != nil {
				return err
			}
			if *set.Spec.Replicas != want || set.Status.ReadyReplicas != want {
				return fmt.Errorf("%d of %d are ready", set.Status.ReadyReplicas, *set.Spec.Replicas)
			}
			return nil
		},
	}
}

// installedAfter promises that one add-on was installed after another was deployed, with a resolution of one second.
func installedAfter(cluster, name, other string) promise {
	return promise{
		says: fmt.Sprintf("%s on %s was installed after %s was deployed", name, cluster, other),
		kept: func(ctx context.Context, s *stage) error {
			installed, deployed := &kudo.Instance{}, &kudo.Instance{}
			if err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, installed); err != nil {
				return err
			}
			if err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: other}, deployed); err != nil {
				return err
			}
			end := deployed.Status.PlanStatus[kudo.DeployPlan].LastUpdatedTimestamp
			if installed.CreationTimestamp.Before(end) {
				return fmt.Errorf("it was installed at %s, and the other was deployed at %s", installed.CreationTimestamp, end)
			}
			return nil
		},
	}
}

// remember records the last execution of an add-on and its running pods.
func (s *stage) remember(ctx context.Context, cluster, name string) error {
	instance, pods := &kudo.Instance{}, &corev1.PodList{}
	if err := s.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance); err != nil {
		return err
	}
	if err := s.clusters[cluster].List(ctx, pods, client.InNamespace(installNamespace), client.MatchingLabels{kudo.LabelInstance: name}); err != nil {
		return err
	}
	s.executed, s.pods = map[string]types.UID{}, map[string]types.UID{}
	if instance.Status.Execution != nil {
		s.executed[cluster+"/"+name] = instance.Status.Execution.UID
	}
	for _, pod := range pods.Items {
		s.pods[pod.Name] = pod.UID
	}
	return nil
}

func notRestarted(cluster, name string) promise {
	return promise{
		says: fmt.Sprintf("no pod of %s was restarted", name),
		kept: func(ctx context.Context, s *stage) error {
			if len(s.pods) == 0 {
				return fmt.Errorf("there were no pods before")
			}
			for pod, uid := range s.pods {
				seen := &corev1.Pod{}
				if err := s.clusters[cluster].Get(ctx, client.ObjectKey{Namespace: installNamespace, Name: pod}, seen); err != nil {
					return err
				}
				if seen.UID != uid {
					return fmt.Errorf("pod %s was re-created", pod)
				}
			}
			return nil
		},
	}
}

// exporter promises that kafka's exporter exists and works, or does not exist.
func exporter(cluster string, on bool) promise {
	says := "the exporter on " + cluster + " is removed"
	if on {
		says = "the exporter on " + cluster + " is running"
	}
	return promise{
		says: says,
		kept: func(ctx context.Context, s *stage) error {
			if !on {
				return absent(ctx, s.clusters[cluster], &appsv1.Deployment{}, installNamespace, "kafka-exporter")
			}
			deployment := &appsv1.Deployment{}
			if err := s.clusters[cluster].Get(ctx, client.ObjectKey{Namespace: installNamespace, Name: "kafka-exporter"}, deployment); err != nil {
				return err
			}
			if deployment.Status.AvailableReplicas != 1 {
				return fmt.Errorf("%d of 1 pods are available", deployment.Status.AvailableReplicas)
			}
			return nil
		},
	}
}

// removedPromise promises that nothing remains of an add-on, on the hub and on its cluster.
func removedPromise(cluster, name string) promise {
	return promise{
		says: fmt.Sprintf("all objects of %s on %s are removed, including volumes", name, cluster),
		kept: func(ctx context.Context, s *stage) error {
			if err := absent(ctx, s.hub, &addonv1alpha1.ManagedClusterAddOn{}, cluster, name); err != nil {
				return err
			}
			if err := absent(ctx, s.hub, &kudo.Instance{}, cluster, name); err != nil {
				return err
			}
			if err := absent(ctx, s.clusters[cluster], &kudo.Instance{}, installNamespace, name); err != nil {
				return err
			}
			return s.nothingOf(ctx, cluster, name)
		},
	}
}

// nothingOf returns an error that names a remaining object of an Instance of that name on a cluster.
func (s *stage) nothingOf(ctx context.Context, cluster, name string) error {
	for _, list := range []client.ObjectList{
		&appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &batchv1.JobList{}, &corev1.PodList{}, &corev1.ServiceList{},
		&corev1.ConfigMapList{}, &policyv1.PodDisruptionBudgetList{}, &corev1.PersistentVolumeClaimList{},
	} {
		if err := s.clusters[cluster].List(ctx, list, client.MatchingLabels{kudo.LabelInstance: name}); err != nil {
			return err
		}
		if n := meta.LenList(list); n > 0 {
			return fmt.Errorf("%d objects remain in a %T", n, list)
		}
	}
	versions := &kudo.OperatorVersionList{}
	if err := s.clusters[cluster].List(ctx, versions, client.InNamespace(installNamespace)); err != nil {
		return err
	}
	for _, version := range versions.Items {
		if version.OperatorName() == name {
			return fmt.Errorf("OperatorVersion %s remains", version.Name)
		}
	}
	return nil
}

// cleanedUp promises that the cleanup plan was executed, according to the managed cluster's events.
func cleanedUp(cluster, name string) promise {
	return promise{
		says: fmt.Sprintf("plan %q of %s on %s was completed before", kudo.CleanupPlan, name, cluster),
		kept: func(ctx context.Context, s *stage) error {
			events := &corev1.EventList{}
			if err := s.clusters[cluster].List(ctx, events, client.InNamespace(installNamespace)); err != nil {
				return err
			}
			for _, e := range events.Items {
				if e.InvolvedObject.Name == name && e.Reason == "PlanComplete" && strings.Contains(e.Message, `"`+kudo.CleanupPlan+`"`) {
					return nil
				}
			}
			return fmt.Errorf("none of %d events reports it", len(events.Items))
		},
	}
}

// absent returns an error if the object exists.
func absent(ctx context.Context, c client.Client, o client.Object, namespace, name string) error {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("%T %s/%s still exists", o, namespace, name)
	}
}
