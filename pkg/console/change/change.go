package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/preview"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Change is a change of an Instance, or of the add-on that determines it, on one cluster.
type Change struct {
	preview.Change
	Cluster string
	// Step is the write of an add-on that determines the Instance.
	Step *Step
	// Object is the object to delete on the hub; empty if there is none.
	Object string
	// Warnings holds the warnings of admission and the affected dependents. Remarks are warnings that the hub does not return on a write.
	Warnings, Remarks []string
	// Unknown is why the effects on the Instance are unknown; empty if they are known.
	Unknown string
}

// Patch is how Write changes an existing Instance: Request or RequestUnchanged.
type Patch func(ctx context.Context, c client.Client, instance *kudo.Instance, wanted kudo.InstanceSpec) error

// Write writes the change and returns what was written, even if it fails. It updates After with the written Instance.
func (c *Change) Write(ctx context.Context, hub client.Client, patch Patch) ([]Written, error) {
	if c.Step != nil {
		return c.Step.Write(ctx, hub)
	}
	did := "configured"
	switch {
	case c.Before == nil:
		did = "created"
		if err := hub.Create(ctx, c.After); err != nil {
			return nil, fmt.Errorf("creating Instance %q of cluster %q: %w", c.After.Name, c.Cluster, err)
		}
	case SameSpec(c.Before, c.After):
		did = "unchanged"
	default:
		current := c.Before.DeepCopy()
		if err := patch(ctx, hub, current, c.After.Spec); err != nil {
			return nil, err
		}
		c.After = current
	}
	return []Written{{kudo.GroupVersion.Group, "Instance", c.After.Name, c.Cluster, did}}, nil
}

// Check asks the hub for a dry run of the changes of one cluster, in their order, and returns the error with which it would refuse one of them.
func Check(ctx context.Context, hub client.Client, changes []Change) error {
	dry := client.NewDryRunClient(hub)
	for _, c := range changes {
		if _, err := c.copied().Write(ctx, dry, Request); err != nil && !lacksDryRun(err) {
			return err
		}
	}
	return nil
}

// CheckParts is Check for changes that write several objects, so that a refusal leaves none of them behind, and for those that get a warning if the hub
// does not refuse them. The hub checks any other single write itself.
func CheckParts(ctx context.Context, hub client.Client, changes []Change) error {
	writes, isReserved := 0, false
	for _, c := range changes {
		if c.Step != nil {
			writes += len(c.Step.Objects())
			isReserved = isReserved || len(reservedWarnings(c.Step.Wanted.Spec.InstallNamespace)) > 0
		}
	}
	if writes < 2 && !isReserved {
		return nil
	}
	return Check(ctx, hub, changes)
}

// IsForbidden reports whether the hub refuses a write because of the user's permissions, and not because of the object.
func IsForbidden(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " is forbidden: User ")
}

// lacksDryRun reports whether a webhook of the hub does not judge dry runs.
func lacksDryRun(err error) bool {
	return apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// copied returns a copy whose objects can be written without changing those of c.
func (c Change) copied() *Change {
	c.After = c.After.DeepCopy()
	if c.Step != nil {
		step := *c.Step
		step.Wanted, step.Config = step.Wanted.DeepCopy(), step.Config.DeepCopy()
		c.Step = &step
	}
	return &c
}

// SameSpec reports whether two Instances have the same spec.
func SameSpec(a, b *kudo.Instance) bool {
	return referenceOf(a) == referenceOf(b) && install.SameValues(a.Spec, b.Spec)
}

func referenceOf(i *kudo.Instance) corev1.ObjectReference {
	return corev1.ObjectReference{Namespace: i.Spec.OperatorVersion.Namespace, Name: i.Spec.OperatorVersion.Name}
}

// Refusals holds the errors of clusters that are not changed, by cluster.
type Refusals map[string]error

// Err returns an error that lists each reason once, with the other clusters that have the same one apart from the name.
func (r Refusals) Err() error {
	var problems []error
	for _, group := range r.groups() {
		problem := r[group.Clusters[0]]
		if others := group.Clusters[1:]; len(others) > 0 {
			problem = fmt.Errorf("%w (also on %s)", problem, text.List(others, maxListed))
		}
		problems = append(problems, problem)
	}
	return errors.Join(problems...)
}

// groups returns the reasons with their clusters.
func (r Refusals) groups() []Refusal {
	groups := []Refusal{}
	for _, cluster := range slices.Sorted(maps.Keys(r)) {
		message := r[cluster].Error()
		same := func(r Refusal) bool { return strings.ReplaceAll(r.Message, r.Clusters[0], cluster) == message }
		if i := slices.IndexFunc(groups, same); i >= 0 {
			groups[i].Clusters = append(groups[i].Clusters, cluster)
			continue
		}
		groups = append(groups, Refusal{Clusters: []string{cluster}, Message: message})
	}
	return groups
}

// Refusal is the reason why clusters are not changed.
type Refusal struct {
	Clusters []string `json:"clusters"`
	// Message is the message for the first cluster; the other clusters have the same message apart from the name.
	Message string `json:"message"`
}
