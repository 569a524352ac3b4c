package model

import (
	"fmt"
	"testing"
)

func on(name, value string) map[string]*string { return map[string]*string{name: &value} }

// TestFoundHistories plays the shortest histories by which TestHistories found a mistake.
func TestFoundHistories(t *testing.T) {
	versions := loadPackages(t)
	for name, history := range map[string][]step{
		"addon-manager restarts with a view of an execution that removed a child, which has been created again since": {
			{do: doInstall, version: "1.0.0", set: on("CACHE", "true")},
			{do: doWork, rounds: 30},
			{do: doUpdate, set: on("CACHE", "false")},
			{do: doWork, rounds: 30},
			{do: doUpdate, set: on("CACHE", "true")},
			{do: doWork, rounds: 30},
			{do: doRestart},
			{do: doPass, controller: parenting, instance: root, ago: 12},
		},
		"addon-agent restarts with a view of an older generation, and would run its plan": {
			{do: doInstall, version: "1.0.0", set: on("METRICS", "false")},
			{do: doWork, rounds: 30},
			{do: doUpdate, set: on("METRICS", "true")},
			{do: doWork, rounds: 30},
			{do: doRestart, rounds: 1},
			{do: doPass, controller: mirrorer, instance: root, ago: 12},
			{do: doPass, controller: executor, instance: root},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, versions)
			w.play(history)
			w.finish(versions)
		})
	}
}

// TestFaultsAtEveryWrite plays one history again and again, each time with another fault at another write. A long test tries every fault at
// every write.
func TestFaultsAtEveryWrite(t *testing.T) {
	versions := loadPackages(t)
	history := []step{
		{do: doInstall, version: "1.0.0", set: map[string]*string{"CACHE": new("true"), "PERSIST": new("true"), "METRICS": new("true")}},
		{do: doWork, rounds: 40},
		{do: doUpdate, set: map[string]*string{"CACHE_SIZE": new("2"), "PATHS": new("[a]")}},
		{do: doWork, rounds: 40},
		{do: doUpgrade, version: "2.0.0"},
		{do: doWork, rounds: 40},
		{do: doUpdate, set: on("PERSIST", "false")},
	}
	play := func(t *testing.T, planned fault) int {
		w := newWorld(t, versions)
		w.planned = planned
		for _, s := range history {
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
