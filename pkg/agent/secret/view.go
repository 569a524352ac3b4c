package secret

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/plan"
	"github.com/tandem-addons/tandem/pkg/sensitive"
	"github.com/tandem-addons/tandem/pkg/text"
)

// patience is when a Secret that cannot be read is read again.
const patience = 10 * time.Second

// View is what one pass sees of the sensitive parameters of an Instance. The zero value serves Instances without any.
type View struct {
	plan.Sensitive

	// Values are those of the last execution, as far as they are known, and the current ones.
	Values sensitive.Values

	// Record is what objects hold of the values; nil if there are none.
	Record *Record

	// After is when to look again in any case; zero means never.
	After time.Duration
}

// View reads the current values that an Instance refers to, and compares them with those of its last execution. It restores a lost copy,
// and drops values that no execution uses any more.
func (s *Store) View(ctx context.Context, i *kudo.Instance) (View, error) {
	if i.Removed() { // its copy is deleted
		return View{}, nil
	}
	s.Follow(i)
	key, err := s.digestKey(ctx)
	if err != nil {
		return View{}, err
	}
	copied, err := s.copied(ctx, i)
	if err != nil {
		return View{}, err
	}
	v := s.current(ctx, i, key)
	v.Values = v.Values.With(copied)
	v.Record = s.record(i)
	last := i.Status.Execution
	if last == nil {
		return v, nil
	}
	identify := func(from kudo.ParameterFrom, value string) kudo.StartedParameterFrom {
		return key.Identify(i.Namespace, i.Name, from, value)
	}
	v.Rebased = sensitive.Rebase(last.ParametersFrom, v.From, v.Values, key.ID, identify)
	if _, unknown := v.Values.Of(last.ParametersFrom); len(unknown) > 0 && v.Rebased == nil {
		v.Lost = fmt.Sprintf("the copies of the values of sensitive parameters %s are lost: "+
			"restore their Secrets in namespace %q of the managed cluster", text.List(unknown, shown), i.Namespace)
	}
	return v, s.tidy(ctx, i, v, copied)
}

// shown is the number of parameters that a message names.
const shown = 8

// current returns the references of the spec with the current values.
func (s *Store) current(ctx context.Context, i *kudo.Instance, key sensitive.Key) View {
	v := View{Values: sensitive.Values{}}
	v.From = plan.Undigested(i.Spec.ParametersFrom)
	var problems []string
	total := 0
	for at, f := range i.Spec.ParametersFrom {
		secret := types.NamespacedName{Namespace: i.Namespace, Name: f.SecretKeyRef.Name}
		data, problem, passing := s.read(ctx, secret, f.SecretKeyRef.Key)
		if passing {
			v.After = patience
		}
		value, exists := data[f.SecretKeyRef.Key]
		switch {
		case problem != "":
		case !exists:
			problem = fmt.Sprintf("Secret %s has no key %q: add it", secret, f.SecretKeyRef.Key)
		case sensitive.Problem(value) != "":
			problem = fmt.Sprintf("Secret %s, key %q: %s", secret, f.SecretKeyRef.Key, sensitive.Problem(value))
		}
		if total += len(value); problem == "" && total > sensitive.MaxBytes {
			problem = fmt.Sprintf("all sensitive values together have more than %d bytes: shorten them", sensitive.MaxBytes)
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("parameter %q: %s", f.Name, problem))
			continue
		}
		v.From[at] = key.Identify(i.Namespace, i.Name, f, string(value))
		v.Values[sensitive.ID(v.From[at])] = string(value)
	}
	v.Unresolved = strings.Join(text.Limit(problems, shown, "more"), "; ")
	return v
}

// tidy makes the copy hold the values that the last execution uses: all of them, and no others once it has ended.
func (s *Store) tidy(ctx context.Context, i *kudo.Instance, v View, copied sensitive.Values) error {
	last := i.Status.Execution
	used := v.Values.Only(last.ParametersFrom)
	if i.Status.PlanStatus[last.Plan].Status.Running() {
		used = used.With(copied)
	}
	return s.Keep(ctx, i, used)
}
