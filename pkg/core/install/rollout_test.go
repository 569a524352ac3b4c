package install

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
)

// rolledOut returns an add-on whose configuration (version 1.0.0 and one AddOnDeploymentConfig) OCM has resolved at these hashes.
func rolledOut(config *addonv1alpha1.AddOnDeploymentConfig, versionHash, configHash string) AddOn {
	a := addOn(config)
	a.Version.UID = "version"
	a.Configuration.Hashes = map[Reference]string{}
	reference := func(resource upstream.ConfigGroupResource, r upstream.ConfigReferent, hash string) upstream.ConfigReference {
		named := desiredBy(resource, r)
		named.DesiredConfig.SpecHash = hash
		return named
	}
	if configHash != "" {
		a.Configuration.Hashes[Reference{deploymentConfigs.Resource, types.NamespacedName{Namespace: "cluster1", Name: config.Name}}] = configHash
	}
	a.ManagedAddOn.Status.ConfigReferences = []upstream.ConfigReference{
		reference(deploymentConfigs, referent("cluster1", config.Name), configHash),
		reference(operatorVersions, referent(packages, "kafka-1.0.0"), versionHash),
	}
	return a
}

// ready makes the add-on's Instance run with the text, with condition Ready of that status at a generation.
func ready(a AddOn, text string, status metav1.ConditionStatus, generation int64) AddOn {
	a.Instances = []kudo.Instance{own("Resolved", 7, func(i *kudo.Instance) {
		i.Generation = 7
		i.Spec.Parameters = map[string]string{"TEXT": text}
		i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: "Ready", Status: status, ObservedGeneration: generation})
	})}
	return a
}

// runs makes the add-on's Instance run the OperatorVersion with that uid.
func runs(version types.UID) func(*AddOn) {
	return func(a *AddOn) {
		a.Instances[0].Status.Execution = &kudo.Execution{UID: "execution", OperatorVersion: corev1.ObjectReference{UID: version}}
	}
}

func TestRolloutOf(t *testing.T) {
	config := variables("a", "", "TEXT", "one")
	hash := DeploymentConfigHash(config)
	version := VersionHash(&kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{UID: "version"}})
	resolved := rolledOut(config, version, hash)
	wrong := variables("a", "", "TEXT", "one", "COUNTS", "3")
	misspelt := rolledOut(wrong, version, DeploymentConfigHash(wrong))
	before := `{"the":"mark before"}`
	mark := `{"addondeploymentconfigs.addon.open-cluster-management.io/cluster1/a":"` + hash +
		`","operatorversions.kudo.dev/addon-packages/kafka-1.0.0":"` + version + `"}`

	for name, tc := range map[string]struct {
		addOn   AddOn
		marked  string
		mark    string
		applied metav1.ConditionStatus // "" if nothing is reported
	}{
		"an add-on that OCM does not manage is not reported": {addOn: addOn(config)},
		"nor is one that is not plan-based": {
			addOn: resolved.with(func(a *AddOn) { a.Definition = supportingOther() }),
		},
		"before there is an Instance nothing is marked":      {addOn: resolved, applied: "False"},
		"a configuration is marked once its plan has ended":  {addOn: ready(resolved, "one", "True", 7), mark: mark, applied: "True"},
		"while the plan runs the previous mark is not kept":  {ready(resolved, "one", "False", 7), before, "", "False"},
		"what is said of an earlier generation does not do":  {ready(resolved, "one", "True", 6), before, "", "False"},
		"nor does an Instance that has other parameters yet": {ready(resolved, "zero", "True", 7), before, "", "False"},
		"nor one that runs a version of the name that was there before": {
			ready(resolved, "one", "True", 7).with(runs("another")), before, "", "False",
		},
		"it is that of the version that there is":        {ready(resolved, "one", "True", 7).with(runs("version")), before, mark, "True"},
		"an add-on that fails afterwards keeps its mark": {ready(resolved, "one", "False", 7), mark, mark, "True"},
		"a misspelt parameter is never marked":           {ready(misspelt, "one", "True", 7), before, before, "False"},
		"nor in a first installation":                    {misspelt, "", "", "False"},
		"a hash that OCM does not know yet is waited for": {
			ready(rolledOut(config, version, ""), "one", "True", 7), before, before, "False",
		},
		"a change that is not rolled out yet leaves what is marked": {
			ready(rolledOut(config, version, "other"), "one", "True", 7), before, before, "False",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := RolloutOf(tc.addOn, tc.marked)
			if got == nil {
				if tc.applied != "" {
					t.Error("nothing is told")
				}
				return
			}
			if got.Mark != tc.mark || got.Applied.Status != tc.applied {
				t.Errorf("got mark %s and %v\nwant mark %s and %v", got.Mark, got.Applied, tc.mark, tc.applied)
			}
		})
	}
}

