// Package sensitive identifies, checks and masks the values of sensitive parameters. It is pure and touches no cluster.
//
// A value never leaves the managed cluster. What leaves it is a keyed digest (HMAC), whose key is a secret of that cluster: without the key, a
// guessed value cannot be compared with it.
package sensitive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// KeyBytes is the number of random bytes of a Key.
const KeyBytes = 32

// Key is the key of digests.
type Key struct {
	// ID identifies the key, and reveals nothing about it.
	ID     string
	secret []byte
}

// NewKey returns the key with these random bytes. An error means that they are too few.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < KeyBytes {
		return Key{}, fmt.Errorf("the key of digests has %d bytes, and must have at least %d", len(secret), KeyBytes)
	}
	key := Key{secret: slices.Clone(secret)}
	key.ID = hex.EncodeToString(key.mac("id"))[:16]
	return key, nil
}

// Identify returns the reference with the digest of its value. Equal values of other Instances or parameters have other digests. namespace
// and instance are those on the managed cluster.
func (k Key) Identify(namespace, instance string, from kudo.ParameterFrom, value string) kudo.StartedParameterFrom {
	return kudo.StartedParameterFrom{
		ParameterFrom: from, DigestKey: k.ID, Digest: hex.EncodeToString(k.mac("value", namespace, instance, from.Name, value)),
	}
}

// Sum returns a short digest of parts, which hold values or not.
func (k Key) Sum(parts ...string) string {
	return hex.EncodeToString(k.mac(append([]string{"sum"}, parts...)...))[:sumDigits]
}

// sumDigits is the length of a sum: it distinguishes the few states of one thing.
const sumDigits = 16

// mac returns the authentication code of parts, none of which can be mistaken for another.
func (k Key) mac(parts ...string) []byte {
	mac := hmac.New(sha256.New, k.secret)
	for _, part := range parts {
		_, _ = fmt.Fprintf(mac, "%d:%s", len(part), part) // never fails
	}
	return mac.Sum(nil)
}

// ID identifies a value in a Secret of values: it is a valid key there.
func ID(from kudo.StartedParameterFrom) string { return from.DigestKey + "." + from.Digest }

// Values are values of sensitive parameters by their ID.
type Values map[string]string

// Of returns the values of references by the names of their parameters, and the parameters whose values are unknown.
func (v Values) Of(from []kudo.StartedParameterFrom) (values map[string]string, unknown []string) {
	for _, f := range from {
		value, known := v[ID(f)]
		if !known {
			unknown = append(unknown, f.Name)
			continue
		}
		if values == nil {
			values = make(map[string]string, len(from))
		}
		values[f.Name] = value
	}
	return values, unknown
}

// Only returns the values of references.
func (v Values) Only(from ...[]kudo.StartedParameterFrom) Values {
	kept := Values{}
	for _, f := range slices.Concat(from...) {
		if value, known := v[ID(f)]; known {
			kept[ID(f)] = value
		}
	}
	return kept
}

// With returns these values and those of another set.
func (v Values) With(other Values) Values {
	all := make(Values, len(v)+len(other))
	maps.Copy(all, v)
	maps.Copy(all, other)
	return all
}

// The limits of values.
const (
	// MinBytes is the minimum length of a value: parts of any message would look like a shorter one, so that it cannot be masked.
	MinBytes = 4
	// MaxBytes limits all values of one execution together: a Secret holds those of two.
	MaxBytes = 256 << 10
)

// Problem returns why text cannot be the value of a sensitive parameter; empty if it can. It does not quote the value.
func Problem(value []byte) string {
	switch {
	case len(strings.TrimSpace(string(value))) < MinBytes:
		return fmt.Sprintf("its value is shorter than %d bytes and could not be masked in messages: use a longer one", MinBytes)
	case !utf8.Valid(value):
		return "its value is not text in UTF-8: encode it, for example in base64"
	case len(value) > MaxBytes:
		return fmt.Sprintf("its value has %d bytes, more than %d", len(value), MaxBytes)
	}
	return ""
}

// Rebase returns the references of an execution as they have to be recorded, without a change of any value: with digests by the current key
// if they have other ones, and with the current place of an unchanged value. It returns nil if they are recorded like this already. values
// include those of the execution, and of desired, which are the references of the spec with current values; identify computes digests by the
// current key.
//
// The value of an execution may be lost, with a digest that a lost key has made. Then the current value of its reference replaces it.
func Rebase(
	started, desired []kudo.StartedParameterFrom, values Values, key string,
	identify func(from kudo.ParameterFrom, value string) kudo.StartedParameterFrom,
) []kudo.StartedParameterFrom {
	current := make(map[string]kudo.StartedParameterFrom, len(desired))
	for _, d := range desired {
		current[d.Name] = d
	}
	rebased := make([]kudo.StartedParameterFrom, len(started))
	for i, s := range started {
		rebased[i] = s
		value, known := values[ID(s)]
		now, resolved := current[s.Name]
		resolved = resolved && now.Digest != ""
		if known && s.DigestKey != key {
			rebased[i] = identify(s.ParameterFrom, value)
		}
		if resolved && (rebased[i].Digest == now.Digest && rebased[i].DigestKey == now.DigestKey || !known) {
			rebased[i] = now
		}
	}
	if slices.Equal(rebased, started) {
		return nil
	}
	return rebased
}
