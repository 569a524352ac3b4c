package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
)

// glanceOf is what is seen of the add-ons on these clusters.
func glanceOf(clusters map[string]sampleCluster) glance {
	fleet := glance{}
	for name, view := range clusters {
		fleet[name] = map[string]glimpse{}
		for _, addOn := range view.addOns {
			fleet[name][addOn.Name] = glimpseOf(addOn)
		}
	}
	return fleet
}

func TestFleet(t *testing.T) {
	healthy := func() sampleCluster {
		return defined("kafka:", "zookeeper:").with("kafka", works).with("zookeeper", works)
	}
	small := glanceOf(map[string]sampleCluster{
		"cluster1": healthy(), "cluster2": healthy(), "cluster3": defined("kafka: zookeeper").with("kafka", works).judged(),
		"cluster4": defined("kafka: graphs?").with("kafka", works).with("zookeeper", fails).judged(),
		"cluster5": healthy().with("kafka", outOfTouch).with("zookeeper"), "cluster6": healthy().deleting("kafka"), "cluster7": defined(),
	})
	wide := map[string]sampleCluster{}
	for i := range 1000 {
		view := defined()
		for k := range 30 {
			available := works
			if i%100 == 7 && k == i/100 || i == 500 && k > 3 {
				available = fails
			}
			if i >= 900 && k == i%30 {
				continue
			}
			view = view.with(fmt.Sprintf("addon-%02d", k), available)
		}
		wide[fmt.Sprintf("cluster-%04d", i)] = view
	}
	for name, sum := range map[string]fleetSum{
		"fleet": small.sum(), "fleet-healthy": glanceOf(map[string]sampleCluster{"cluster1": healthy()}).sum(),
		"fleet-empty": glanceOf(map[string]sampleCluster{"cluster1": defined()}).sum(), "fleet-large": glanceOf(wide).sum(),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, sum.text(false)) })
	}
	golden(t, "fleet-wide", small.sum().text(true))
	golden(t, "data-fleet", printed(t, "yaml", shown{data: small.sum()}))
}

func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 27: "AB", 51: "AZ", 52: "BA", 701: "ZZ", 702: "AAA"} {
		if got := letters(i); got != want {
			t.Errorf("%d is %s, want %s", i, got, want)
		}
	}
}

func TestGet(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	view := defined("kafka: zookeeper graphs?", "zookeeper:", "shop: graphs?").plans("kafka").
		with("kafka", works).with("zookeeper", fails).with("shop", works).with("silent").with("held", held).with("bad", works, badParameters).
		with("away", outOfTouch).with("going", works).deleting("going").judged()
	definition := view.definitions["kafka"]
	definition.object.Spec.SupportedConfigs = []upstream.ConfigMeta{{
		ConfigGroupResource: upstream.ConfigGroupResource{Group: addon.GroupKudo, Resource: addon.ResourceOperatorVersions},
		DefaultConfig:       &upstream.ConfigReferent{Namespace: "addon-packages", Name: "kafka-3.9.0-1.0.0"},
	}}
	var list addOnList
	for _, name := range view.installed() {
		addOn := view.addOns[name]
		addOn.CreationTimestamp = metav1.NewTime(now.Add(-90 * time.Minute))
		list.AddOns = append(list.AddOns, itemOf(addOn, view.definitions[name]))
	}
	golden(t, "get", list.text(now))
	golden(t, "data-get", printed(t, "yaml", shown{data: list})+"---\n"+printed(t, "name", shown{names: list.names()}))
	if text := (addOnList{}).text(now); text != "No add-on is enabled.\n" {
		t.Error(text)
	}
}

func TestListsAreReadWhateverTheirOrder(t *testing.T) {
	for name, list := range map[string]string{
		"as the API server writes them": `{"apiVersion":"v1","items":[{"metadata":{"namespace":"c1","name":"kafka","managedFields":[{"fieldsV1":{"f:x":{}}}]}},` +
			`{"metadata":{"namespace":"c2","name":"shop"}}],"kind":"List","metadata":{"continue":"more"}}`,
		"the other way round": `{"metadata":{"continue":"more"},"extra":[{"a":[1]}],"items":[{"metadata":{"name":"kafka","namespace":"c1"}},{"metadata":{"name":"shop","namespace":"c2"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			next, err := decodePage(strings.NewReader(list), func(s *summary) { seen = append(seen, s.addOn().Namespace+"/"+s.addOn().Name) })
			if err != nil || next != "more" || strings.Join(seen, " ") != "c1/kafka c2/shop" {
				t.Errorf("got %q, %q, %v", seen, next, err)
			}
			for cut := range len(list) {
				if _, err := decodePage(strings.NewReader(list[:cut]), func(*summary) {}); err == nil {
					t.Fatalf("nothing is wrong with %q", list[:cut])
				}
			}
		})
	}
	for _, list := range []string{`{"items":null}`, `{"items":[]}`, `{}`} {
		if next, err := decodePage(strings.NewReader(list), func(*summary) { t.Error("an item") }); next != "" || err != nil {
			t.Errorf("%s: got %q, %v", list, next, err)
		}
	}
}
