package inspect

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/test/sample"
)

func TestGetTakesFlags(t *testing.T) {
	type options struct {
		AddOn, Format, SortBy string
		Clusters              []string
		Watch, NoHeaders      bool
	}
	for sentence, test := range map[string]struct {
		args []string
		want options
		err  string
	}{
		"everything":    {args: []string{}, want: options{Format: "table"}},
		"one add-on":    {args: []string{"kafka", "-o", "name"}, want: options{AddOn: "kafka", Format: "name"}},
		"some clusters": {args: []string{"--cluster", "a,b"}, want: options{Format: "table", Clusters: []string{"a", "b"}}},
		"as kubectl": {args: []string{"-A", "-w", "-o", "wide", "--sort-by", "{.state}", "--no-headers"},
			want: options{Format: "wide", SortBy: "{.state}", Watch: true, NoHeaders: true}},
		"no JSONPath":          {args: []string{"--sort-by", "{.state"}, err: `invalid argument "{.state" for "--sort-by" flag: must be a JSONPath such as .state or {.state}`},
		"columns without path": {args: []string{"-o", "custom-columns=NAME"}, err: `invalid argument "custom-columns=NAME" for "-o, --output" flag: must be custom-columns=HEADER:JSONPATH[,HEADER:JSONPATH], got "NAME"`},
		"a watch for programs": {args: []string{"-w", "-o", "json"}, err: "--watch requires --output table or wide\nSee 'get --help' for usage."},
		"clusters in two ways": {args: []string{"--cluster", "a", "--all-clusters"}, err: "--cluster, --selector, --placement and --all-clusters are mutually exclusive\nSee 'get --help' for usage."},
	} {
		t.Run(sentence, func(t *testing.T) {
			var got options
			cmd := NewCmdGet(clitest.Factory(""), func(_ context.Context, o *GetOptions) error {
				got = options{AddOn: o.addOn, Format: o.output.Format, Clusters: o.where.Names, SortBy: o.sortBy.String(), Watch: o.watch, NoHeaders: o.output.NoHeaders}
				return nil
			})
			clitest.Parse(t, cmd, test.args, test.err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGetShowsTheVersionUntilARolloutReachesTheCluster(t *testing.T) {
	versions := upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions}
	definition := sample.Define("shop:")
	definition.Spec.SupportedConfigs = []upstream.ConfigMeta{{ConfigGroupResource: versions}}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster3", Name: "shop"}}
	before := upstream.ConfigReferent{Namespace: "addon-packages", Name: "shop-1.0.0"}
	addOn.Status.ConfigReferences = []upstream.ConfigReference{{
		ConfigGroupResource: versions, ConfigReferent: before, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: before},
	}}
	addOn.Status.Conditions = []metav1.Condition{sample.Condition(addonv1alpha1.ConditionConfigured, "False", "ConfigurationsNotConfigured", ""), sample.NotRolledOut}
	if got := itemOf(addOn, fleet.DefinitionOf(definition), fleet.Report{}, nil).OperatorVersion; got != "shop-1.0.0" {
		t.Errorf("got %q", got)
	}
}

func TestGetSortsByAField(t *testing.T) {
	namesOf := func(l addOnList) string {
		var names []string
		for _, i := range l.AddOns {
			names = append(names, i.AddOn)
		}
		for _, i := range l.Instances {
			names = append(names, i.Instance)
		}
		return strings.Join(names, " ")
	}
	for path, want := range map[string]string{
		"":           "kafka shop zookeeper store",
		".created":   "zookeeper kafka shop store",
		"degraded":   "kafka zookeeper shop store",
		"{.message}": "kafka zookeeper shop store",
		".frob":      "sorting by .frob: no item has that field; see the fields with -o json",
	} {
		list := addOnList{
			AddOns: []addOnItem{
				{AddOn: "kafka", Created: metav1.Unix(200, 0)}, {AddOn: "shop", Created: metav1.Unix(300, 0), Degraded: "True", Message: "no"},
				{AddOn: "zookeeper", Created: metav1.Unix(100, 0)},
			},
			Instances: []instanceItem{{Instance: "store"}},
		}
		var field terminal.Field
		if path != "" {
			if err := field.Set(path); err != nil {
				t.Fatal(err)
			}
		}
		if got := clitest.ErrorText(list.sortBy(field)); got == "" && namesOf(list) != want || got != "" && got != want {
			t.Errorf("%s: got %s, %s", path, namesOf(list), got)
		}
	}
}

func TestGetPrintsARowForEachChange(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	item := func(cluster string, state fleet.State, reason string) addOnItem {
		return addOnItem{Cluster: cluster, AddOn: "kafka", Glimpse: fleet.Glimpse{State: state, Reason: reason}, Created: metav1.NewTime(start)}
	}
	first, store := item("cluster1", fleet.Unknown, "NotReported"), instanceItem{Cluster: "cluster1", Instance: "store", Created: metav1.NewTime(start)}
	var out bytes.Buffer
	w := listWatch{out: &out}
	for minutes, list := range []addOnList{
		{AddOns: []addOnItem{first}},
		{AddOns: []addOnItem{first}}, // only older
		{AddOns: []addOnItem{item("cluster1", fleet.NotAvailable, "RequiredDependencyNotSatisfied"), item("cluster2", fleet.Available, "Healthy")}},
		{AddOns: []addOnItem{item("cluster2", fleet.Available, "Healthy")}, Instances: []instanceItem{store}},
		{AddOns: []addOnItem{item("cluster2", fleet.Blocked, "ParametersInvalid")}, Instances: []instanceItem{store}},
	} {
		if err := w.print(list, start.Add(time.Duration(minutes+10)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	clitest.Golden(t, "get-watch", out.String())
}
