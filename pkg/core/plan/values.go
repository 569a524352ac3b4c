package plan

import (
	"slices"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
)

// Values are what an Instance sets: parameters to values and, if they are sensitive, to references, and the mirrors of images. The value of a
// reference is represented by its digest, which only the agent knows.
type Values struct {
	Given      map[string]string
	From       []kudo.StartedParameterFrom
	Registries []kudo.ImageRegistry
}

// ValuesOf returns the values in a spec, without digests.
func ValuesOf(spec kudo.InstanceSpec) Values {
	return Values{Given: spec.Parameters, From: WithoutDigests(spec.ParametersFrom), Registries: spec.ImageRegistries}
}

// WithoutDigests returns references without digests.
func WithoutDigests(from []kudo.ParameterFrom) []kudo.StartedParameterFrom {
	var undigested []kudo.StartedParameterFrom
	for _, f := range from {
		undigested = append(undigested, kudo.StartedParameterFrom{ParameterFrom: f})
	}
	return undigested
}

// at returns the position of a parameter's reference; negative if there is none.
func at(from []kudo.StartedParameterFrom, name string) int {
	return slices.IndexFunc(from, func(f kudo.StartedParameterFrom) bool { return f.Name == name })
}

// differs reports whether the effective value of the parameter changes. References differ if their values do, wherever these are stored. If
// a value is not known, they differ if they refer to another place. Digests with different keys do not differ: the agent replaces them.
func differs(p *kudo.Parameter, before, after Values) bool {
	if !p.IsSensitive() {
		return parameter.InForce(p, before.Given) != parameter.InForce(p, after.Given)
	}
	was, is := at(before.From, p.Name), at(after.From, p.Name)
	if was < 0 || is < 0 {
		return was >= 0 || is >= 0
	}
	a, b := before.From[was], after.From[is]
	switch {
	case a.Digest == "" || b.Digest == "":
		return a.SecretKeyRef != b.SecretKeyRef
	case a.DigestKey != b.DigestKey:
		return false
	default:
		return a.Digest != b.Digest
	}
}

// withFrom returns references in which the one of a parameter is as in other, or missing as there.
func withFrom(from, other []kudo.StartedParameterFrom, name string) []kudo.StartedParameterFrom {
	changed := slices.DeleteFunc(slices.Clone(from), func(f kudo.StartedParameterFrom) bool { return f.Name == name })
	if i := at(other, name); i >= 0 {
		changed = append(changed, other[i])
	}
	if len(changed) == 0 {
		return nil
	}
	return changed
}

// Sensitive is what the agent observes about the sensitive parameters of an Instance. It never contains a value.
type Sensitive struct {
	// From are the references of the spec, with digests of the current values; without a digest if a value cannot be read.
	From []kudo.StartedParameterFrom

	// Unresolved is why values of the spec cannot be read; empty if all can. Nothing starts until then.
	Unresolved string

	// Rebased are the references of the last execution as they have to be recorded, because their key or place has changed; nil if they are
	// recorded like this.
	Rebased []kudo.StartedParameterFrom

	// Lost is why the last execution cannot continue: the copies of its values are lost; empty if there are all. FormerLost is the same for what was
	// applied before another version.
	Lost, FormerLost string
}

// UnresolvedError reports that a plan cannot start because values of sensitive parameters cannot be read.
type UnresolvedError struct{ Plan, Reason string }

func (e *UnresolvedError) Error() string {
	return "plan " + e.Plan + " waits for the values of sensitive parameters: " + e.Reason
}
