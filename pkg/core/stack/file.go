package stack

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	kjson "sigs.k8s.io/json"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Kind is the kind of a stack file. It is no object of the hub.
const Kind = "Stack"

// Stack is a stack file: add-ons that are applied together.
type Stack struct {
	// Name marks what belongs to the stack.
	Name   string
	AddOns []Entry
}

// Entry is an add-on of a stack. Fields that it does not set are those of the stack.
type Entry struct {
	Name Text
	// Package is the path, the URL or the name of a package, Chart that of a Helm chart: one of them.
	Package, Chart Text
	// ChartVersion selects a version of a chart in a repository or a registry.
	ChartVersion Text
	// Namespace is the install namespace on managed clusters.
	Namespace string
	// Clusters are the managed clusters on which it is enabled, and Placements select those on which OCM installs it.
	Clusters   []Text
	Placements []types.NamespacedName
	// RolloutStrategy is how OCM rolls out changes to what each placement selects; nil for all clusters at once.
	RolloutStrategy *clusterv1alpha1.RolloutStrategy
	// Requires and Optional are the dependencies, in the order of the file, with their places.
	Dependencies []Dependency
	// Parameters are those of a package, and Values those of a chart; nil if there are none.
	Parameters, Values *yamlv3.Node
}

// Dependency is a dependency of an add-on of a stack.
type Dependency struct {
	addonv1alpha1.AddonDependency
	Place
}

// maxAddOns limits the add-ons of a stack.
const maxAddOns = 500

// Parse decodes a stack file strictly. It returns every problem; the stack is valid if there are none.
func Parse(content string) (*Stack, []Problem) {
	d := &document{}
	root := d.root(content)
	if root == nil {
		return nil, d.problems
	}
	f := &file{document: d}
	f.read(root)
	return &f.stack, d.problems
}

// file is a stack file that is being decoded.
type file struct {
	*document
	stack Stack
	// defaults are the fields of the stack that hold for all add-ons.
	defaults Entry
}

func (f *file) read(root *yamlv3.Node) {
	var version, kind, name Text
	var addOns *yamlv3.Node
	f.object(root, "a stack",
		field{"apiVersion", f.text("apiVersion", &version)},
		field{"kind", f.text("kind", &kind)},
		field{"metadata", func(node *yamlv3.Node) { f.object(node, "metadata", field{"name", f.text("metadata.name", &name)}) }},
		field{"spec", func(node *yamlv3.Node) {
			f.object(node, "spec", append(f.location(&f.defaults), field{"addOns", func(node *yamlv3.Node) { addOns = node }})...)
		}},
	)
	f.checkHead(root, version, kind, name)
	f.stack.Name = name.Value
	if addOns == nil {
		f.add(root, "spec.addOns is required: the list of add-ons of the stack")
		return
	}
	f.list("spec.addOns", f.readEntry)(addOns)
	if len(f.stack.AddOns) > maxAddOns {
		f.add(addOns, "the stack has %d add-ons, more than %d: divide it", len(f.stack.AddOns), maxAddOns)
	}
	f.checkNames()
}

// checkHead checks what every stack file has.
func (f *file) checkHead(root *yamlv3.Node, version, kind, name Text) {
	if version.Value != kudo.GroupVersion.String() {
		f.addAt(version.Place, root, "apiVersion must be %s, got %s", kudo.GroupVersion, text.Quote(version.Value))
	}
	if kind.Value != Kind {
		f.addAt(kind.Place, root, "kind must be %s, got %s", Kind, text.Quote(kind.Value))
	}
	if len(validation.IsDNS1123Label(name.Value)) > 0 {
		f.addAt(name.Place, root, "metadata.name must consist of at most 63 lowercase letters, digits and '-', got %s", text.Quote(name.Value))
	}
}

// addAt adds a problem of a field, or of the node that lacks it.
func (f *file) addAt(place Place, otherwise *yamlv3.Node, format string, args ...any) {
	if place == (Place{}) {
		place = placeOf(otherwise)
	}
	f.add(&yamlv3.Node{Line: place.Line, Column: place.Column}, format, args...)
}

// location are the fields that state where an add-on is installed, for one add-on or for all.
func (f *file) location(into *Entry) []field {
	return []field{
		{"namespace", func(node *yamlv3.Node) {
			var name Text
			f.text("namespace", &name)(node)
			if name.Value != "" && len(validation.IsDNS1123Label(name.Value)) > 0 {
				f.add(node, "namespace %s is not valid: names of namespaces consist of lowercase letters, digits and '-'", text.Quote(name.Value))
			}
			into.Namespace = name.Value
		}},
		{"clusters", func(node *yamlv3.Node) {
			into.Clusters = []Text{} // none, also if the stack names some
			f.list("clusters", func(node *yamlv3.Node) {
				var name Text
				f.text("the name of a cluster", &name)(node)
				switch {
				case slices.ContainsFunc(into.Clusters, func(other Text) bool { return other.Value == name.Value }):
					f.add(node, "cluster %s is listed twice: remove one of the entries", text.Quote(name.Value))
				case name.Value != "" && len(validation.IsDNS1123Subdomain(name.Value)) > 0:
					f.add(node, "%s cannot be the name of a managed cluster", text.Quote(name.Value))
				default:
					into.Clusters = append(into.Clusters, name)
				}
			})(node)
		}},
		{"placements", func(node *yamlv3.Node) {
			into.Placements = []types.NamespacedName{}
			f.list("placements", func(node *yamlv3.Node) { into.Placements = f.placement(node, into.Placements) })(node)
		}},
		{"rolloutStrategy", f.strategy(&into.RolloutStrategy)},
	}
}

