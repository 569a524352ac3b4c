package install

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	upstream "open-cluster-management.io/api/addon/v1alpha1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Doubt is a variable, or a key of a ConfigMap, that may be a misspelt parameter: the OperatorVersion does not define it, and its name is
// close to a parameter that the configuration does not set.
type Doubt struct {
	Variable string
	// Meant is the closest of those parameters.
	Meant string
	// Configs are the AddOnDeploymentConfigs and ConfigMaps that set the variable, in the order in which they are applied.
	Configs []Reference
}

// Others holds what shows whether a doubtful variable serves another purpose: at least all versions of the operators concerned, and the
// add-ons that name one of the configs, with their definitions. It ignores everything else.
type Others struct {
	Versions    []kudo.OperatorVersion
	Definitions []addonv1alpha1.ClusterManagementAddOn
	AddOns      []addonv1alpha1.ManagedClusterAddOn
}

// Define returns the names of the doubtful variables of an add-on that another version of its operator defines, or another add-on that uses
// one of the configs. Whether an add-on defines a variable cannot be known if it is not plan-based, or if its OperatorVersion
// does not exist: both count as defining it.
func (o Others) Define(addOn, operator string, doubts []Doubt) map[string]bool {
	defined := map[string]bool{}
	for _, doubt := range doubts {
		defined[doubt.Variable] = o.operatorDefines(operator, doubt.Variable) ||
			slices.ContainsFunc(o.Users(addOn, doubt.Configs), func(u User) bool { return o.mayDefine(u, doubt.Variable) })
	}
	return defined
}

// User is an add-on that uses a config.
type User struct {
	// Definition is nil if it does not exist.
	Definition *addonv1alpha1.ClusterManagementAddOn
	// Versions are the names of the OperatorVersions that it may run.
	Versions []types.NamespacedName
}

// Users returns the add-ons that use one of the configs, except for those of a name. Specs decide: every status follows from them.
func (o Others) Users(except string, configs []Reference) []User {
	var users []User
	definitions := make(map[string]*addonv1alpha1.ClusterManagementAddOn, len(o.Definitions))
	for i := range o.Definitions {
		definition := &o.Definitions[i]
		definitions[definition.Name] = definition
		if named := References(definition, nil); definition.Name != except && namesAny(named, configs) {
			users = append(users, User{Definition: definition, Versions: versionsAmong(named)})
		}
	}
	for i := range o.AddOns {
		addOn := &o.AddOns[i]
		if named := ReferencesInSpec(addOn); addOn.Name != except && namesAny(named, configs) {
			definition := definitions[addOn.Name]
			users = append(users, User{Definition: definition, Versions: versionsAmong(append(named, References(definition, nil)...))})
		}
	}
	return users
}

// namesAny reports whether the references include one of the configs.
func namesAny(named, configs []Reference) bool {
	return slices.ContainsFunc(named, func(r Reference) bool { return slices.Contains(configs, r) })
}

// versionsAmong returns the names of the OperatorVersions among the references.
func versionsAmong(named []Reference) []types.NamespacedName {
	var versions []types.NamespacedName
	for _, r := range named {
		if r.Resource == operatorVersions.Resource && !slices.Contains(versions, r.NamespacedName) {
			versions = append(versions, r.NamespacedName)
		}
	}
	return versions
}

// mayDefine reports whether the add-on defines the variable, as far as that can be known.
func (o Others) mayDefine(u User, variable string) bool {
	if !IsPlanManaged(u.Definition) {
		return true
	}
	return slices.ContainsFunc(u.Versions, func(name types.NamespacedName) bool {
		at := slices.IndexFunc(o.Versions, func(v kudo.OperatorVersion) bool { return v.Namespace == name.Namespace && v.Name == name.Name })
		return at < 0 || o.operatorDefines(o.Versions[at].OperatorName(), variable)
	})
}

// operatorDefines reports whether any version of the operator defines the parameter.
func (o Others) operatorDefines(operator, name string) bool {
	return slices.ContainsFunc(o.Versions, func(v kudo.OperatorVersion) bool {
		return v.OperatorName() == operator &&
			slices.ContainsFunc(v.Spec.Parameters, func(p kudo.Parameter) bool { return p.Name == name })
	})
}

// source is an existing AddOnDeploymentConfig or ConfigMap with its variables or keys.
type source struct {
	Reference
	variables []upstream.CustomizedVariable
}

// sources returns the existing sources of parameters, in the order in which they are applied: ConfigMaps take precedence.
func (a AddOn) sources() []source {
	var found []source
	for _, name := range a.Configuration.DeploymentConfigs {
		if config := a.DeploymentConfigs[name]; config != nil {
			found = append(found, source{Reference{deploymentConfigs.Resource, name}, config.Spec.CustomizedVariables})
		}
	}
	for _, name := range a.Configuration.ConfigMaps {
		if config := a.ConfigMaps[name]; config != nil {
			of := source{Reference: Reference{configMaps.Resource, name}}
			for _, key := range slices.Sorted(maps.Keys(config.Data)) {
				of.variables = append(of.variables, upstream.CustomizedVariable{Name: key, Value: config.Data[key]})
			}
			found = append(found, of)
		}
	}
	return found
}

