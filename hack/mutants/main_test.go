package main

import "testing"

// TestMutantsApply takes a second; the mutants' own tests take half an hour.
func TestMutantsApply(t *testing.T) {
	const root = "../.."
	mutants, err := load(root + "/test/faults/mutants")
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) == 0 {
		t.Fatal("no mutants")
	}
	for _, m := range mutants {
		if err := m.apply(t.Context(), root, "--check"); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
