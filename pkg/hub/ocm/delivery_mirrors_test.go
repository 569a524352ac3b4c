package ocm

import (
	"math/rand/v2"
	"strings"
	"testing"

	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/image"
)

// TestMirrorsApplyAsInOCM compares random registries and images with the function that OCM's add-ons use.
func TestMirrorsApplyAsInOCM(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	name := func(least int) string {
		parts := make([]string, least+random.IntN(4-least))
		for i := range parts {
			parts[i] = []string{"a", "ab", "b", "a.b:1"}[random.IntN(4)]
		}
		return strings.Join(parts, "/")
	}
	for range 20000 {
		var registries []kudo.ImageRegistry
		var ofOCM []upstreamv1beta1.ImageMirror
		for range random.IntN(4) {
			source, mirror := name(0), name(1)
			registries = append(registries, kudo.ImageRegistry{Source: source, Mirror: mirror})
			ofOCM = append(ofOCM, upstreamv1beta1.ImageMirror{Source: source, Mirror: mirror})
		}
		of := name(1)
		want, err := overrideImage(of, &clusterv1.ManagedCluster{}, ofOCM)
		if got := image.Mirrored(registries, of); err != nil || got != want {
			t.Fatalf("%v of %s: got %s, OCM has %s (%v)", registries, of, got, want, err)
		}
	}
}