// given are the variables of all sources of an add-on.
type given struct {
	version *kudo.OperatorVersion
	// parameters are the values of the variables that the version defines; later sources take precedence.
	parameters map[string]string
	// references are those of the sensitive ones, and invalid the problems of the others.
	references []kudo.ParameterFrom
	invalid    []Problem
	// undefined are the names of the others, with the sources that set them.
	undefined map[string][]Reference
}

// variablesOf merges the variables of the sources, in that order.
func variablesOf(version *kudo.OperatorVersion, sources []source) given {
	g := given{version: version, parameters: map[string]string{}, undefined: map[string][]Reference{}}
	if len(sources) == 0 {
		return g
	}
	defined := make(map[string]bool, len(version.Spec.Parameters))
	for _, p := range version.Spec.Parameters {
		defined[p.Name] = true
	}
	setBy := map[string]Reference{}
	for _, source := range sources {
		for _, variable := range source.variables {
			if defined[variable.Name] {
				g.parameters[variable.Name], setBy[variable.Name] = variable.Value, source.Reference
			} else {
				g.undefined[variable.Name] = append(g.undefined[variable.Name], source.Reference)
			}
		}
	}
	if size := sizeOf(g.parameters); size > maxParameterBytes {
		g.invalid = append(g.invalid, Problem{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(
			"the parameters have %d bytes, and an Instance holds at most %d: shorten them, or keep large files in objects of the managed cluster",
			size, maxParameterBytes)})
	}
	var problems []parameter.Problem
	g.parameters, g.references, problems = parameter.References(version.Spec.Parameters, g.parameters)
	for _, problem := range problems {
		g.invalid = append(g.invalid, Problem{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(
			"%s: variable %s: %s", setBy[problem.Parameter].Describe(), problem.Parameter, problem.Reason)})
	}
	return g
}

// maxParameterBytes is the maximum size of the names and values of an add-on's parameters: an Instance holds them twice, and etcd limits an object
// to 1.5 MiB.
const maxParameterBytes = 512 << 10

// sizeOf returns the number of bytes of names and values.
func sizeOf(parameters map[string]string) (size int) {
	for name, value := range parameters {
		size += len(name) + len(value)
	}
	return size
}

// doubts returns the doubtful variables, sorted.
func (g given) doubts() []Doubt {
	if len(g.undefined) == 0 {
		return nil
	}
	var unset []string
	for _, p := range g.version.Spec.Parameters {
		// A variable has the name of an identifier.
		_, set := g.parameters[p.Name]
		set = set || slices.ContainsFunc(g.references, func(f kudo.ParameterFrom) bool { return f.Name == p.Name })
		if !set && len(validation.IsCIdentifier(p.Name)) == 0 {
			unset = append(unset, p.Name)
		}
	}
	var doubts []Doubt
	for _, name := range slices.Sorted(maps.Keys(g.undefined)) {
		if meant := text.ClosestMatch(name, unset); meant != "" {
			doubts = append(doubts, Doubt{Variable: name, Meant: meant, Configs: g.undefined[name]})
		}
	}
	return doubts
}

// misspelt returns the doubtful variables that are not defined elsewhere.
func (g given) misspelt(definedElsewhere map[string]bool) []Doubt {
	return slices.DeleteFunc(g.doubts(), func(d Doubt) bool { return definedElsewhere[d.Variable] })
}

// ignoredNames returns the names of the undefined variables that are not misspelt, sorted.
func (g given) ignoredNames(misspelt []Doubt) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(g.undefined)), func(name string) bool {
		return slices.ContainsFunc(misspelt, func(d Doubt) bool { return d.Variable == name })
	})
}

// problems returns a problem for each sensitive variable that is no reference, and for each misspelt variable, up to a limit.
func (g given) problems(misspelt []Doubt) []Problem {
	problems := slices.Clone(g.invalid[:min(len(g.invalid), problemLimit)])
	for _, doubt := range misspelt[:min(len(misspelt), problemLimit)] {
		problems = append(problems, Problem{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf(
			"%s sets variable %s, which OperatorVersion %q does not define: did you mean %s? Correct or remove the variable",
			doubt.Configs[0].Describe(), doubt.Variable, g.version.Name, doubt.Meant)})
	}
	if left := len(misspelt) - problemLimit; left > 0 {
		problems = append(problems, Problem{addonv1alpha1.ReasonConfigurationInvalid, fmt.Sprintf("and %d more misspelt variables", left)})
	}
	return problems
}

// Setting is a value in an AddOnDeploymentConfig or a ConfigMap.
type Setting struct {
	Reference
	Value string
}

// Settings returns what the existing sources of an add-on set, by name of the parameter: of several sources, the last one takes precedence.
func (a AddOn) Settings() map[string]Setting {
	settings := map[string]Setting{}
	for _, source := range a.sources() {
		for _, variable := range source.variables {
			settings[variable.Name] = Setting{source.Reference, variable.Value}
		}
	}
	return settings
}
