package mirror

import (
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestTheMirrorIsChosenAmongObjectsThatClaimToBeIt(t *testing.T) {
	claim := func(namespace string, proof Proof) Candidate {
		i := copied()
		i.Namespace = namespace
		return Candidate{Instance: i, Proof: proof}
	}
	none, older, signed := Proof{}, Proof{Older: true}, Proof{Signed: true}
	for what, c := range map[string]struct {
		candidates []Candidate
		wanted     *kudo.Instance
		want       string // namespace; empty: none
	}{
		"none": {nil, started(), ""},
		"the signed one, whatever else there is": {
			[]Candidate{claim("a", none), claim("apps", none), claim("b", older), claim("z", signed)}, started(), "z"},
		"without a signed one, the one of an earlier release": {[]Candidate{claim("apps", none), claim("b", older)}, started(), "b"},
		"without a signed one, the one that was signed without its uid": {
			[]Candidate{claim("apps", none), claim("b", Proof{Former: true})}, started(), "b"},
		"of two of an earlier release, the one in the install namespace": {[]Candidate{claim("b", older), claim("apps", older)}, started(), "apps"},
		"without those, the one to correct":                              {[]Candidate{claim("a", none), claim("apps", none)}, started(), "apps"},
		"none of those in other namespaces":                              {[]Candidate{claim("a", none), claim("b", none)}, started(), ""},
		"none to correct, if the hub has no such Instance":               {[]Candidate{claim("apps", none)}, nil, ""},
		"the signed one, also if the hub has no such Instance":           {[]Candidate{claim("b", none), claim("apps", signed)}, nil, "apps"},
	} {
		got := ""
		if chosen := Choose(c.candidates, c.wanted); chosen.Instance != nil {
			got = chosen.Instance.Namespace
		}
		if got != c.want {
			t.Errorf("%s: want %q, got %q", what, c.want, got)
		}
	}
}
