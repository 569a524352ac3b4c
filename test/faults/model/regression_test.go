package model

import (
	"fmt"
	"testing"

	"github.com/tandem-addons/tandem/test/faults/history"
)

// installStep and updateStep return steps.
func installStep(set map[string]*string) step {
	return changeStep(history.Change{Do: history.Install, Version: "1.0.0", Set: set})
}

func updateStep(set map[string]*string) step {
	return changeStep(history.Change{Do: history.Update, Set: set})
}

func lossStep() step { return step{Change: history.Change{Do: doLose}} }

func on(name, value string) map[string]*string { return map[string]*string{name: &value} }

// TestFoundHistories plays the shortest histories by which TestHistories or a mutant found a mistake.
func TestFoundHistories(t *testing.T) {
	versions := loadPackages(t)
	for name, steps := range map[string][]step{
		"addon-manager restarts with a view of an execution that removed a child, which has been created again since": {
			installStep(on("CACHE", "true")),
			workStep(30),
			updateStep(on("CACHE", "false")),
			workStep(30),
			updateStep(on("CACHE", "true")),
			workStep(30),
			{Change: history.Change{Do: doRestart}},
			passStep(parenting, 12),
		},
		"addon-agent restarts with a view of an older generation, and would run its plan": {
			installStep(on("METRICS", "false")),
			workStep(30),
			updateStep(on("METRICS", "true")),
			workStep(30),
			{Change: history.Change{Do: doRestart}, rounds: 1},
			passStep(mirrorer, 12),
			passStep(executor, 0),
		},
		"the mirrors are lost: what was deployed is not deployed again": {
			installStep(on("CACHE", "true")),
			workStep(30),
			lossStep(),
			workStep(30),
		},
		"the mirrors are lost before the removal, which removes everything all the same": {
			installStep(on("CACHE", "true")),
			workStep(30),
			lossStep(),
			changeStep(history.Change{Do: history.Uninstall}),
			workStep(30),
		},
		"an Instance is removed together with custom resources and volume claims of its descendants": {
			installStep(map[string]*string{"CACHE": new("true"), "PERSIST": new("true")}),
			workStep(40),
		},
		"a parent is ready to delete its workloads before its grandchild has deleted custom resources": {
			installStep(map[string]*string{"CACHE": new("true"), "PERSIST": new("true")}),
			workStep(40),
			changeStep(history.Change{Do: history.Uninstall}),
			passStep(mirrorer, 0),
			passStep(executor, 0),
			{Change: history.Change{Do: doPass}, controller: executor, instance: root + ".cache.disk"},
			{Change: history.Change{Do: doPass}, controller: executor, instance: root + ".cache"},
			passStep(executor, 0),
		},
		"the mirrors are lost before the removal of descendants with custom resources and volume claims": {
			installStep(map[string]*string{"CACHE": new("true"), "PERSIST": new("true")}),
			workStep(40),
			lossStep(),
			changeStep(history.Change{Do: history.Uninstall}),
			workStep(40),
		},
		"a change is mirrored before the hub has resolved it": {
			installStep(on("METRICS", "false")),
			workStep(30),
			updateStep(on("METRICS", "true")),
			passStep(mirrorer, 0),
			passStep(executor, 0),
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, versions)
			w.play(steps)
			w.finish(versions)
		})
	}
}

// TestFaultsAtEveryWrite plays one history again and again, each time with another fault at another write. A long test tries every fault at
// every write.
func TestFaultsAtEveryWrite(t *testing.T) {
	versions := loadPackages(t)
	steps := []step{
		installStep(map[string]*string{"CACHE": new("true"), "PERSIST": new("true"), "METRICS": new("true")}),
		workStep(40),
		updateStep(map[string]*string{"CACHE_SIZE": new("2"), "PATHS": new("[a]")}),
		workStep(40),
		changeStep(history.Change{Do: history.Upgrade, Version: "2.0.0"}),
		workStep(40),
		updateStep(on("PERSIST", "false")),
	}
	play := func(t *testing.T, planned fault) int {
		w := newWorld(t, versions)
		w.planned = planned
		for _, s := range steps {
			w.take(s)
		}
		w.finish(versions)
		return w.writes
	}
	writes, every := play(t, fault{}), 40
	if isLong() {
		every = 1
	}
	tried := 0
	for _, kind := range []faultKind{stopBefore, stopAfter, refuse, reject} {
		for at := 1 + tried%every; at <= writes; at += every {
			tried++
			t.Run(fmt.Sprint("a program ", kind, " write ", at), func(t *testing.T) { play(t, fault{kind, at}) })
		}
	}
	t.Logf("%d plans of faults, in a history of %d writes", tried, writes)
}
