package keyless

import (
	"fmt"
	"slices"

	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// The entries about identities, of a ConfigMap whose other entries are public keys.
const (
	RootEntry       = "trusted_root.json"
	IdentitiesEntry = "identities.yaml"
)

// ParseEntries returns what the entries of a ConfigMap trust, and what is wrong with entries, sorted. An invalid one counts as absent: the others still do.
func ParseEntries(entries map[string]string) (trust signature.Trust, problems []string) {
	for name, data := range entries {
		if name == RootEntry || name == IdentitiesEntry {
			continue
		}
		keys, err := signature.ParseKeys(name, []byte(data))
		if err != nil {
			problems = append(problems, err.Error())
		}
		trust.Keys = append(trust.Keys, keys...)
	}
	identities, err := parseIdentityEntries(entries)
	switch {
	case err != nil:
		problems = append(problems, err.Error())
	case identities != nil:
		trust.Identities = identities
	}
	slices.Sort(problems)
	return trust, problems
}

// parseIdentityEntries returns what verifies signatures by the identities of the entries; nil if there are none.
func parseIdentityEntries(entries map[string]string) (*Trust, error) {
	root, hasRoot := entries[RootEntry]
	identities, hasIdentities := entries[IdentitiesEntry]
	switch {
	case !hasRoot && !hasIdentities:
		return nil, nil
	case !hasRoot:
		return nil, fmt.Errorf("%s needs %s beside it, the trust root of Sigstore", IdentitiesEntry, RootEntry)
	case !hasIdentities:
		return nil, fmt.Errorf("%s needs %s beside it, the identities that may sign", RootEntry, IdentitiesEntry)
	}
	parsed, err := ParseRoot(RootEntry, []byte(root))
	if err != nil {
		return nil, err
	}
	listed, err := ParseIdentities(IdentitiesEntry, []byte(identities))
	if err != nil {
		return nil, err
	}
	return New(parsed, listed)
}
