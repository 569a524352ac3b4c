package dependency_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// unfinished returns the change "kafka@c1: shop", which occupies a slot and waits for shop, or "kafka@c1 queued". "new" marks an add-on that is not installed, and a name
// that begins with + one that has to be installed first. "of=2" is the number of slots, "in=eu" the Placement, and "stage=1" the stage of its rollout.
func unfinished(line string) dependency.Unfinished {
	subject, waits, _ := strings.Cut(line, ":")
	fields := strings.Fields(subject)
	u := dependency.Unfinished{Queued: slices.Contains(fields, "queued"), Installed: !slices.Contains(fields, "new"), Stage: dependency.Stage{Slots: -1}}
	u.AddOn, u.Cluster, _ = strings.Cut(fields[0], "@")
	for _, field := range fields[1:] {
		switch name, value, _ := strings.Cut(field, "="); name {
		case "of":
			u.Stage.Slots, _ = strconv.Atoi(value)
		case "stage":
			u.Stage.Number, _ = strconv.Atoi(value)
		case "in":
			u.Stage.Placement = value
		}
	}
	for name := range strings.FieldsSeq(waits) {
		if required, is := strings.CutPrefix(name, "+"); is {
			u.Requires = append(u.Requires, required)
		} else {
			u.WaitsFor = append(u.WaitsFor, name)
		}
	}
	return u
}

// changes returns the changes of the lines. Where the number of slots is missing, all are occupied.
func changes(lines []string) []dependency.Unfinished {
	var on []dependency.Unfinished
	occupied := map[string]int{}
	for _, line := range lines {
		u := unfinished(line)
		on = append(on, u)
		if !u.Queued {
			occupied[u.AddOn+" "+u.Stage.Placement]++
		}
	}
	for i, u := range on {
		if u.Stage.Slots < 0 {
			on[i].Stage.Slots = max(1, occupied[u.AddOn+" "+u.Stage.Placement])
		}
	}
	return on
}

// slotTexts describes deadlocks, one rollout a line: "kafka (c1: shop) awaited on c2, needs 2".
func slotTexts(deadlocks []dependency.SlotDeadlock) (lines []string) {
	for _, deadlock := range deadlocks {
		for _, rollout := range deadlock.Rollouts {
			var slots []string
			for _, slot := range rollout.Slots {
				slots = append(slots, slot.Cluster+": "+strings.Join(slot.WaitsFor, " "))
			}
			lines = append(lines, fmt.Sprintf("%s (%s) awaited on %s, needs %d", rollout.AddOn, strings.Join(slots, ", "), strings.Join(rollout.Awaited, " "), rollout.Needed))
		}
		if len(deadlock.Blocked) > 0 {
			lines = append(lines, "blocked: "+strings.Join(deadlock.Blocked, " "))
		}
	}
	return lines
}

