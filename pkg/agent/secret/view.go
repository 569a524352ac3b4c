package secret

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/plan"
	"github.com/tandem-addons/tandem/pkg/core/rights"
	"github.com/tandem-addons/tandem/pkg/core/sensitive"
	"github.com/tandem-addons/tandem/pkg/text"
)

// A Secret that cannot be read is read again after retryInterval, and one whose former value is still in use after refusedInterval.
const (
	retryInterval   = 10 * time.Second
	refusedInterval = time.Minute
)

// View is what one pass sees of the sensitive parameters of an Instance. The zero value serves Instances without any.
type View struct {
	plan.Sensitive

	// Values are those of the last execution, as far as they are known, and the current ones.
	Values sensitive.Values

	// Key is the key of digests.
	Key sensitive.Key

	// Record is what objects hold of the values; nil if there are none.
	Record *Record

	// Refused is why some Secrets are not read; empty if all may be. Parameters that have values from them keep these.
	Refused string

	// After is when to look again in any case; zero means never.
	After time.Duration
}

// View reads the current values that an Instance refers to, as far as the reader may, and compares them with those of its last execution. It
// restores a lost copy, and drops values that no execution uses any more.
func (s *Store) View(ctx context.Context, i *kudo.Instance, reader Reader) (View, error) {
	if i.IsRemoved() { // its copy is deleted
		return View{}, nil
	}
	key, err := s.digestKey(ctx)
	if err != nil {
		return View{}, err
	}
	copied, err := s.copiedValues(ctx, i)
	if err != nil {
		return View{}, err
	}
	v := newView(i, key, s.references(ctx, i, reader, copied), copied)
	v.Record = s.record(i)
	if i.Status.Execution == nil {
		return v, nil
	}
	return v, s.Keep(ctx, i, usedValues(i, v.Values, copied))
}

// shown is the number of parameters that a message names.
const shown = 8

// reference is a reference of the spec.
type reference struct {
	kudo.ParameterFrom
	secret types.NamespacedName
	// refused is why the Secret is not read, and passing is true if that may end without another change; kept is the value of the last
	// execution, which is then used.
	refused error
	passing bool
	kept    []byte
	// stored is the Secret, if it is read, and problem why it cannot be.
	stored  *corev1.Secret
	problem string
}

// references reads the references of the spec, and watches the Secrets that are read for them.
func (s *Store) references(ctx context.Context, i *kudo.Instance, reader Reader, copied sensitive.Values) []reference {
	references := make([]reference, len(i.Spec.ParametersFrom))
	read := map[types.NamespacedName]bool{}
	for at, f := range i.Spec.ParametersFrom {
		r := reference{ParameterFrom: f, secret: types.NamespacedName{Namespace: i.Namespace, Name: f.SecretKeyRef.Name}}
		if r.refused = s.access.forbids(r.secret); r.refused == nil {
			r.kept = keptValue(i, f, copied)
			r.refused, r.passing = s.access.refuses(ctx, reader, r.secret)
		}
		if r.refused == nil {
			read[r.secret] = true
		}
		references[at] = r
	}
	s.follow(client.ObjectKeyFromObject(i), read)
	for at := range references {
		if r := &references[at]; r.refused == nil {
			r.stored, r.problem, r.passing = s.readSecret(ctx, r.secret, r.SecretKeyRef.Key)
		}
	}
	return references
}

// keptValue returns the copied value that the last execution has from the same place; nil if there is none.
func keptValue(i *kudo.Instance, from kudo.ParameterFrom, copied sensitive.Values) []byte {
	if i.Status.Execution == nil {
		return nil
	}
	for _, started := range i.Status.Execution.ParametersFrom {
		if value, known := copied[sensitive.ID(started)]; known && started.ParameterFrom == from {
			return []byte(value)
		}
	}
	return nil
}