func TestRolloutStateOfACluster(t *testing.T) {
	config := variables("a", "", "TEXT", "one")
	version := VersionHash(&kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{UID: "version"}})
	configured := func(status metav1.ConditionStatus) AddOn {
		return rolledOut(config, version, DeploymentConfigHash(config)).with(func(a *AddOn) {
			a.ManagedAddOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: status}}
		})
	}
	failed := func(generation int64) AddOn {
		a := ready(configured("True"), "one", "False", generation)
		conditions := a.Instances[0].Status.Conditions
		conditions[len(conditions)-1].Reason = kudo.ReasonPlanFailed
		return a
	}
	retried := func(generation int64) AddOn {
		a := ready(configured("True"), "one", "False", generation)
		a.Instances[0].Status.Execution = &kudo.Execution{Plan: "deploy", UID: "x", Owed: []kudo.OwedPlan{{Plan: "deploy", Retries: 1}}}
		return a
	}
	misspelt := variables("a", "", "TEXT", "one", "COUNTS", "3")
	invalid := rolledOut(misspelt, version, DeploymentConfigHash(misspelt)).with(func(a *AddOn) {
		a.ManagedAddOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: "True"}}
	})
	for name, tc := range map[string]struct {
		addOn AddOn
		want  RolloutState
	}{
		"a misspelt parameter stops it":                                     {invalid, "Failed"},
		"a plan that is retried has failed until it completes":              {retried(7), "Failed"},
		"a plan that was retried for an earlier generation runs":            {retried(6), "Progressing"},
		"a misspelt parameter stops it where the former configuration runs": {ready(invalid, "one", "True", 7), "Failed"},
		"it waits for its dependencies": {
			configured("True").with(func(a *AddOn) { a.Dependencies = unmet("Required") }), "Progressing",
		},
		"its OperatorVersion may be pushed yet": {configured("True").with(func(a *AddOn) { a.Version = nil }), "Progressing"},
		"its name is in use":                    {configured("True").with(func(a *AddOn) { a.Instances = []kudo.Instance{*newInstance("kafka")} }), "Failed"},
		"its parameters are invalid": {configured("True").with(func(a *AddOn) {
			a.Instances = []kudo.Instance{own("ParametersInvalid", 7, func(i *kudo.Instance) { i.Spec.Parameters = map[string]string{"TEXT": "one"} })}
		}), "Failed"},
		"OCM has not reached the cluster yet":                  {ready(configured("False"), "one", "True", 7), "Waiting"},
		"it has no Instance yet":                               {configured("True"), "Progressing"},
		"its plan runs":                                        {ready(configured("True"), "one", "False", 7), "Progressing"},
		"its plan has failed":                                  {failed(7), "Failed"},
		"what failed is the plan of an earlier generation":     {failed(6), "Progressing"},
		"it runs what OCM wants, and nothing more is to count": {ready(configured("True"), "one", "True", 7), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RolloutOf(tc.addOn, "").State; got != tc.want {
				t.Errorf("the state is %q, want %q", got, tc.want)
			}
		})
	}
}

// withSoak makes the add-on's Instance report condition Soaked at a generation, unless its reason is empty, after an execution.
func withSoak(a AddOn, reason string, generation int64) AddOn {
	return ready(a, "one", "True", 7).with(func(a *AddOn) {
		own := &a.Instances[0]
		own.Spec.HealthyFor = &metav1.Duration{Duration: 10 * time.Minute}
		own.Status.Execution = &kudo.Execution{UID: "e", OperatorVersion: corev1.ObjectReference{UID: "version"}}
		if reason == "" {
			return
		}
		own.Status.Soak = &kudo.SoakStatus{Execution: "e"}
		soaked := metav1.Condition{Type: kudo.ConditionSoaked, Status: "False", Reason: reason, Message: "healthy since noon", ObservedGeneration: generation}
		if reason == kudo.ReasonHealthyLongEnough {
			soaked.Status = "True"
		}
		own.Status.Conditions = append(own.Status.Conditions, soaked)
	})
}