func TestSlotDeadlocks(t *testing.T) {
	two := []string{"kafka@c1: shop", "shop@c1 queued", "shop@c2: kafka", "kafka@c2 queued"}
	ofTwo := []string{"kafka (c1: shop) awaited on c2, needs 2", "shop (c2: kafka) awaited on c1, needs 1"}
	for name, tc := range map[string]struct{ on, want []string }{
		"no rollout":                       {},
		"two rollouts wait for each other": {two, ofTwo},
		"a change that has been rolled out to the cluster is no reason": {
			on: []string{"kafka@c1: shop", "shop@c1", "shop@c2: kafka", "kafka@c2 queued"},
		},
		"nor is one that has ended there": {on: []string{"kafka@c1: shop", "shop@c2: kafka", "kafka@c2 queued", "kafka@c3 queued"}},
		"a slot that is released ends the wait": {
			on: append([]string{"shop@c3"}, two...),
		},
		"a failed change occupies a slot until a user mends it": {on: append([]string{"kafka@c0"}, two...)},
		"a queue without occupied slots is no deadlock":         {on: []string{"kafka@c1: shop", "shop@c1 queued", "kafka@c2 queued"}},
		"a rollout that only waits for another one":             {on: []string{"kafka@c1: shop", "shop@c1 queued", "shop@c2", "kafka@c2 queued"}},
		"every slot is named": {
			on:   append([]string{"kafka@c3: shop", "shop@c3 queued"}, two...),
			want: []string{"kafka (c1: shop, c3: shop) awaited on c2, needs 2", "shop (c2: kafka) awaited on c1 c3, needs 1"},
		},
		"three rollouts in a cycle": {
			on:   []string{"a@c1: b", "b@c1 queued", "b@c2: c", "c@c2 queued", "c@c3: a", "a@c3 queued"},
			want: []string{"a (c1: b) awaited on c3, needs 2", "b (c2: c) awaited on c1, needs 1", "c (c3: a) awaited on c2, needs 1"},
		},
		"a wait through an add-on that the rollout has reached": {
			on:   []string{"a@c1: b", "b@c1: c", "c@c1 queued", "c@c2: a", "a@c2 queued"},
			want: []string{"a (c1: c) awaited on c2, needs 2", "c (c2: a) awaited on c1, needs 1", "blocked: b"},
		},
		"a rollout that waits for the deadlock is not a part of it": {
			on:   append([]string{"portal@c3: kafka", "kafka@c3 queued", "portal@c4 queued"}, two...),
			want: append(slices.Clone(ofTwo), "blocked: portal"),
		},
		"two deadlocks": {
			on:   append([]string{"a@c1: b", "b@c1 queued", "b@c2: a", "a@c2 queued"}, two...),
			want: append([]string{"a (c1: b) awaited on c2, needs 2", "b (c2: a) awaited on c1, needs 1"}, ofTwo...),
		},
		"all that a cluster waits for has to change": {
			on: []string{"kafka@c1: shop auth", "shop@c1 queued", "auth@c1", "shop@c2: kafka", "kafka@c2 queued"}, want: ofTwo,
		},
		"add-ons that wait for each other on one cluster are no deadlock of slots": {on: []string{"kafka@c1: shop", "shop@c1: kafka", "kafka@c2 queued", "shop@c2 queued"}},
		"a first installation that waits for one that is queued": {
			on: []string{"kafka@c1: shop", "shop@c1 queued", "shop@c2 new: +kafka", "kafka@c2 queued new"}, want: ofTwo,
		},
		"a first installation waits for no change of what is installed": {
			on: []string{"kafka@c1: shop", "shop@c1 queued", "shop@c2 new: +kafka", "kafka@c2 queued"},
		},
		"a slot is free": {on: []string{"kafka@c1 of=2: shop", "shop@c1 queued of=1", "shop@c2 of=1: kafka", "kafka@c2 queued of=2", "kafka@c3 queued of=2"}},
		"every slot is occupied, of several": {
			on:   []string{"kafka@c1 of=2: shop", "kafka@c3 of=2: shop", "shop@c1 queued of=1", "shop@c3 queued of=1", "shop@c2 of=1: kafka", "kafka@c2 queued of=2"},
			want: []string{"kafka (c1: shop, c3: shop) awaited on c2, needs 2", "shop (c2: kafka) awaited on c1 c3, needs 1"},
		},
		"more slots are occupied than the strategy allows now": {
			on:   append([]string{"shop@c3 of=1", "shop@c4 queued of=1"}, "kafka@c1 of=1: shop", "shop@c1 queued of=1", "shop@c2 of=1: kafka", "kafka@c2 queued of=1"),
			want: ofTwo,
		},
		"a strategy without a limit includes the whole queue": {on: []string{"kafka@c1 of=0: shop", "shop@c1 queued of=1", "shop@c2 of=1: kafka", "kafka@c2 queued of=0"}},
		"groups of clusters, one after the other": {
			on: []string{"kafka@c1 of=0: shop", "kafka@c3 of=0", "shop@c1 queued of=0 stage=1", "shop@c2 of=0: kafka", "kafka@c2 queued of=0 stage=1"}, want: ofTwo,
		},
		"a cluster of the present group is included by itself": {
			on: []string{"kafka@c1 of=0: shop", "shop@c1 queued of=0", "shop@c2 of=0: kafka", "kafka@c2 queued of=0 stage=1"},
		},
		"a mandatory group comes first, whatever slots are free": {
			on: []string{"kafka@c1 of=0: shop", "shop@c1 queued of=9 stage=1", "shop@c2 of=0: kafka", "kafka@c2 queued of=9 stage=1"}, want: ofTwo,
		},
		"another Placement has a free slot": {
			on:   append([]string{"shop@c3 of=1 in=eu", "shop@c4 queued of=1 in=eu", "shop@c5 queued of=2 in=us"}, two...),
			want: ofTwo,
		},
		"an add-on never waits for itself": {on: []string{"kafka@c1: kafka", "kafka@c2 queued"}},
	} {
		t.Run(name, func(t *testing.T) {
			on := changes(tc.on)
			for range 20 {
				if diff := cmp.Diff(tc.want, slotTexts(dependency.SlotDeadlocks(on))); diff != "" {
					t.Fatal(diff)
				}
				rand.Shuffle(len(on), func(i, j int) { on[i], on[j] = on[j], on[i] })
			}
		})
	}
}