// placement appends a Placement, as NAMESPACE/NAME.
func (f *file) placement(node *yamlv3.Node, before []types.NamespacedName) []types.NamespacedName {
	var name Text
	f.text("a placement", &name)(node)
	if name.Value == "" {
		return before
	}
	namespace, rest, divided := strings.Cut(name.Value, "/")
	found := types.NamespacedName{Namespace: namespace, Name: rest}
	switch {
	case !divided || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(rest)) > 0:
		f.add(node, "a placement must be NAMESPACE/NAME of a Placement of OCM, got %s", text.Quote(name.Value))
	case slices.Contains(before, found):
		f.add(node, "placement %s is listed twice: remove one of the entries", text.Quote(name.Value))
	}
	return append(before, found)
}

// readEntry decodes one add-on.
func (f *file) readEntry(node *yamlv3.Node) {
	e := Entry{}
	fields := append([]field{
		{"name", f.text("name", &e.Name)},
		{"package", f.text("package", &e.Package)},
		{"chart", f.text("chart", &e.Chart)},
		{"version", f.text("version", &e.ChartVersion)},
	}, f.location(&e)...)
	f.object(node, "an add-on", append(fields,
		field{"requires", f.dependencies(&e, "requires", addonv1alpha1.DependencyTypeRequired)},
		field{"optional", f.dependencies(&e, "optional", addonv1alpha1.DependencyTypeOptional)},
		field{"parameters", f.given("parameters", &e.Parameters)},
		field{"values", f.given("values", &e.Values)},
	)...)
	if node.Kind != yamlv3.MappingNode {
		return
	}
	e = e.within(f.defaults)
	f.checkEntry(node, e)
	f.stack.AddOns = append(f.stack.AddOns, e)
}

// within returns the add-on with the fields of the stack that it does not set.
func (e Entry) within(defaults Entry) Entry {
	if e.Namespace == "" {
		e.Namespace = defaults.Namespace
	}
	if e.Namespace == "" {
		e.Namespace = e.Name.Value
	}
	if e.Clusters == nil && e.Placements == nil {
		e.Clusters, e.Placements = defaults.Clusters, defaults.Placements
	}
	if e.RolloutStrategy == nil && len(e.Placements) > 0 {
		e.RolloutStrategy = defaults.RolloutStrategy
	}
	return e
}

// checkEntry checks that the fields of an add-on fit together.
func (f *file) checkEntry(node *yamlv3.Node, e Entry) {
	if e.Name.Value == "" || len(validation.IsDNS1123Label(e.Name.Value)) > 0 {
		f.addAt(e.Name.Place, node, "name must consist of at most 63 lowercase letters, digits and '-', got %s", text.Quote(e.Name.Value))
	}
	f.checkRuns(node, e)
	if len(e.Clusters) > 0 && len(e.Placements) > 0 {
		f.add(node, "add-on %s has clusters and placements: OCM removes an add-on from clusters that no placement selects: remove one of them",
			text.Quote(e.Name.Value))
	}
	if e.RolloutStrategy != nil && len(e.Placements) == 0 {
		f.add(node, "add-on %s has a rolloutStrategy and no placements, which it is for: remove it, or set placements", text.Quote(e.Name.Value))
	}
}

// checkRuns checks that an add-on has a package with parameters, or a chart with values.
func (f *file) checkRuns(node *yamlv3.Node, e Entry) {
	switch {
	case e.Package.Value == "" && e.Chart.Value == "":
		f.add(node, "add-on %s has neither package nor chart: set one of them", text.Quote(e.Name.Value))
	case e.Package.Value != "" && e.Chart.Value != "":
		f.addAt(e.Chart.Place, node, "add-on %s has a package and a chart: remove one of them", text.Quote(e.Name.Value))
	case e.Package.Value != "" && e.ChartVersion.Value != "":
		f.addAt(e.ChartVersion.Place, node, "version belongs to a chart, and add-on %s has a package: for one on the hub, write package: NAME@VERSION",
			text.Quote(e.Name.Value))
	case e.Package.Value != "" && e.Values != nil:
		f.add(e.Values, "values are those of a chart, and add-on %s has a package: use parameters", text.Quote(e.Name.Value))
	case e.Chart.Value != "" && e.Parameters != nil:
		f.add(e.Parameters, "parameters are those of a package, and add-on %s has a chart: use values", text.Quote(e.Name.Value))
	}
}

