package sandbox

import "testing"

func TestMismatch(t *testing.T) {
	with := func(tandem string, names ...string) State {
		state := State{Tandem: tandem, Clusters: []ClusterState{{Name: hubName}}}
		for _, name := range names {
			state.Clusters = append(state.Clusters, ClusterState{Name: name})
		}
		return state
	}
	for sentence, test := range map[string]struct {
		running State
		asked   Options
		want    string
	}{
		"the same":                {with("bin", "cluster1"), Options{Clusters: 1, Tandem: "bin"}, ""},
		"another number":          {with("bin", "cluster1"), Options{Clusters: 2, Tandem: "bin"}, "has 1 managed cluster, not 2"},
		"asked for without":       {with("bin", "cluster1"), Options{Clusters: 1}, "runs with Tandem, not without it"},
		"it runs without":         {with("", "cluster1"), Options{Clusters: 1, Tandem: "bin"}, "runs without Tandem"},
		"programs from elsewhere": {with("a"), Options{Tandem: "b"}, `has Tandem's programs from "a", not from "b"`},
		"asked for with OCM":      {with("bin"), Options{Tandem: "bin", OCM: "ocm"}, "runs without OCM"},
		"it runs with OCM":        {State{OCM: "ocm", Clusters: with("").Clusters}, Options{}, "runs with OCM"},
		"asked for other images":  {with("bin"), Options{Tandem: "bin", Images: "images"}, `runs pods with images in "", not in "images"`},
		"asked for delivered agents": {
			State{OCM: "ocm", Tandem: "bin", Clusters: with("").Clusters}, Options{OCM: "ocm", Tandem: "bin", DeliverAgents: true}, "runs with OCM",
		},
		"it runs with delivered agents": {
			State{OCM: "ocm", Tandem: "bin", DeliverAgents: true, Clusters: with("").Clusters}, Options{OCM: "ocm", Tandem: "bin"},
			"runs with OCM, which delivers Tandem's agents",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := mismatch(test.running, test.asked); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