// TestSlotDeadlocksDoNotEnd plays rollouts to the end: what can end does, and a free slot includes the whole queue of its stage. Exactly the rollouts that a deadlock
// holds never continue, unless add-ons wait for each other on one cluster.
func TestSlotDeadlocksDoNotEnd(t *testing.T) {
	names, clusters := []string{"a", "b", "c"}, []string{"c1", "c2", "c3"}
	rapid.Check(t, func(t *rapid.T) {
		var on []dependency.Unfinished
		for i, name := range names {
			slots := rapid.IntRange(0, 2).Draw(t, "slots of "+name)
			for _, cluster := range clusters {
				u := dependency.Unfinished{AddOn: name, Cluster: cluster, Installed: true, Stage: dependency.Stage{Slots: slots}}
				u.Stage.Number = rapid.IntRange(0, 1).Draw(t, "stage of "+name+cluster)
				switch rapid.IntRange(0, 3).Draw(t, name+cluster) {
				case 0:
					continue
				case 1:
					u.Queued = true
				case 2:
					u.WaitsFor = names[i+1:] // never in a cycle on one cluster
				case 3:
					u.WaitsFor = []string{names[(i+1)%len(names)]}
				}
				on = append(on, u)
			}
		}
		remaining := playRollouts(on)
		for _, deadlock := range dependency.SlotDeadlocks(on) {
			for _, rollout := range deadlock.Rollouts {
				if len(rollout.Awaited) == 0 || len(rollout.Slots) == 0 {
					t.Fatalf("no member of a deadlock: %+v", rollout)
				}
				for _, slot := range rollout.Slots {
					if !remaining[rollout.AddOn+"@"+slot.Cluster] {
						t.Fatalf("%s ends on %s: %+v", rollout.AddOn, slot.Cluster, on)
					}
				}
			}
		}
		for _, u := range on {
			isHeld := slices.ContainsFunc(dependency.SlotDeadlocks(on), func(d dependency.SlotDeadlock) bool { return d.Holds(u.AddOn) })
			if u.Queued && remaining[u.AddOn+"@"+u.Cluster] && !isHeld && !hasCycle(on, remaining) {
				t.Fatalf("%s never reaches %s, and no deadlock holds it: %+v", u.AddOn, u.Cluster, on)
			}
		}
	})
}

// playRollouts returns the changes that never end, as ADDON@CLUSTER.
func playRollouts(on []dependency.Unfinished) map[string]bool {
	remaining := map[string]bool{}
	for _, u := range on {
		remaining[u.AddOn+"@"+u.Cluster] = true
	}
	for range len(on) + 1 {
		for _, u := range on {
			ends := !slices.ContainsFunc(u.WaitsFor, func(other string) bool { return remaining[other+"@"+u.Cluster] })
			if u.Queued {
				stuck, isLater := 0, false
				for _, o := range on {
					if o.AddOn != u.AddOn || !remaining[o.AddOn+"@"+o.Cluster] {
						continue
					}
					isLater = isLater || o.Stage.Number < u.Stage.Number
					if !o.Queued && o.Stage == u.Stage {
						stuck++
					}
				}
				ends = !isLater && (u.Stage.Slots == 0 || stuck < u.Stage.Slots)
			}
			if ends {
				delete(remaining, u.AddOn+"@"+u.Cluster)
			}
		}
	}
	return remaining
}

// hasCycle reports whether add-ons that the rollouts have reached wait for each other on one cluster.
func hasCycle(on []dependency.Unfinished, remaining map[string]bool) bool {
	for _, start := range on {
		met := map[string]bool{}
		for queue := []string{start.AddOn}; len(queue) > 0; queue = queue[1:] {
			for _, u := range on {
				if u.AddOn != queue[0] || u.Cluster != start.Cluster || u.Queued || !remaining[u.AddOn+"@"+u.Cluster] {
					continue
				}
				for _, other := range u.WaitsFor {
					if other == start.AddOn {
						return true
					}
					if !met[other] {
						met[other] = true
						queue = append(queue, other)
					}
				}
			}
		}
	}
	return false
}

// TestSlotDeadlocksOfManyClusters has chains and deadlocks that are much longer than those of the other tests.
func TestSlotDeadlocksOfManyClusters(t *testing.T) {
	for name, chain := range map[string]bool{"stuck": false, "one after the other": true} {
		const clusters = 20_000
		var on []dependency.Unfinished
		for i := range clusters {
			cluster := fmt.Sprintf("c%05d", i)
			slots, other := dependency.Stage{Slots: clusters / 2}, "shop"
			first := dependency.Unfinished{AddOn: "kafka", Cluster: cluster, Stage: slots, WaitsFor: []string{other}}
			if i%2 > 0 {
				first.AddOn, first.WaitsFor = "shop", []string{"kafka"}
			}
			second := dependency.Unfinished{AddOn: first.WaitsFor[0], Cluster: cluster, Stage: slots, Queued: true}
			if chain { // each stage waits for the one before
				first = dependency.Unfinished{AddOn: "kafka", Cluster: cluster, Stage: dependency.Stage{Number: i, Slots: 1}, Queued: i > 0}
				second = dependency.Unfinished{AddOn: "shop", Cluster: cluster, Stage: dependency.Stage{Number: i}, WaitsFor: []string{"kafka"}}
			}
			on = append(on, first, second)
		}
		found := dependency.SlotDeadlocks(on)
		if chain != (len(found) == 0) || !chain && len(found[0].Rollouts[0].Slots) != clusters/2 {
			t.Errorf("%s: %d deadlocks", name, len(found))
		}
	}
}