// given decodes a map whose keys are checked once the package or the chart is known.
func (f *file) given(what string, into **yamlv3.Node) func(node *yamlv3.Node) {
	return func(node *yamlv3.Node) {
		if node.Kind != yamlv3.MappingNode {
			f.add(node, "%s must be a map, got %s", what, describe(node))
			return
		}
		*into = node
	}
}

// dependencies decodes a list of names, or of maps with the fields of a dependency.
func (f *file) dependencies(e *Entry, what string, of addonv1alpha1.DependencyType) func(node *yamlv3.Node) {
	return f.list(what, func(node *yamlv3.Node) {
		var name, version, message, removal, install Text
		var alternatives []string
		var clusters *addonv1alpha1.ClusterSelector
		if node.Kind == yamlv3.MappingNode {
			f.object(node, "a dependency",
				field{"name", f.text("name", &name)}, field{"version", f.text("version", &version)}, field{"message", f.text("message", &message)},
				field{"alternatives", f.texts("alternatives", &alternatives)}, field{"clusters", f.selector(&clusters)},
				field{"removal", f.text("removal", &removal)}, field{"install", f.text("install", &install)})
		} else {
			f.text("a dependency", &name)(node)
		}
		if name.Value == "" {
			if node.Kind == yamlv3.MappingNode {
				f.add(node, "name of the add-on is required in %s", what)
			}
			return
		}
		d := Dependency{Place: name.Place, AddonDependency: addonv1alpha1.AddonDependency{
			Name: name.Value, Type: of, Message: message.Value, Version: version.Value, Alternatives: alternatives, Clusters: clusters,
			Removal: addonv1alpha1.RemovalPolicy(removal.Value), Install: addonv1alpha1.InstallPolicy(install.Value),
		}}
		e.Dependencies = append(e.Dependencies, d)
	})
}

// texts decodes a list of texts.
func (f *file) texts(what string, into *[]string) func(node *yamlv3.Node) {
	return f.list(what, func(node *yamlv3.Node) {
		var one Text
		if f.text("an entry of "+what, &one)(node); one.Value != "" {
			*into = append(*into, one.Value)
		}
	})
}

// selector decodes a selector of clusters, with the fields of the API.
func (f *file) selector(into **addonv1alpha1.ClusterSelector) func(node *yamlv3.Node) {
	return func(node *yamlv3.Node) {
		if node.Kind != yamlv3.MappingNode {
			f.add(node, `clusters of a dependency must be a selector such as {labelSelector: {matchLabels: {gpu: "true"}}}, got %s`, describe(node))
			return
		}
		decoded, err := decode[addonv1alpha1.ClusterSelector](node)
		if err != nil {
			f.add(node, "clusters of a dependency cannot be read: %v", err)
			return
		}
		*into = decoded
	}
}

// strategy decodes a rollout strategy, with the fields of OCM's API.
func (f *file) strategy(into **clusterv1alpha1.RolloutStrategy) func(node *yamlv3.Node) {
	return func(node *yamlv3.Node) {
		if node.Kind != yamlv3.MappingNode {
			f.add(node, "rolloutStrategy must be a map such as {type: Progressive, progressive: {maxConcurrency: 25%%}}, got %s", describe(node))
			return
		}
		decoded, err := decode[clusterv1alpha1.RolloutStrategy](node)
		switch {
		case err != nil:
			f.add(node, "rolloutStrategy cannot be read: %v", err)
		case !slices.Contains(strategies, decoded.Type):
			f.add(node, "rolloutStrategy has type %s: must be All, Progressive or ProgressivePerGroup", text.Quote(string(decoded.Type)))
		default:
			*into = decoded
		}
	}
}

// strategies are the types of rollout strategies.
var strategies = []clusterv1alpha1.RolloutType{clusterv1alpha1.All, clusterv1alpha1.Progressive, clusterv1alpha1.ProgressivePerGroup}

// decode decodes a map strictly into a type of an API.
func decode[T any](node *yamlv3.Node) (*T, error) {
	var given any
	if err := node.Decode(&given); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	decoded := new(T)
	strict, err := kjson.UnmarshalStrict(encoded, decoded)
	return decoded, errors.Join(append(strict, err)...)
}

// checkNames checks that each add-on is listed once.
func (f *file) checkNames() {
	lines := map[string]int{}
	for _, e := range f.stack.AddOns {
		if line, twice := lines[e.Name.Value]; twice && e.Name.Value != "" {
			f.addAt(e.Name.Place, nil, "add-on %s is listed twice, first in line %d: remove one", text.Quote(e.Name.Value), line)
			continue
		}
		lines[e.Name.Value] = e.Name.Line
	}
}
