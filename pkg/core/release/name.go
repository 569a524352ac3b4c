package release

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tandem-addons/tandem/pkg/core/record"
)

// Claim is the use of a release name by a Helm task of an Instance. All claims that are compared are of one install namespace.
type Claim struct {
	Instance, Task, Name string
	// Recorded is true if the chart was rendered with the name, and false if an execution is only going to.
	Recorded bool
	// Created is when the Instance was created.
	Created time.Time
}

// CollisionError reports that another writer in the namespace uses the name of a release.
type CollisionError struct {
	Claim     Claim
	Namespace string
	// User is who uses it, and Remedy what ends that.
	User, Remedy string
}

func (e *CollisionError) Error() string {
	return fmt.Sprintf("the release name %q is in use in namespace %q, by %s: %s, or set another releaseName in task %q of the package",
		e.Claim.Name, e.Namespace, e.User, e.Remedy, e.Claim.Task)
}

// FindCollision returns a *CollisionError if another task uses the name of a task that has not used it yet. Of two Instances that are about to use it,
// the older one does.
func FindCollision(own Claim, namespace string, others []Claim) error {
	if own.Recorded {
		return nil
	}
	for _, other := range others {
		switch {
		case other.Name != own.Name || other.Instance == own.Instance && other.Task == own.Task:
		case other.Instance == own.Instance:
			return &CollisionError{Claim: own, Namespace: namespace, User: fmt.Sprintf("task %q of the same Instance", other.Task), Remedy: "disable one of them"}
		case other.Recorded || other.isOlderThan(own):
			return &CollisionError{
				Claim: own, Namespace: namespace, User: fmt.Sprintf("task %q of Instance %q", other.Task, other.Instance),
				Remedy: "remove one of the Instances, install it in another namespace",
			}
		}
	}
	return nil
}

func (c Claim) isOlderThan(other Claim) bool {
	if !c.Created.Equal(other.Created) {
		return c.Created.Before(other.Created)
	}
	return c.Instance < other.Instance
}

// HelmLabels returns the labels of Helm's records of a release.
func HelmLabels(name string) map[string]string {
	return map[string]string{record.LabelOwner: record.Owner, record.LabelName: name}
}

// FindHelmRelease returns a *CollisionError if Helm has a release of that name in the namespace: its last record is not of one that was uninstalled.
// kind is the kind of the records.
func FindHelmRelease(own Claim, namespace, kind string, records []metav1.PartialObjectMetadata) error {
	last, revision := (*metav1.PartialObjectMetadata)(nil), -1
	for i := range records {
		if number, _ := strconv.Atoi(records[i].Labels[record.LabelVersion]); number > revision {
			last, revision = &records[i], number
		}
	}
	if last == nil || last.Labels[record.LabelStatus] == record.Uninstalled {
		return nil
	}
	return &CollisionError{
		Claim: own, Namespace: namespace, User: fmt.Sprintf("a release of Helm (%s %s)", kind, last.Name),
		Remedy: fmt.Sprintf("uninstall it with 'helm uninstall %s --namespace %s'", own.Name, namespace),
	}
}