func TestRolloutWaitsUntilAClusterIsHealthyForLongEnough(t *testing.T) {
	config := variables("a", "", "TEXT", "one")
	version := VersionHash(&kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{UID: "version"}})
	plain := rolledOut(config, version, DeploymentConfigHash(config)).with(func(a *AddOn) {
		a.ManagedAddOn.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: "True"}}
	})
	annotated := func(onDefinition, onConfig string) AddOn {
		return plain.with(func(a *AddOn) {
			a.Definition = a.Definition.DeepCopy()
			if onDefinition != "" {
				a.Definition.Annotations = map[string]string{kudo.AnnotationHealthyFor: onDefinition}
			}
			if onConfig != "" {
				name := types.NamespacedName{Namespace: "cluster1", Name: config.Name}
				annotatedConfig := config.DeepCopy()
				annotatedConfig.Annotations = map[string]string{kudo.AnnotationHealthyFor: onConfig}
				a.DeploymentConfigs = map[types.NamespacedName]*addonv1alpha1.AddOnDeploymentConfig{name: annotatedConfig}
			}
		})
	}
	required := annotated("10m", "")
	const opening = "a plan has completed with the add-on's current configuration, which has to be healthy for 10m0s: "
	for name, tc := range map[string]struct {
		addOn   AddOn
		state   RolloutState
		reason  string
		message string // of condition ManifestApplied, from its beginning
	}{
		"nothing is required":               {withSoak(plain, "", 7).with(func(a *AddOn) { a.Instances[0].Spec.HealthyFor = nil }), "", "PlanComplete", ""},
		"it has not been healthy yet":       {withSoak(required, kudo.ReasonSoaking, 7), "Soaking", "Soaking", opening + "healthy since noon"},
		"a container has restarted":         {withSoak(required, kudo.ReasonRestarted, 7), "Soaking", "Soaking", opening},
		"it has been healthy":               {withSoak(required, kudo.ReasonHealthyLongEnough, 7), "", "PlanComplete", ""},
		"it was with the former generation": {withSoak(required, kudo.ReasonHealthyLongEnough, 6), "Soaking", "Soaking", opening},
		"it was after the former execution": {withSoak(required, kudo.ReasonHealthyLongEnough, 7).with(func(a *AddOn) { a.Instances[0].Status.Soak.Execution = "former" }),
			"Soaking", "Soaking", opening},
		"it has failed":                         {withSoak(required, kudo.ReasonSoakFailed, 7), "Failed", "SoakFailed", opening + "healthy since noon"},
		"the agent does not report it":          {withSoak(required, "", 7), "Progressing", "AgentTooOld", opening + "the agent of the cluster does not report that"},
		"the Instance does not require it yet":  {withSoak(required, kudo.ReasonHealthyLongEnough, 7).with(func(a *AddOn) { a.Instances[0].Spec.HealthyFor = nil }), "Progressing", "PlanNotComplete", ""},
		"the plan has not completed":            {withSoak(required, kudo.ReasonHealthyLongEnough, 7).with(func(a *AddOn) { a.Instances[0].Status.Conditions[1].Status = "False" }), "Progressing", "PlanNotComplete", ""},
		"the config requires none":              {withSoak(annotated("10m", "0"), "", 7).with(func(a *AddOn) { a.Instances[0].Spec.HealthyFor = nil }), "", "PlanComplete", ""},
		"the config has precedence":             {withSoak(annotated("1h", "10m"), kudo.ReasonHealthyLongEnough, 7), "", "PlanComplete", ""},
		"the annotation is malformed":           {withSoak(annotated("soon", ""), kudo.ReasonHealthyLongEnough, 7), "Failed", "HealthyForInvalid", `annotation kudo.dev/healthy-for of ClusterManagementAddOn "kafka" is malformed, and no rollout counts a cluster as done: "soon": want a time of at most 24h`},
		"that of the config is":                 {withSoak(annotated("10m", "25h"), kudo.ReasonHealthyLongEnough, 7), "Failed", "HealthyForInvalid", "annotation kudo.dev/healthy-for of AddOnDeploymentConfig cluster1/a is malformed"},
		"it is malformed before the plan's end": {withSoak(annotated("soon", ""), "", 6).with(func(a *AddOn) { a.Instances[0].Status.Conditions[1].Status = "False" }), "Failed", "HealthyForInvalid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := RolloutOf(tc.addOn, "")
			if got.State != tc.state || got.Applied.Reason != tc.reason || !strings.HasPrefix(got.Applied.Message, tc.message) {
				t.Errorf("the state is %q, and ManifestApplied is %+v", got.State, got.Applied)
			}
			if done := got.Applied.Status == "True"; done != (got.Mark != "") || done != (tc.state == "") {
				t.Errorf("the mark is %q, and ManifestApplied is %+v", got.Mark, got.Applied)
			}
			after := RolloutOf(tc.addOn, mark(tc.addOn.ManagedAddOn.Status.ConfigReferences))
			if after.State != RolloutDone || after.Applied.Status != "True" || after.Mark == "" {
				t.Errorf("a rollout goes back: the state is %q, and ManifestApplied is %+v", after.State, after.Applied)
			}
			shown := tc.addOn.ManagedAddOn.DeepCopy()
			shown.Status.Conditions = append(shown.Status.Conditions, got.Applied)
			if state := RolloutStateOf(shown, tc.addOn.OwnInstance()); state != tc.state {
				t.Errorf("the conditions show state %q, want %q", state, tc.state)
			}
		})
	}
}

