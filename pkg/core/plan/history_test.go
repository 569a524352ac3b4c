package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/author"
	"github.com/tandem-addons/tandem/pkg/core/plan"
)

// formatHistory formats the entries of a history: plan, cause, versions, names of parameters, retries and outcome.
func formatHistory(entries []kudo.HistoryEntry) (lines []string) {
	for _, e := range entries {
		line := fmt.Sprintf("%s %s", e.Plan, e.Cause)
		if e.From != "" {
			line += " " + e.From + "->" + e.OperatorVersion.Name
		}
		if len(e.Parameters) > 0 {
			line += " " + strings.Join(e.Parameters, ",")
		}
		if e.Retries > 0 {
			line += fmt.Sprint(" retries=", e.Retries)
		}
		lines = append(lines, strings.TrimSpace(line+" "+string(e.Outcome)))
	}
	return lines
}

func TestHistory(t *testing.T) {
	for what, test := range map[string]struct {
		play func(o *owing)
		want []string
	}{
		"the first installation names what is set": {
			play: func(o *owing) { o.setParameters("SIZE=secret-value"); o.complete() },
			want: []string{"deploy Install SIZE Complete"},
		},
		"another version, with parameters": {
			play: func(o *owing) { o.complete(); o.upgrade("EXPORTER=true"); o.complete() },
			want: []string{
				"deploy Install Complete", "update Version " + one.Name + "->" + two.Name + " EXPORTER Complete", "exporter Owed Complete",
			},
		},
		"a version that fails, and the one before": {
			play: func(o *owing) {
				o.complete()
				o.upgrade()
				o.fail()
				o.spec.Generation++
				o.spec.Reference = one
				o.complete()
			},
			want: []string{
				"deploy Install Complete", "update Version " + one.Name + "->" + two.Name + " Failed",
				"update Version " + two.Name + "->" + one.Name + " Complete",
			},
		},
		"parameters": {
			play: func(o *owing) { o.complete(); o.setParameters("TUNING=1", "QUIET=1"); o.complete() },
			want: []string{"deploy Install Complete", "tune Parameters TUNING,QUIET Complete"},
		},
		"a change while the plan runs": {
			play: func(o *owing) { o.start(); o.setParameters("SIZE=2"); o.start(); o.complete() },
			want: []string{"deploy Install Superseded", "deploy Parameters SIZE Complete"},
		},
		"a cancelled plan, and one by hand": {
			play: func(o *owing) { o.start(); o.cancel(); o.start(); o.request("deploy", "r"); o.complete() },
			want: []string{"deploy Install Cancelled", "deploy Request Complete"},
		},
		"a plan of a child that the hub requests again": {
			play: func(o *owing) { o.fail(); o.request("deploy", plan.RerunPrefix+"deploy.r"); o.complete() },
			want: []string{"deploy Install retries=1 Complete"},
		},
		"a removal": {
			play: func(o *owing) { o.complete(); o.spec.Removing = true; o.start(); o.end(kudo.Complete) },
			want: []string{"deploy Install Complete", "cleanup Removal Complete"},
		},
		"a status of an earlier release": {
			play: func(o *owing) {
				o.start()
				o.status.History = nil
				o.end(kudo.Complete)
				o.setParameters("SIZE=2")
				o.complete()
			},
			want: []string{"deploy  Complete", "update Parameters SIZE Complete"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			o := newOwing(t)
			test.play(o)
			if diff := cmp.Diff(test.want, formatHistory(o.status.History)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if encoded, err := json.Marshal(o.status.History); err != nil || strings.Contains(string(encoded), "secret-value") {
				t.Errorf("the history has the value of a parameter: %s %v", encoded, err)
			}
		})
	}
}

func TestHistoryIsUnchangedByProgress(t *testing.T) {
	o := newOwing(t)
	o.start()
	before := o.status
	o.end(kudo.InProgress)
	if diff := cmp.Diff(before.History, o.status.History); diff != "" || len(before.History) != 1 {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestHistoryNamesWhoAsked(t *testing.T) {
	begin := func(o *owing, authors string) string {
		choice, err := plan.Choose(o.state())
		if err != nil || choice.Start == nil {
			t.Fatal(choice, err)
		}
		choice.ChangedBy, choice.RequestedBy, _ = strings.Cut(authors, "/")
		o.status = plan.Start(o.status, choice, "u", noon)
		last := o.status.History[len(o.status.History)-1]
		return fmt.Sprintf("%s by %s", last.Cause, last.By)
	}
	for what, test := range map[string]struct {
		play func(o *owing)
		want string
	}{
		"an installation": {func(*owing) {}, "Install by a"},
		"a version":       {func(o *owing) { o.complete(); o.upgrade() }, "Version by a"},
		"a parameter":     {func(o *owing) { o.complete(); o.setParameters("SIZE=2") }, "Parameters by a"},
		"a request":       {func(o *owing) { o.complete(); o.request("deploy", "r") }, "Request by r"},
		"a removal":       {func(o *owing) { o.complete(); o.spec.Removing = true }, "Removal by "},
		"a value in a Secret": {func(o *owing) {
			version := o.versions[one]
			version.Parameters = append(version.Parameters, kudo.Parameter{Name: "PASSWORD", Sensitive: new(true)})
			of := kudo.StartedParameterFrom{ParameterFrom: kudo.ParameterFrom{Name: "PASSWORD"}, Digest: "before", DigestKey: "key"}
			o.spec.Sensitive.From = []kudo.StartedParameterFrom{of}
			o.complete()
			of.Digest = "after"
			o.spec.Sensitive.From = []kudo.StartedParameterFrom{of}
		}, "Parameters by "},
		"a version that is pushed again under its name": {func(o *owing) {
			o.complete()
			again := one
			again.UID = "again"
			o.versions[again], o.spec.Reference = o.versions[two], again
		}, "Version by "},
	} {
		t.Run(what, func(t *testing.T) {
			o := newOwing(t)
			test.play(o)
			if got := begin(o, "a/r"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestAuthorsOfAnotherStateAreNotRecorded(t *testing.T) {
	o := plan.Observation{Instance: &kudo.Instance{}, Desired: versionWithExporter("1.0.0"), Reference: one, Now: noon}
	spec := &o.Instance.Spec
	named := func(spec kudo.InstanceSpec) author.Change {
		return author.Values(types.NamespacedName{Namespace: one.Namespace, Name: one.Name}, spec)
	}
	spec.ChangedBy = author.With(kudo.ChangeAuthor{Manager: "a", Kind: "Instance", Name: "c/n"}, named(*spec))
	if got := plan.Decide(o).Start.ChangedBy; got != "a (Instance c/n)" {
		t.Errorf("%q", got)
	}
	spec.Parameters = map[string]string{"SIZE": "7"} // a hub of an earlier release does not record who did this
	if got := plan.Decide(o).Start.ChangedBy; got != "" {
		t.Errorf("%q", got)
	}
}
