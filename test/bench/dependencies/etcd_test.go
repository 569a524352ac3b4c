package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// inEtcd returns an add-on of a cluster as the API server stores it.
func inEtcd(namespace, uid string) []stored {
	return []stored{{
		Key:   append(addOnsKey(namespace), "addon-000"...),
		Value: []byte(`{"kind":"ManagedClusterAddOn","metadata":{"name":"addon-000","namespace":"` + namespace + `","uid":"` + uid + `"}}` + "\n"),
	}}
}

func TestCopiesBelongToTheOtherCluster(t *testing.T) {
	copies, err := copyAddOns(inEtcd("cluster-00000", "u-1"), "cluster-00000", "cluster-00007")
	if err != nil {
		t.Fatal(err)
	}
	if key, want := string(copies[0].Key), "/registry/addon.open-cluster-management.io/managedclusteraddons/cluster-00007/addon-000"; key != want {
		t.Errorf("the key is %s, want %s", key, want)
	}
	var known struct {
		Kind     string
		Metadata struct{ Name, Namespace, UID string }
	}
	if err := json.Unmarshal(copies[0].Value, &known); err != nil {
		t.Fatal(err)
	}
	if known.Kind != "ManagedClusterAddOn" || known.Metadata.Name != "addon-000" || known.Metadata.Namespace != "cluster-00007" {
		t.Errorf("the copy is %s", copies[0].Value)
	}
	if known.Metadata.UID == "" || known.Metadata.UID == "u-1" {
		t.Errorf("the copy has uid %q", known.Metadata.UID)
	}
}

func TestOnlyAddOnsOfTheClusterAreCopied(t *testing.T) {
	for name, addOns := range map[string][]stored{
		"another cluster": inEtcd("cluster-00001", "u-1"),
		"no uid":          inEtcd("cluster-00000", ""),
		"no object":       {{Key: []byte("k"), Value: []byte("k8s\x00")}},
	} {
		if copies, err := copyAddOns(addOns, "cluster-00000", "cluster-00007"); err == nil {
			t.Errorf("%s: no error, but %d copies", name, len(copies))
		}
	}
}

func TestScenariosAreChosenByName(t *testing.T) {
	s := settings{fleet: fleet{clusters: 1, addOns: smallestFleet}, pairs: 1, flips: 1, rest: 1, scenarios: "rest,frobnicate"}
	s.limits.Concurrency = 1
	if err := s.Check(); err == nil || !strings.Contains(err.Error(), `-scenarios has "frobnicate"`) {
		t.Errorf("the error is %v", err)
	}
	s.scenarios = "restart,rest"
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	var known []string
	for name := range (&bench{settings: s}).scenarios() {
		known = append(known, name)
	}
	slices.Sort(known)
	if want := slices.Sorted(slices.Values(scenarioNames())); !slices.Equal(known, want) {
		t.Errorf("the scenarios are %v, and the report has %v", known, want)
	}
}