func TestMalformedTimesChangeNoInstance(t *testing.T) {
	config := variables("a", "", "TEXT", "one")
	a := withSoak(rolledOut(config, "", DeploymentConfigHash(config)), "", 7).with(func(a *AddOn) {
		a.Definition = a.Definition.DeepCopy()
		a.Definition.Annotations = map[string]string{kudo.AnnotationHealthyFor: "soon"}
	})
	decision := Decide(a)
	if decision.Instance == nil || !Matches(a.OwnInstance(), decision.Instance) || len(decision.Remarks) != 1 {
		t.Errorf("got Instance %+v and remarks %q", decision.Instance, decision.Remarks)
	}
}

func TestStageOf(t *testing.T) {
	progressive := func(maxConcurrency string) clusterv1alpha1.RolloutStrategy {
		return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.Progressive, Progressive: &clusterv1alpha1.RolloutProgressive{MaxConcurrency: intstr.Parse(maxConcurrency)}}
	}
	groups, all := clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.ProgressivePerGroup}, clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All}
	canary := clusterv1alpha1.MandatoryDecisionGroups{MandatoryDecisionGroups: []clusterv1alpha1.MandatoryDecisionGroup{{GroupName: "canary"}}}
	mandatory, mandatoryGroups := progressive("3"), clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.ProgressivePerGroup, ProgressivePerGroup: &clusterv1alpha1.RolloutProgressivePerGroup{MandatoryDecisionGroups: canary},
	}
	mandatory.Progressive.MandatoryDecisionGroups = canary
	for name, tc := range map[string]struct {
		strategies []clusterv1alpha1.RolloutStrategy
		queued     bool
		want       dependency.Stage
	}{
		"not by Placements":                        {},
		"all clusters at a time":                   {strategies: []clusterv1alpha1.RolloutStrategy{all}, queued: true},
		"a number":                                 {strategies: []clusterv1alpha1.RolloutStrategy{progressive("3")}, queued: true, want: dependency.Stage{Slots: 3}},
		"a percentage is rounded up":               {strategies: []clusterv1alpha1.RolloutStrategy{progressive("25%")}, want: dependency.Stage{Slots: 3}},
		"zero is no limit":                         {strategies: []clusterv1alpha1.RolloutStrategy{progressive("0")}},
		"a percentage with a fraction":             {strategies: []clusterv1alpha1.RolloutStrategy{progressive("33.4%")}, want: dependency.Stage{Slots: 4}},
		"a tiny percentage":                        {strategies: []clusterv1alpha1.RolloutStrategy{progressive("0.001%")}, want: dependency.Stage{Slots: 1}},
		"100 %":                                    {strategies: []clusterv1alpha1.RolloutStrategy{progressive("100%")}, want: dependency.Stage{Slots: 9}},
		"more than 100 % is no limit":              {strategies: []clusterv1alpha1.RolloutStrategy{progressive("1e300%")}},
		"a negative percentage":                    {strategies: []clusterv1alpha1.RolloutStrategy{progressive("-5%")}},
		"no percentage":                            {strategies: []clusterv1alpha1.RolloutStrategy{progressive("%")}},
		"a percentage that is no number":           {strategies: []clusterv1alpha1.RolloutStrategy{progressive("NaN%")}},
		"a fraction":                               {strategies: []clusterv1alpha1.RolloutStrategy{progressive("2.5")}},
		"no number":                                {strategies: []clusterv1alpha1.RolloutStrategy{progressive("many")}},
		"a negative number":                        {strategies: []clusterv1alpha1.RolloutStrategy{progressive("-1")}},
		"no parameters":                            {strategies: []clusterv1alpha1.RolloutStrategy{{Type: clusterv1alpha1.Progressive}}},
		"the present group":                        {strategies: []clusterv1alpha1.RolloutStrategy{groups}},
		"a later group":                            {strategies: []clusterv1alpha1.RolloutStrategy{groups}, queued: true, want: dependency.Stage{Number: 1}},
		"the present group, with mandatory groups": {strategies: []clusterv1alpha1.RolloutStrategy{mandatoryGroups}},
		"a later group, with mandatory groups":     {strategies: []clusterv1alpha1.RolloutStrategy{mandatoryGroups}, queued: true, want: dependency.Stage{Number: 1}},
		"included, with mandatory groups":          {strategies: []clusterv1alpha1.RolloutStrategy{mandatory}},
		"queued, with mandatory groups":            {strategies: []clusterv1alpha1.RolloutStrategy{mandatory}, queued: true, want: dependency.Stage{Number: 1}},
		"one of them has mandatory groups":         {strategies: []clusterv1alpha1.RolloutStrategy{progressive("1"), mandatory}, queued: true},
		"two Placements":                           {strategies: []clusterv1alpha1.RolloutStrategy{progressive("1"), progressive("20%")}, want: dependency.Stage{Slots: 3}},
		"one of them without a limit":              {strategies: []clusterv1alpha1.RolloutStrategy{progressive("1"), all}, queued: true},
		"one of them includes groups":              {strategies: []clusterv1alpha1.RolloutStrategy{progressive("1"), groups}, queued: true},
		"both of them include groups":              {strategies: []clusterv1alpha1.RolloutStrategy{groups, groups}, queued: true},
	} {
		t.Run(name, func(t *testing.T) {
			definition := &addonv1alpha1.ClusterManagementAddOn{}
			definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			for _, strategy := range tc.strategies {
				definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyPlacements
				definition.Spec.InstallStrategy.Placements = append(definition.Spec.InstallStrategy.Placements, upstream.PlacementStrategy{RolloutStrategy: strategy})
			}
			if got := StageOf(definition, 9, tc.queued); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
		})
	}
	if got := StageOf(nil, 9, true); got != (dependency.Stage{}) {
		t.Errorf("without a definition: %+v", got)
	}
}

