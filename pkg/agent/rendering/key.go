package rendering

import (
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The labels of Secrets that hold renderings.
const (
	// labelInstance has the uid on the hub of the Instance.
	labelInstance = "kudo.dev/rendering-of"
	// labelTask has a hash of the name of the task.
	labelTask = "kudo.dev/rendering-task"
	// labelRendering identifies the rendering among those of the Instance.
	labelRendering = "kudo.dev/rendering"
)

// namePrefix begins the names of the Secrets.
const namePrefix = "tandem-rendering-"

// Key identifies an execution of a task.
type Key struct {
	// Instance is the uid of the Instance on the hub, which outlives the mirror.
	Instance  types.UID
	Task      string
	Execution types.UID
}

// id identifies one rendering of the execution: an execution that was interrupted before it recorded the digest may have several.
func (k Key) id(digest string) string {
	return hash(k.Task, string(k.Execution), digest)
}

// name returns the name of a Secret: that of the index for part 0.
func (k Key) name(digest string, part int) string {
	name := namePrefix + string(k.Instance) + "-" + k.id(digest)
	if part > 0 {
		name += fmt.Sprintf("-%d", part)
	}
	return name
}

func (k Key) labels(digest string) map[string]string {
	return map[string]string{
		labelInstance: string(k.Instance), labelTask: hash(k.Task), labelRendering: k.id(digest), "app.kubernetes.io/part-of": "tandem",
	}
}

// others selects the Secrets of all renderings of the task but one.
func (k Key) others(digest string) (client.MatchingLabelsSelector, error) {
	selector, err := selectorOf(k.Instance)
	if err != nil {
		return selector, err
	}
	task, err := labels.NewRequirement(labelTask, selection.Equals, []string{hash(k.Task)})
	if err != nil {
		return selector, err
	}
	other, err := labels.NewRequirement(labelRendering, selection.NotEquals, []string{k.id(digest)})
	if err != nil {
		return selector, err
	}
	return client.MatchingLabelsSelector{Selector: selector.Add(*task, *other)}, nil
}

// selectorOf selects the Secrets of an Instance. An invalid uid is an error, and cannot select those of another one.
func selectorOf(instance types.UID) (client.MatchingLabelsSelector, error) {
	of, err := labels.NewRequirement(labelInstance, selection.Equals, []string{string(instance)})
	if err != nil {
		return client.MatchingLabelsSelector{}, fmt.Errorf("the uid %q of an Instance is no value of a label: %w", instance, err)
	}
	return client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*of)}, nil
}

// hash returns the beginning of a digest of texts that have no zero byte.
func hash(texts ...string) string {
	sum := sha256.New()
	for _, text := range texts {
		fmt.Fprintf(sum, "%s\x00", text)
	}
	return fmt.Sprintf("%.10x", sum.Sum(nil))
}
