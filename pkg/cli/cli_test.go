package cli

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	addon "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var update = flag.Bool("update", false, "write testdata/*.golden instead of comparing with it")

// testdata is where the goldens stand, also for a test that goes elsewhere.
var testdata, errTestdata = filepath.Abs("testdata")

// golden compares got with testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if errTestdata != nil {
		t.Fatal(errTestdata)
	}
	file := filepath.Join(testdata, name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// run executes the plugin and returns everything that it printed, its error and its exit code.
func run(args ...string) (output string, code int) {
	var out bytes.Buffer
	cmd := New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &out}, "v0.0.0")
	cmd.SetArgs(args)
	err := cmd.Execute()
	if err != nil {
		out.WriteString("error: " + err.Error() + "\n")
	}
	return out.String(), ExitCode(err)
}

func TestCommands(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"verify-valid":           {[]string{"package", "verify", "testdata/valid"}, ExitOK},
		"verify-broken":          {[]string{"package", "verify", "testdata/broken"}, ExitFailure},
		"verify-valid-json":      {[]string{"package", "verify", "testdata/valid", "-o", "json"}, ExitOK},
		"verify-broken-json":     {[]string{"package", "verify", "testdata/broken", "-o", "json"}, ExitFailure},
		"verify-family":          {[]string{"package", "verify", "testdata/family"}, ExitOK},
		"verify-family-json":     {[]string{"package", "verify", "testdata/family", "-o", "json"}, ExitOK},
		"verify-broken-yaml":     {[]string{"package", "verify", "testdata/broken", "-o", "yaml"}, ExitFailure},
		"verify-broken-jsonpath": {[]string{"package", "verify", "testdata/broken", "-o", "jsonpath={.findings[*].line}"}, ExitFailure},
		"verify-circle":          {[]string{"package", "verify", "testdata/circle/aa"}, ExitFailure},
		"verify-circle-json":     {[]string{"package", "verify", "testdata/circle/aa", "-o", "json"}, ExitFailure},
		"package-tree":           {[]string{"package", "tree", "testdata/family"}, ExitOK},
		"package-tree-json":      {[]string{"package", "tree", "testdata/family", "-o", "json"}, ExitOK},
		"package-tree-name":      {[]string{"package", "tree", "testdata/family", "-o", "name"}, ExitOK},
		"package-tree-circle":    {[]string{"package", "tree", "testdata/circle/aa"}, ExitFailure},
		"push-circle":            {[]string{"package", "push", "testdata/circle/aa"}, ExitFailure},
		"verify-output":          {[]string{"package", "verify", "testdata/valid", "-o", "name"}, ExitUsage},
		"verify-file":            {[]string{"package", "verify", "testdata/valid/operator.yaml"}, ExitFailure},
		"verify-missing":         {[]string{"package", "verify", "testdata/none"}, ExitFailure},
		"verify-no-argument":     {[]string{"package", "verify"}, ExitUsage},
		"push-broken":            {[]string{"package", "push", "testdata/broken"}, ExitFailure},
		"status-no-cluster":      {[]string{"plan", "status", "kafka"}, ExitUsage},
		"status-namespace":       {[]string{"plan", "status", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, ExitUsage},
		"tree-no-cluster":        {[]string{"tree"}, ExitUsage},
		"tree-two-add-ons":       {[]string{"tree", "kafka", "shop", "--cluster", "cluster1"}, ExitUsage},
		"tree-output":            {[]string{"tree", "--cluster", "cluster1", "-o", "jsonpath"}, ExitUsage},
		"why-no-argument":        {[]string{"why", "--cluster", "cluster1"}, ExitUsage},
		"why-no-cluster":         {[]string{"why", "kafka"}, ExitUsage},
		"why-namespace":          {[]string{"why", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, ExitUsage},
		"dependents-no-argument": {[]string{"dependents"}, ExitUsage},
		"dependents-output":      {[]string{"dependents", "kafka", "-o", "xml"}, ExitUsage},
		"dependents-namespace":   {[]string{"dependents", "kafka", "-n", "cluster1"}, ExitUsage},
		"uninstall-no-cluster":   {[]string{"uninstall", "kafka"}, ExitUsage},
		"uninstall-timeout":      {[]string{"uninstall", "kafka", "--cluster", "cluster1", "--timeout", "-1s"}, ExitUsage},
		"uninstall-namespace":    {[]string{"uninstall", "kafka", "--cluster", "cluster1", "-n", "cluster1"}, ExitUsage},
		"install-nowhere":        {[]string{"install", "kafka"}, ExitUsage},
		"install-no-argument":    {[]string{"install", "--cluster", "cluster1"}, ExitUsage},
		"install-folder":         {[]string{"install", "./kafka", "--cluster", "cluster1"}, ExitUsage},
		"install-output":         {[]string{"install", "kafka", "--cluster", "cluster1", "-o", "json"}, ExitUsage},
		"install-placement":      {[]string{"install", "kafka", "--placement", "a/b/c"}, ExitUsage},
		"install-file":           {[]string{"install", "kafka", "--cluster", "cluster1", "-P", "testdata/none.yaml"}, ExitFailure},
		"update-no-parameter":    {[]string{"update", "kafka", "--cluster", "cluster1"}, ExitUsage},
		"update-namespace":       {[]string{"update", "kafka", "--cluster", "cluster1", "-n", "data", "-p", "A=1"}, ExitUsage},
		"upgrade-two-versions":   {[]string{"upgrade", "kafka", "--cluster", "cluster1", "--version", "1.0.0", "--operator-version", "1.0.0"}, ExitUsage},
		"show":                   {[]string{"package", "show", "testdata/versions/old"}, ExitOK},
		"show-wide":              {[]string{"package", "show", "testdata/versions/new", "-o", "wide"}, ExitOK},
		"show-yaml":              {[]string{"package", "show", "testdata/family", "-o", "yaml"}, ExitOK},
		"show-name":              {[]string{"package", "show", "testdata/family", "-o", "name"}, ExitOK},
		"show-parameters":        {[]string{"package", "show", "parameters", "testdata/versions/old"}, ExitOK},
		"show-plans":             {[]string{"package", "show", "plans", "testdata/versions/old"}, ExitOK},
		"show-tasks":             {[]string{"package", "show", "tasks", "testdata/family"}, ExitOK},
		"show-dependencies":      {[]string{"package", "show", "dependencies", "testdata/family"}, ExitOK},
		"show-plans-json":        {[]string{"package", "show", "plans", "testdata/family", "-o", "json"}, ExitOK},
		"show-broken":            {[]string{"package", "show", "testdata/broken"}, ExitFailure},
		"show-no-argument":       {[]string{"package", "show"}, ExitUsage},
		"show-unknown-flag":      {[]string{"package", "show", "kafka", "--frobnicate"}, ExitUsage},
		"diff":                   {[]string{"package", "diff", "testdata/versions/old", "testdata/versions/new"}, ExitOK},
		"diff-wide":              {[]string{"package", "diff", "testdata/versions/old", "testdata/versions/new", "-o", "wide"}, ExitOK},
		"diff-json":              {[]string{"package", "diff", "testdata/versions/new", "testdata/versions/old", "-o", "json"}, ExitOK},
		"diff-same":              {[]string{"package", "diff", "testdata/valid", "testdata/valid"}, ExitOK},
		"diff-operators":         {[]string{"package", "diff", "testdata/family/packages/cache", "testdata/family/packages/database"}, ExitOK},
		"diff-no-argument":       {[]string{"package", "diff", "testdata/valid"}, ExitUsage},
		"list-argument":          {[]string{"package", "list", "kafka"}, ExitUsage},
		"new-no-argument":        {[]string{"package", "new"}, ExitUsage},
		"new-bad-name":           {[]string{"package", "new", "My_Shop"}, ExitFailure},
		"new-not-empty":          {[]string{"package", "new", "shop", "testdata/valid"}, ExitFailure},
		"pack-broken":            {[]string{"package", "pack", "testdata/broken"}, ExitFailure},
		"pack-outside":           {[]string{"package", "pack", "testdata/circle/aa"}, ExitFailure},
		"pack-missing":           {[]string{"package", "pack", "testdata/none"}, ExitFailure},
		"index-no-argument":      {[]string{"package", "index"}, ExitUsage},
		"index-nothing":          {[]string{"package", "index", "testdata/valid"}, ExitFailure},
		"index-missing":          {[]string{"package", "index", "testdata/none"}, ExitFailure},
		"index-url":              {[]string{"package", "index", "testdata/valid", "--url", "packages"}, ExitUsage},
		"plan-run-no-plan":       {[]string{"plan", "run", "kafka", "--cluster", "cluster1"}, ExitUsage},
		"plan-run-no-cluster":    {[]string{"plan", "run", "kafka", "deploy"}, ExitUsage},
		"plan-run-parameter":     {[]string{"plan", "run", "kafka", "deploy", "--cluster", "cluster1", "-p", "SIZE"}, ExitUsage},
		"plan-wait-timeout":      {[]string{"plan", "wait", "kafka", "--cluster", "cluster1", "--timeout", "-1s"}, ExitUsage},
		"plan-cancel-no-cluster": {[]string{"plan", "cancel", "kafka"}, ExitUsage},
		"plan-history-output":    {[]string{"plan", "history", "kafka", "--cluster", "cluster1", "-o", "name"}, ExitUsage},
		"status-watch-output":    {[]string{"plan", "status", "kafka", "--cluster", "cluster1", "--watch", "-o", "json"}, ExitUsage},
		"enable-nowhere":         {[]string{"enable", "kafka"}, ExitUsage},
		"enable-twice":           {[]string{"enable", "kafka", "--cluster", "cluster1", "--all-clusters"}, ExitUsage},
		"enable-selector":        {[]string{"enable", "kafka", "--selector", "a in b"}, ExitUsage},
		"enable-empty-cluster":   {[]string{"enable", "kafka", "--cluster", "cluster1,,cluster2"}, ExitUsage},
		"disable-nowhere":        {[]string{"disable", "kafka"}, ExitUsage},
		"disable-namespace":      {[]string{"disable", "kafka", "--cluster", "cluster1", "-n", "data"}, ExitUsage},
		"enable-namespace":       {[]string{"enable", "kafka", "--cluster", "cluster1", "-n", "My_Data"}, ExitUsage},
		"install-namespace":      {[]string{"install", "kafka", "--cluster", "cluster1", "-n", "My_Data"}, ExitUsage},
		"get-namespace":          {[]string{"get", "-n", "cluster1"}, ExitUsage},
		"get-two-add-ons":        {[]string{"get", "kafka", "shop"}, ExitUsage},
		"fleet-argument":         {[]string{"fleet", "kafka"}, ExitUsage},
		"fleet-output":           {[]string{"fleet", "-o", "name"}, ExitUsage},
		"join-no-cluster":        {[]string{"join", "cluster1"}, ExitUsage},
		"join-name":              {[]string{"join", "Cluster_1", "--cluster-context", "cluster1"}, ExitUsage},
		"diagnose-two-clusters":  {[]string{"diagnose", "--cluster", "cluster1,cluster2", "--cluster-context", "cluster1"}, ExitUsage},
		"diagnose-timeout":       {[]string{"diagnose", "--timeout", "0s"}, ExitUsage},
		"version-argument":       {[]string{"version", "v1"}, ExitUsage},
		"version-twice":          {[]string{"version", "--cluster", "cluster1", "--all-clusters"}, ExitUsage},
		"version-client-json":    {[]string{"version", "--client", "-o", "json"}, ExitOK},
		"show-plans-broken":      {[]string{"package", "show", "plans", "testdata/broken"}, ExitFailure},
		"show-tasks-no-argument": {[]string{"package", "show", "tasks"}, ExitUsage},
		"show-parameters-output": {[]string{"package", "show", "parameters", "testdata/valid", "-o", "xml"}, ExitUsage},
		"show-dependencies-two":  {[]string{"package", "show", "dependencies", "testdata/valid", "testdata/family"}, ExitUsage},
		"unknown-command":        {[]string{"package", "frobnicate"}, ExitUsage},
		"unknown-flag":           {[]string{"plan", "status", "--frobnicate"}, ExitUsage},
		"misspelled-command":     {[]string{"tre", "--cluster", "cluster1"}, ExitUsage},
		"unknown-flag-of-all":    {[]string{"--frobnicate"}, ExitUsage},
		"version":                {[]string{"--version"}, ExitOK},
	} {
		t.Run(name, func(t *testing.T) {
			output, code := run(test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			golden(t, name, output)
		})
	}
}

func TestVerifyPointsToTheFolderOfTheOperator(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "operator"), os.DirFS("testdata/valid")); err != nil {
		t.Fatal(err)
	}
	output, code := run("package", "verify", dir)
	want := "error: " + dir + " holds no operator.yaml, but " + filepath.Join(dir, "operator") + " does: name that\n"
	if code != ExitFailure || output != want {
		t.Errorf("got %d, %s", code, output)
	}
}

func TestChangedFields(t *testing.T) {
	stored := kudo.OperatorVersionSpec{
		Version:   "1.0.0",
		Templates: map[string]string{"a": "1", "b": "1", "gone": "1"},
		Tasks:     []kudo.Task{{Name: "a", Kind: "Dummy"}},
		Plans:     map[string]kudo.Plan{"deploy": {}},
	}
	for sentence, test := range map[string]struct {
		edit func(*kudo.OperatorVersionSpec)
		want []string
	}{
		"nothing": {func(*kudo.OperatorVersionSpec) {}, nil},
		"empty and nothing are the same": {func(s *kudo.OperatorVersionSpec) {
			s.Parameters = []kudo.Parameter{}
			s.Tasks = []kudo.Task{{Name: "a", Kind: "Dummy", Spec: kudo.TaskSpec{PipeTaskSpec: kudo.PipeTaskSpec{Pipe: []kudo.PipeSpec{}}}}}
		}, nil},
		"templates": {func(s *kudo.OperatorVersionSpec) { s.Templates = map[string]string{"a": "2", "b": "1", "new": "1"} },
			[]string{"template a", "template gone", "template new"}},
		"everything else": {func(s *kudo.OperatorVersionSpec) {
			*s = kudo.OperatorVersionSpec{
				Operator: corev1.ObjectReference{Name: "x"}, Version: "2", AppVersion: "2", ConnectionString: "x", Templates: s.Templates,
				Parameters: []kudo.Parameter{{Name: "A"}}, UpgradableFrom: []corev1.ObjectReference{{Name: "x"}},
			}
		}, []string{"appVersion", "connectionString", "operator", "parameter A", "plan deploy", "task a", "upgradableFrom", "version"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			wanted := *stored.DeepCopy()
			test.edit(&wanted)
			if diff := cmp.Diff(test.want, changedFields(&stored, &wanted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestChangedTasks(t *testing.T) {
	child := func(name, version string) kudo.Task {
		task := kudo.Task{Name: name, Kind: kudo.TaskKudoOperator}
		task.Spec.Package, task.Spec.OperatorVersion = "zz", version
		return task
	}
	switched := child("a", "1.0.0")
	switched.Spec.EnablingParameter = "ON"
	dummy := kudo.Task{Name: "a", Kind: kudo.TaskDummy}
	stored := []kudo.Task{child("a", "1.0.0"), child("b", "1.0.0")}
	for sentence, test := range map[string]struct {
		wanted []kudo.Task
		want   []string
	}{
		"none":                     {stored, nil},
		"another order":            {[]kudo.Task{stored[1], stored[0]}, []string{"order of parameters or tasks"}},
		"another child":            {[]kudo.Task{child("a", "1.1.0"), stored[1]}, []string{"task a, which brings zz-1.1.0 along and not zz-1.0.0"}},
		"the same child otherwise": {[]kudo.Task{switched, stored[1]}, []string{"task a"}},
		"no child any more":        {[]kudo.Task{dummy, stored[1]}, []string{"task a"}},
		"one that is gone":         {[]kudo.Task{stored[1]}, []string{"task a"}},
		"a new one":                {append(stored[:2:2], child("c", "1.0.0")), []string{"task c"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, changedFields(&kudo.OperatorVersionSpec{Tasks: stored}, &kudo.OperatorVersionSpec{Tasks: test.wanted})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatusText(t *testing.T) {
	for name, view := range map[string]statusView{
		"status-never-run":  {instance: sampleInstance(), version: sampleVersion()},
		"status-running":    {instance: running(), version: sampleVersion()},
		"status-failed":     {instance: failed(), version: sampleVersion()},
		"status-timed-out":  {instance: timedOut(), version: sampleVersion()},
		"status-waiting":    {instance: waitingFor("cleanup"), version: sampleVersion()},
		"status-restarting": {instance: waitingFor("deploy"), version: sampleVersion()},
		"status-unseen":     {instance: unseenBy(), version: sampleVersion()},
		"status-removing":   {instance: heldUp(unseenBy()), version: sampleVersion()},
		"status-tree":       family(),
		"status-unreadable": {instance: running(), unreadable: errors.New(`operatorversions.kudo.dev "kafka-3.9.0-1.0.0" not found`)},
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, statusText(view)) })
	}
}

func TestAddOnText(t *testing.T) {
	held := addon.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: "cluster1"}}
	const lacks = "Required addon 'zookeeper' is not installed or not available. Brokers keep their metadata there."
	held.Status.Conditions = []metav1.Condition{
		condition(addon.ConditionAvailable, "False", addon.ReasonRequiredDependencyNotSatisfied, lacks),
		condition(addon.ConditionDegraded, "True", addon.ReasonRequiredDependencyNotSatisfied, lacks+"\nOptional addon 'monitoring' …"),
		condition(addon.ConditionResolved, "False", addon.ReasonWaitingForDependencies, "waits for zookeeper"),
	}
	removed := held
	removed.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	unknown := addon.ManagedClusterAddOn{ObjectMeta: held.ObjectMeta}
	for name, addOn := range map[string]addon.ManagedClusterAddOn{
		"addon-held": held, "addon-removed": removed, "addon-unknown": unknown,
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, addOnText(&addOn)) })
	}
}

func TestInventoryLacks(t *testing.T) {
	for sentence, test := range map[string]struct {
		found inventory
		want  string
	}{
		"a cluster with other things": {
			inventory{clusters: clusters{cluster: "c1", names: []string{"c1"}}, instances: []string{"a", "kafka"}, addOns: []string{"kafka"}},
			`cluster "c1" has neither an Instance nor an add-on "shop"; Instances: a, kafka; add-ons: kafka`,
		},
		"a cluster with nothing": {
			inventory{clusters: clusters{cluster: "c1", names: []string{"c1"}}},
			`cluster "c1" has neither an Instance nor an add-on "shop"; Instances: none; add-ons: none`,
		},
		"a cluster that does not exist": {
			inventory{clusters: clusters{cluster: "c9", names: []string{"c1", "c2"}}}, `there is no managed cluster "c9"; managed clusters: c1, c2`,
		},
		"no clusters at all": {inventory{clusters: clusters{cluster: "c9"}}, `there is no managed cluster "c9"; managed clusters: none`},
		"clusters that the user may not read": {
			inventory{clusters: clusters{cluster: "c1", unreadable: true}},
			`cluster "c1" has neither an Instance nor an add-on "shop"; Instances: none; add-ons: none`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := test.found.lacks("shop").Error(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func sampleInstance() *kudo.Instance {
	return &kudo.Instance{
		ObjectMeta: metav1.ObjectMeta{Name: "kafka", Namespace: "cluster1"},
		Spec:       kudo.InstanceSpec{OperatorVersion: corev1.ObjectReference{Namespace: "addon-packages", Name: "kafka-3.9.0-1.0.0"}},
	}
}

func sampleVersion() *kudo.OperatorVersion {
	return &kudo.OperatorVersion{Spec: kudo.OperatorVersionSpec{
		Operator: corev1.ObjectReference{Name: "kafka"},
		Version:  "1.0.0",
		Plans: map[string]kudo.Plan{
			"deploy": {Strategy: kudo.Serial, Phases: []kudo.Phase{
				{Name: "brokers", Strategy: kudo.Parallel, Steps: []kudo.Step{{Name: "config"}, {Name: "brokers"}}},
				{Name: "topics", Steps: []kudo.Step{{Name: "setup"}}},
			}},
			"cleanup": {Phases: []kudo.Phase{{Name: "drain", Steps: []kudo.Step{{Name: "drain"}, {Name: "wait"}}}}},
			"noop":    {},
		},
	}}
}

func condition(conditionType, status, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: metav1.ConditionStatus(status), Reason: reason, Message: message}
}

const waiting = "StatefulSet kafka/kafka: 1 of 3 replicas ready"

func running() *kudo.Instance {
	i := sampleInstance()
	i.Status = kudo.InstanceStatus{
		Execution: &kudo.Execution{Plan: "deploy", OperatorVersion: corev1.ObjectReference{Name: "kafka-3.8.0-0.9.0"}},
		Conditions: []metav1.Condition{
			condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, ""),
			condition(kudo.ConditionReady, "False", kudo.ReasonPlanInProgress, "plan deploy: "+waiting),
		},
		PlanStatus: map[string]kudo.PlanStatus{"deploy": {
			Name: "deploy", Status: kudo.InProgress, Message: `phase "brokers": step "brokers": task "brokers": ` + waiting,
			LastUpdatedTimestamp: &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
			Phases: []kudo.PhaseStatus{
				{Name: "brokers", Status: kudo.InProgress, Message: `step "brokers": task "brokers": ` + waiting, Steps: []kudo.StepStatus{
					{Name: "config", Status: kudo.Complete, Tasks: []kudo.TaskStatus{{Name: "config", Status: kudo.Complete}}},
					{Name: "brokers", Status: kudo.InProgress, Message: `task "brokers": ` + waiting, Tasks: []kudo.TaskStatus{
						{Name: "service", Status: kudo.Complete},
						{Name: "brokers", Status: kudo.InProgress, Message: waiting},
					}},
				}},
				{Name: "of-an-earlier-version", Status: kudo.Pending, Steps: []kudo.StepStatus{{Name: "setup", Status: kudo.Pending}}},
			},
		}},
	}
	return i
}

func failed() *kudo.Instance {
	i := running()
	i.Status.Execution.OperatorVersion = i.Spec.OperatorVersion
	i.Status.Conditions = []metav1.Condition{
		condition(kudo.ConditionResolved, "False", kudo.ReasonParametersInvalid, "parameter \"A\": it is not defined\nparameter \"B\": it is not defined"),
		condition(kudo.ConditionReady, "False", kudo.ReasonPlanFailed, `plan deploy failed`),
	}
	plan := i.Status.PlanStatus["deploy"]
	plan.Status, plan.Message = kudo.FatalError, `phase "brokers": step "brokers": task "brokers": template "x.yaml": line 3: unknown field`
	phase := &plan.Phases[0]
	phase.Status, phase.Message = kudo.FatalError, `step "brokers": task "brokers": template "x.yaml": line 3: unknown field`
	phase.Steps[1].Status, phase.Steps[1].Message = kudo.FatalError, `task "brokers": template "x.yaml": line 3: unknown field`
	phase.Steps[1].Tasks[1] = kudo.TaskStatus{Name: "brokers", Status: kudo.FatalError, Message: `template "x.yaml": line 3: unknown field`}
	i.Status.PlanStatus["deploy"] = plan
	return i
}

// timedOut ends with a message of the step itself.
func timedOut() *kudo.Instance {
	i := failed()
	plan := i.Status.PlanStatus["deploy"]
	plan.Message = `phase "brokers": step "brokers": timed out after 5m0s: task "brokers": ` + waiting
	plan.Phases[0].Message = `step "brokers": timed out after 5m0s: task "brokers": ` + waiting
	plan.Phases[0].Steps[1].Message = `timed out after 5m0s: task "brokers": ` + waiting
	plan.Phases[0].Steps[1].Tasks[1] = kudo.TaskStatus{Name: "brokers", Status: kudo.InProgress, Message: waiting}
	i.Status.PlanStatus["deploy"] = plan
	return i
}

// waitingFor runs deploy, and is asked by hand for a plan.
func waitingFor(plan string) *kudo.Instance {
	i := running()
	i.Status.Execution.OperatorVersion = corev1.ObjectReference{}
	i.Spec.PlanExecution = kudo.PlanExecution{PlanName: plan, UID: "by-hand"}
	return i
}

// heldUp is the Instance while it is removed, with something in the way.
func heldUp(i *kudo.Instance) *kudo.Instance {
	i.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	i.Status.Conditions = []metav1.Condition{
		{Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved},
		{Type: kudo.ConditionReady, Status: metav1.ConditionFalse, Reason: kudo.ReasonRemoving, Message: "deleting Deployment data/x: forbidden"},
	}
	return i
}

// unseenBy its agent is the last change of it.
func unseenBy() *kudo.Instance {
	i := running()
	i.Generation, i.Status.ObservedGeneration = 2, 1
	return i
}

func TestARefusedConnectionAsksForTheKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	output, code := run("plan", "status", "kafka", "--cluster", "cluster1", "--server", "http://127.0.0.1:1", "--cache-dir", t.TempDir())
	if code != ExitFailure || !strings.Contains(output, "does KUBECONFIG (or --kubeconfig) name the hub") {
		t.Errorf("exit code %d, %s", code, output)
	}
}

// family is an Instance with a child that fails, which has a child of its own, one that nobody has judged yet, and one that is switched off.
func family() statusView {
	child := func(name string, conditions ...metav1.Condition) statusView {
		instance := sampleInstance()
		instance.Name = name
		instance.Status.Conditions = conditions
		version := sampleVersion()
		version.Spec.Plans = map[string]kudo.Plan{"deploy": {}, "cleanup": {}}
		instance.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", Status: kudo.FatalError}}
		return statusView{instance: instance, version: version, withChildren: true}
	}
	root := child("aa")
	root.instance.Status.Children = []kudo.ChildStatus{
		{Task: "dd", Instance: "aa.dd", State: kudo.ChildRemoved}, {Task: "bb", Instance: "aa.bb", State: kudo.ChildApplied},
	}
	bb := child("aa.bb", condition(kudo.ConditionResolved, "True", kudo.ReasonResolved, ""),
		condition(kudo.ConditionReady, "False", kudo.ReasonPlanFailed, "plan deploy failed"))
	bb.children = []statusView{child("aa.bb.ee", condition(kudo.ConditionResolved, "False", kudo.ReasonParametersInvalid, "parameter X is not defined"))}
	root.children = []statusView{bb, child("aa.cc")}
	return root
}