func TestRolloutFillsInHashesOfWhatTheAddOnNames(t *testing.T) {
	config := variables("a", "", "TEXT", "one")
	a := rolledOut(config, "", "stale")
	if got := RolloutOf(a, "").SpecHashes; len(got) > 0 {
		t.Errorf("OCM takes these from the definition, and got %v", got)
	}
	a.ManagedAddOn.Spec.Configs = []upstream.AddOnConfig{
		{ConfigGroupResource: deploymentConfigs, ConfigReferent: referent("cluster1", "a")},
		{ConfigGroupResource: operatorVersions, ConfigReferent: referent(packages, "kafka-1.0.0")},
	}
	want := map[int]string{0: DeploymentConfigHash(config), 1: VersionHash(a.Version)}
	if diff := cmp.Diff(want, RolloutOf(a, "").SpecHashes); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	a.ManagedAddOn.Status.ConfigReferences[0].DesiredConfig.SpecHash = want[0]
	a.ManagedAddOn.Status.ConfigReferences[1].DesiredConfig.SpecHash = want[1]
	if got := RolloutOf(a, "").SpecHashes; len(got) > 0 {
		t.Errorf("they are filled in, and got %v", got)
	}
}

func TestHashesChangeWithWhatTheyAreOf(t *testing.T) {
	one, two := variables("a", "", "TEXT", "one"), variables("a", "", "TEXT", "two")
	if DeploymentConfigHash(one) == DeploymentConfigHash(two) {
		t.Error("two specs have the same hash")
	}
	again := one.DeepCopy()
	again.ResourceVersion, again.Labels = "2", map[string]string{"a": "b"}
	if DeploymentConfigHash(one) != DeploymentConfigHash(again) {
		t.Error("metadata counts")
	}
}

func TestDecideWaitsForTheRolloutOfAChangedConfig(t *testing.T) {
	a := ready(rolledOut(variables("a", "", "TEXT", "two"), "", "the hash of what it was"), "one", "True", 7)
	got := Decide(a)
	if got.Instance != nil || got.Resolved == nil || got.Resolved.Reason != "WaitingForConfiguration" {
		t.Errorf("got Instance %v and %v", got.Instance, got.Resolved)
	}
}

// OCM compares it with the result of ConfigsToMap of addon-framework.
func TestMarkIsInTheFormatOfOCM(t *testing.T) {
	references := []upstream.ConfigReference{desiredBy(configMaps, referent("cluster1", "c")), desiredBy(deploymentConfigs, referent("cluster1", "d"))}
	for i := range references {
		references[i].DesiredConfig.SpecHash = fmt.Sprint(i)
	}
	of := map[string]string{}
	if err := json.Unmarshal([]byte(mark(references)), &of); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"configmaps/cluster1/c": "0", "addondeploymentconfigs.addon.open-cluster-management.io/cluster1/d": "1"}
	if diff := cmp.Diff(want, of); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