func BenchmarkSlotDeadlocks(b *testing.B) {
	var on []dependency.Unfinished
	for i := range 1000 {
		for j, names := range [][2]string{{"kafka", "shop"}, {"shop", "kafka"}} {
			cluster, slots := fmt.Sprintf("c%d-%d", i, j), dependency.Stage{Slots: 1000}
			on = append(on, dependency.Unfinished{AddOn: names[0], Cluster: cluster, Stage: slots, WaitsFor: names[1:]},
				dependency.Unfinished{AddOn: names[1], Cluster: cluster, Stage: slots, Queued: true})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(dependency.SlotDeadlocks(on)) != 1 {
			b.Fatal("no deadlock")
		}
	}
}

// TestAwaitedIn reads back what WaitReason writes.
func TestAwaitedIn(t *testing.T) {
	for name, tc := range map[string]struct {
		on              map[string]dependency.Member
		message         string
		change, install []string
	}{
		"an add-on that no one changes": {change: []string{"zookeeper"}, on: map[string]dependency.Member{
			"kafka":     member(requires("zookeeper"), release("kafka", "2.0.0", "zookeeper >=3.8"), release("kafka", "1.0.0")),
			"zookeeper": member(nil, dependency.Release{}, release("zookeeper", "3.7.0")),
		}},
		"one that changes first": {change: []string{"zookeeper"}, on: map[string]dependency.Member{
			"kafka":     member(requires("zookeeper"), release("kafka", "2.0.0", "zookeeper >=3.8"), release("kafka", "1.0.0")),
			"zookeeper": member(nil, release("zookeeper", "3.8.0"), release("zookeeper", "3.7.0")),
		}},
		"two of them": {change: []string{"auth", "zookeeper"}, on: map[string]dependency.Member{
			"kafka":     member(requires("auth", "zookeeper"), release("kafka", "2.0.0", "zookeeper >=3.8", "auth >=2"), release("kafka", "1.0.0")),
			"zookeeper": member(nil, release("zookeeper", "3.8.0"), release("zookeeper", "3.7.0")),
			"auth":      member(nil, release("auth", "2.0.0"), release("auth", "1.0.0")),
		}},
		"one that is changing": {change: []string{"zookeeper"}, on: map[string]dependency.Member{
			"kafka":     member(requires("zookeeper"), release("kafka", "2.0.0", "zookeeper >=3.8"), release("kafka", "1.0.0")),
			"zookeeper": member(nil, dependency.Release{}, release("zookeeper", "3.7.0"), target(release("zookeeper", "3.8.0"))),
		}},
		"one that waits for a third one": {change: []string{"zookeeper", "disk"}, on: map[string]dependency.Member{
			"kafka":     member(requires("zookeeper"), release("kafka", "2.0.0", "zookeeper >=3.8"), release("kafka", "1.0.0")),
			"zookeeper": member(requires("disk"), release("zookeeper", "3.8.0", "disk >=2"), release("zookeeper", "3.7.0")),
			"disk":      member(nil, dependency.Release{}, release("disk", "1.0.0")),
		}},
		"a deadlock": {change: []string{"zookeeper"}, on: map[string]dependency.Member{
			"kafka":     member(requires("zookeeper"), release("kafka", "2.0.0", "zookeeper >=3.8"), release("kafka", "1.0.0", "zookeeper <3.8")),
			"zookeeper": member(nil, release("zookeeper", "3.8.0"), release("zookeeper", "3.7.0")),
		}},
		"more than a message names": {message: "waiting to change to kafka-2.0.0: x; first changes a, b and 3 more", change: []string{"a", "b"}},
		"required add-ons": {message: "waiting for required add-ons to become available on the cluster: auth, disk or tape, kafka (a plan updates it)",
			install: []string{"auth", "kafka"}},
		"another problem": {message: "the add-on is not installed because its dependencies cannot be read: x"},
	} {
		t.Run(name, func(t *testing.T) {
			message := tc.message
			if tc.on != nil {
				message = dependency.WaitReason("kafka", tc.on, func(string) []dependency.Release { return nil })
			}
			change, install := dependency.AwaitedIn(message)
			if diff := cmp.Diff(tc.change, change); diff != "" {
				t.Errorf("%s: %s", message, diff)
			}
			if diff := cmp.Diff(tc.install, install); diff != "" {
				t.Errorf("%s: %s", message, diff)
			}
		})
	}
}
