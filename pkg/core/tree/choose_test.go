package tree_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

func TestChoose(t *testing.T) {
	for sentence, test := range map[string]struct {
		appVersion, version string   // of the task
		name                string   // of the exact OperatorVersion, as in a pushed package
		candidates          []string // APPVERSION_VERSION, or VERSION
		want                string
		problem             string
	}{
		"the highest version by its numbers":              {candidates: []string{"1.9.0", "1.10.0", "1.2.0"}, want: "1.10.0"},
		"a release is above its candidates":               {candidates: []string{"1.0.0-rc.1", "1.0.0", "0.9.0"}, want: "1.0.0"},
		"the highest appVersion comes before the version": {candidates: []string{"3.9.2_1.0.0", "3.10.0_0.9.0", "3.8.0_2.0.0"}, want: "3.10.0_0.9.0"},
		"of one appVersion the highest version":           {candidates: []string{"3.9.2_1.0.0", "3.9.2_1.1.0"}, want: "3.9.2_1.1.0"},
		"no appVersion is below any":                      {candidates: []string{"2.0.0", "3.9.2_1.0.0"}, want: "3.9.2_1.0.0"},
		"an appVersion that is no version is below those": {candidates: []string{"stable_2.0.0", "0.1_1.0.0"}, want: "0.1_1.0.0"},
		"and above none":                                  {candidates: []string{"2.0.0", "stable_1.0.0"}, want: "stable_1.0.0"},
		"the version that is asked for":                   {version: "1.0.0", candidates: []string{"1.0.0", "2.0.0"}, want: "1.0.0"},
		"the highest appVersion with it":                  {version: "1.0.0", candidates: []string{"3.8.0_1.0.0", "3.9.0_1.0.0", "4.0.0_2.0.0"}, want: "3.9.0_1.0.0"},
		"the appVersion that is asked for":                {appVersion: "3.8.0", candidates: []string{"3.8.0_1.0.0", "3.8.0_1.1.0", "3.9.0_2.0.0"}, want: "3.8.0_1.1.0"},
		"both":                                            {appVersion: "3.8.0", version: "1.0.0", candidates: []string{"3.8.0_1.0.0", "3.8.0_1.1.0"}, want: "3.8.0_1.0.0"},
		"exactly the one without an appVersion":           {name: "zk-1.0.0", version: "1.0.0", candidates: []string{"1.0.0", "7.2_1.0.0"}, want: "1.0.0"},
		"any appVersion, written by hand":                 {version: "1.0.0", candidates: []string{"1.0.0", "7.2_1.0.0"}, want: "7.2_1.0.0"},
		"not exactly that one": {name: "zk-1.0.0", version: "1.0.0", candidates: []string{"7.2_1.0.0"},
			problem: "OperatorVersion zk-1.0.0 does not exist: push its package first (kubectl addon package push DIR), or use an existing version: zk-7.2-1.0.0"},
		"nothing there":               {problem: `operator "zk" does not exist`},
		"the version is not there":    {version: "3.0.0", candidates: []string{"1.0.0", "2.0.0"}, problem: `OperatorVersion zk-3.0.0 does not exist`},
		"the appVersion is not there": {appVersion: "4.0", candidates: []string{"3.9_1.0.0"}, problem: `use an existing version: zk-3.9-1.0.0`},
		"not together":                {appVersion: "3.9", version: "2.0.0", candidates: []string{"3.9_1.0.0", "3.8_2.0.0"}, problem: `OperatorVersion zk-3.9-2.0.0 does not exist`},
		"of many that are there some are named": {version: "9.0.0", candidates: strings.Fields(strings.Repeat("1.0.0 ", 11)),
			problem: "zk-1.0.0, and 3 more"},
	} {
		t.Run(sentence, func(t *testing.T) {
			candidates := []kudo.OperatorVersion{candidate("other", "9.0.0")}
			for _, c := range test.candidates {
				candidates = append(candidates, candidate("zk", c))
			}
			rand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
			task := kudo.Task{Spec: kudo.TaskSpec{KudoOperatorTaskSpec: kudo.KudoOperatorTaskSpec{
				Package: "zk", AppVersion: test.appVersion, OperatorVersion: test.version, OperatorVersionName: test.name,
			}}}
			got, err := tree.Choose(task, candidates)
			switch {
			case test.problem != "":
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("got %v, want the error %s", err, test.problem)
				}
			case err != nil:
				t.Error(err)
			case got.Name != candidate("zk", test.want).Name:
				t.Errorf("got %s, want %s", got.Name, test.want)
			}
		})
	}
}

func candidate(operator, versions string) kudo.OperatorVersion {
	v := kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Name: operator + "-" + strings.ReplaceAll(versions, "_", "-")}}
	v.Spec.Operator = corev1.ObjectReference{Name: operator}
	app, version, both := strings.Cut(versions, "_")
	if !both {
		app, version = "", versions
	}
	v.Spec.AppVersion, v.Spec.Version = app, version
	return v
}

func TestChooseTakesWhatWasPushedBeforeWhatWasMadeByHand(t *testing.T) {
	pushed, handmade := candidate("zk", "3.9.2_1.0.0"), candidate("zk", "3.9.2_1.0.0")
	handmade.Name = "zz-test"
	task := kudo.Task{}
	task.Spec.Package = "zk"
	for _, candidates := range [][]kudo.OperatorVersion{{pushed, handmade}, {handmade, pushed}} {
		got, err := tree.Choose(task, candidates)
		if err != nil || got.Name != pushed.Name {
			t.Errorf("got %s, %v, want %s", got.Name, err, pushed.Name)
		}
	}
}
