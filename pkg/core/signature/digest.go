// Package signature signs OperatorVersions and verifies their signatures, in cosign's format with a pair of keys. It touches no cluster.
package signature

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// file is a template or a chart of an OperatorVersion.
type file struct {
	Name        string `json:"name"`
	Digest      string `json:"digest"`
	KubeVersion string `json:"kubeVersion,omitempty"`
}

// ContentDigest returns the digest that a signature covers, sha256:HEX: of the name of an OperatorVersion, of its spec, and of the digests of its
// templates and charts. It does not depend on which templates OperatorContents store, which the release that pushed it decides, nor on defaults that
// the API server adds. It is empty if the OperatorVersion cannot be encoded, which no signature covers. Readers of a file in OperatorContents compare it with its digest in the spec (content.Join).
func ContentDigest(version *kudo.OperatorVersion) string {
	spec := version.NamedSpec().DeepCopy()
	files := filesOf(spec)
	spec.Operator = corev1.ObjectReference{Name: spec.Operator.Name}
	spec.Templates, spec.Content = nil, nil
	dropDefaults(spec)
	encoded, err := canonical(map[string]any{"name": version.Name, "spec": spec, "files": files})
	if err != nil {
		return ""
	}
	return content.DigestOf(encoded)
}

// filesOf lists the templates and charts by name. A name that is both a template and a file of OperatorContents is listed twice.
func filesOf(spec *kudo.OperatorVersionSpec) []file {
	files := []file{}
	for name, text := range spec.Templates {
		files = append(files, file{Name: name, Digest: content.DigestOf([]byte(text))})
	}
	for _, stored := range spec.Content {
		files = append(files, file{Name: stored.File, Digest: stored.Digest, KubeVersion: stored.KubeVersion})
	}
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Digest, b.Digest), strings.Compare(a.KubeVersion, b.KubeVersion))
	})
	return files
}

// dropDefaults removes values that the CustomResourceDefinition adds where a package has none.
func dropDefaults(spec *kudo.OperatorVersionSpec) {
	for name, plan := range spec.Plans {
		plan.Strategy = withoutDefault(plan.Strategy, kudo.Serial)
		for i := range plan.Phases {
			plan.Phases[i].Strategy = withoutDefault(plan.Phases[i].Strategy, kudo.Serial)
		}
		spec.Plans[name] = plan
	}
	for i := range spec.Parameters {
		spec.Parameters[i].Type = withoutDefault(spec.Parameters[i].Type, kudo.StringType)
	}
}

func withoutDefault[T ~string](value, standard T) T {
	if value == standard {
		return ""
	}
	return value
}

// canonical returns a value as JSON in a form that does not depend on the order of fields. Nothing is dropped from it: that a field is set may mean
// something even if it is empty, such as permissions.
func canonical(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	var plain any
	if err == nil {
		err = json.Unmarshal(encoded, &plain)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(plain)
}