// newView returns a view with what was read for the references of the spec, and with the copied values.
func newView(i *kudo.Instance, key sensitive.Key, references []reference, copied sensitive.Values) View {
	v := View{Values: sensitive.Values{}, Key: key}
	v.From = plan.WithoutDigests(i.Spec.ParametersFrom)
	var problems, refusals []string
	total := 0
	for at, r := range references {
		value, problem, refused := r.value()
		if r.passing {
			v.After = retryInterval
		}
		if refused != nil {
			refusals = append(refusals, fmt.Sprintf("parameter %q: %v", r.Name, refused))
		}
		if total += len(value); problem == "" && total > sensitive.MaxBytes {
			problem = fmt.Sprintf("all sensitive values together have more than %d bytes: shorten them", sensitive.MaxBytes)
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("parameter %q: %s", r.Name, problem))
			continue
		}
		v.From[at] = key.Identify(i.Namespace, i.Name, r.ParameterFrom, string(value))
		v.Values[sensitive.ID(v.From[at])] = string(value)
	}
	v.Unresolved, v.Refused = joinProblems(problems), joinProblems(refusals)
	if v.Unresolved == "" && v.Refused != "" && v.After > 0 {
		v.After = refusedInterval
	}
	v.Values = v.Values.With(copied)
	if i.Status.Execution != nil {
		v.compare(i, key)
	}
	return v
}

// compare compares the current values with those of the last execution.
func (v *View) compare(i *kudo.Instance, key sensitive.Key) {
	last := i.Status.Execution.ParametersFrom
	v.Rebased = sensitive.Rebase(last, v.From, v.Values, key.ID, func(from kudo.ParameterFrom, value string) kudo.StartedParameterFrom {
		return key.Identify(i.Namespace, i.Name, from, value)
	})
	if former := i.Status.Former; former != nil {
		if _, unknown := v.Values.Of(former.ParametersFrom); len(unknown) > 0 {
			v.FormerLost = fmt.Sprintf("the copies of its values of sensitive parameters %s are lost", text.List(unknown, shown))
		}
	}
	if _, unknown := v.Values.Of(last); len(unknown) > 0 && v.Rebased == nil {
		v.Lost = fmt.Sprintf("the copies of the values of sensitive parameters %s are lost: "+
			"restore their Secrets in namespace %q of the managed cluster", text.List(unknown, shown), i.Namespace)
	}
}

func joinProblems(problems []string) string {
	return strings.Join(text.Limit(problems, shown, "more"), "; ")
}

// value returns the value of a reference, the problem with it, and why its Secret is not read, in which case the value is the kept one.
func (r reference) value() (value []byte, problem string, refused error) {
	if r.problem != "" {
		return nil, r.problem, nil
	}
	if refused = r.refused; refused == nil {
		refused = rights.CheckSecretType(r.stored)
	}
	if refused != nil {
		if r.kept == nil {
			problem = refused.Error()
		}
		return r.kept, problem, refused
	}
	value, exists := r.stored.Data[r.SecretKeyRef.Key]
	switch {
	case !exists:
		problem = fmt.Sprintf("Secret %s has no key %q: add it", r.secret, r.SecretKeyRef.Key)
	case sensitive.Problem(value) != "":
		problem = fmt.Sprintf("Secret %s, key %q: %s", r.secret, r.SecretKeyRef.Key, sensitive.Problem(value))
	}
	return value, problem, nil
}

// usedValues returns the values that the last execution uses, and those of what it may return to, which the copy holds: all of them, and no others once it
// has ended.
func usedValues(i *kudo.Instance, values, copied sensitive.Values) sensitive.Values {
	last := i.Status.Execution
	used := values.Only(last.ParametersFrom)
	if former := i.Status.Former; former != nil {
		used = used.With(values.Only(former.ParametersFrom))
	}
	if i.Status.PlanStatus[last.Plan].Status.IsRunning() {
		used = used.With(copied)
	}
	return used
}
