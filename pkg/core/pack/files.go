package pack

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/parameter"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The readers below set the defaults of the resource definition (serial, string), so that a package equals its stored form.

// operator decodes operator.yaml. Lines are recorded by the paths of an OperatorVersion.
func (d *document) operator(root *yaml.Node, p *Package) {
	d.object(root, "",
		key{name: "apiVersion", read: d.apiVersion},
		key{name: "name", read: d.text(&p.Name), required: true},
		key{name: "description", read: d.text(&p.Operator.Description), describes: true},
		key{name: "operatorVersion", formerly: "version", read: d.text(&p.Version.Version), required: true},
		key{name: "appVersion", read: d.text(&p.Version.AppVersion)},
		key{name: "dependencyVersion", read: d.text(&p.Version.DependencyVersion)},
		key{name: "dependencies", read: d.list(d.dependency(&p.Version.Dependencies))},
		key{name: "kudoVersion", read: d.text(&p.Operator.KudoVersion)},
		key{name: "kubernetesVersion", read: d.kubernetesVersion(p)},
		key{name: "maintainers", read: d.list(d.maintainer(&p.Operator.Maintainers)), describes: true},
		key{name: "url", read: d.text(&p.Operator.URL), describes: true},
		key{name: "namespaceManifest", read: d.text(&p.Operator.NamespaceManifest)},
		key{name: "permissions", read: d.permissions(&p.Version.Permissions)},
		key{name: "health", read: d.list(d.healthRule(&p.Version.Health))},
		key{name: "drift", read: d.drift(&p.Version.Drift)},
		key{name: "returnable", read: d.flag(&p.Version.Returnable)},
		key{name: "tasks", read: d.list(d.task(&p.Version.Tasks)), required: true},
		key{name: "plans", read: d.plans(&p.Version.Plans), required: true},
	)
	d.corresponds("version", "operatorVersion")
	d.corresponds("operator.name", "name")
}

// corresponds records that path in the OperatorVersion corresponds to inFile in the file.
func (d *document) corresponds(path, inFile string) {
	if at, ok := d.places[inFile]; ok {
		d.places[path] = at
	}
}

func (d *document) apiVersion(node *yaml.Node, path string) {
	if want := kudo.GroupVersion.String(); node.Value != want {
		d.problem(node, path, "must be %s, got %s", want, describe(node))
	}
}

// kubernetesVersion decodes the field for the Operator, as KUDO has it, and for the OperatorVersion, which clusters compare.
func (d *document) kubernetesVersion(p *Package) reader {
	return func(node *yaml.Node, path string) {
		d.text(&p.Version.KubernetesVersion)(node, path)
		p.Operator.KubernetesVersion = p.Version.KubernetesVersion
	}
}

func (d *document) dependency(into *[]kudo.DependencyConstraint) reader {
	return func(node *yaml.Node, path string) {
		var c kudo.DependencyConstraint
		d.object(node, path,
			key{name: "name", read: d.text(&c.Name), required: true},
			key{name: "version", read: d.text(&c.Version), required: true},
		)
		*into = append(*into, c)
	}
}

func (d *document) healthRule(into *[]kudo.HealthRule) reader {
	return func(node *yaml.Node, path string) {
		var r kudo.HealthRule
		d.object(node, path,
			key{name: "group", read: d.text(&r.Group), required: true},
			key{name: "kind", read: d.text(&r.Kind), required: true},
			key{name: "healthy", read: d.text(&r.Healthy), required: true},
			key{name: "failed", read: d.text(&r.Failed)},
			key{name: "message", read: d.text(&r.Message)},
		)
		*into = append(*into, r)
	}
}

func (d *document) drift(into **kudo.PackageDrift) reader {
	return func(node *yaml.Node, path string) {
		*into = &kudo.PackageDrift{}
		d.object(node, path, key{name: "ignore", read: d.list(func(node *yaml.Node, path string) {
			var fields kudo.IgnoredFields
			d.object(node, path,
				key{name: "kind", read: d.text(&fields.Kind)},
				key{name: "name", read: d.text(&fields.Name)},
				key{name: "paths", read: d.texts(&fields.Paths), required: true},
			)
			(*into).Ignore = append((*into).Ignore, fields)
		})})
	}
}

func (d *document) maintainer(into *[]kudo.Maintainer) reader {
	return func(node *yaml.Node, path string) {
		var m kudo.Maintainer
		d.object(node, path,
			key{name: "name", read: d.text(&m.Name), describes: true},
			key{name: "email", read: d.text(&m.Email), describes: true},
		)
		*into = append(*into, m)
	}
}

// permissions decodes the permissions of plans. An empty value declares that they need none.
func (d *document) permissions(into **kudo.Permissions) reader {
	return func(node *yaml.Node, path string) {
		*into = &kudo.Permissions{}
		d.object(node, path,
			key{name: "rules", read: d.rules(&(*into).Rules)},
			key{name: "clusterRules", read: d.rules(&(*into).ClusterRules)},
			key{name: "namespaces", read: d.list(func(node *yaml.Node, path string) {
				var n kudo.NamespacePermissions
				d.object(node, path,
					key{name: "name", read: d.text(&n.Name), required: true},
					key{name: "rules", read: d.rules(&n.Rules)},
				)
				(*into).Namespaces = append((*into).Namespaces, n)
			})},
		)
	}
}

func (d *document) rules(into *[]rbacv1.PolicyRule) reader {
	return d.list(func(node *yaml.Node, path string) {
		var r rbacv1.PolicyRule
		d.object(node, path,
			key{name: "apiGroups", read: d.texts(&r.APIGroups)},
			key{name: "resources", read: d.texts(&r.Resources)},
			key{name: "resourceNames", read: d.texts(&r.ResourceNames)},
			key{name: "nonResourceURLs", read: d.texts(&r.NonResourceURLs)},
			key{name: "verbs", read: d.texts(&r.Verbs), required: true},
		)
		*into = append(*into, r)
	})
}

func (d *document) task(into *[]kudo.Task) reader {
	return func(node *yaml.Node, path string) {
		var t kudo.Task
		d.object(node, path,
			key{name: "name", read: d.text(&t.Name), required: true},
			key{name: "kind", read: d.text(&t.Kind), required: true},
			key{name: "spec", read: d.taskSpec(&t.Spec)},
		)
		*into = append(*into, t)
	}
}

func (d *document) taskSpec(s *kudo.TaskSpec) reader {
	return func(node *yaml.Node, path string) {
		d.object(node, path,
			key{name: "resources", read: d.texts(&s.Resources)},
			key{name: "parameter", read: d.text(&s.Parameter)},
			key{name: "wantErr", read: d.flag(&s.WantErr)},
			key{name: "fatal", read: d.flag(&s.Fatal)},
			key{name: "done", read: d.flag(&s.Done)},
			key{name: "pod", read: d.text(&s.Pod)},
			key{name: "pipe", read: d.list(d.pipe(&s.Pipe))},
			key{name: "package", read: d.text(&s.Package)},
			key{name: "instanceName", read: d.text(&s.InstanceName)},
			key{name: "appVersion", read: d.text(&s.AppVersion)},
			key{name: "operatorVersion", read: d.text(&s.OperatorVersion)},
			key{name: "parameterFile", read: d.text(&s.ParameterFile)},
			key{name: "enablingParameter", read: d.text(&s.EnablingParameter)},
			key{name: "chart", read: d.text(&s.Chart)},
			key{name: "version", read: d.text(&s.HelmTaskSpec.Version)},
			key{name: "repository", read: d.text(&s.Repository)},
			key{name: "digest", read: d.text(&s.Digest)},
			key{name: "valuesFile", read: d.text(&s.ValuesFile)},
			key{name: "releaseName", read: d.text(&s.ReleaseName)},
			key{name: "crds", read: d.text((*string)(&s.CRDs))},
			key{name: "claims", read: d.text((*string)(&s.Claims))},
			key{name: "postHooks", read: d.text((*string)(&s.PostHooks))},
		)
	}
}

func (d *document) pipe(into *[]kudo.PipeSpec) reader {
	return func(node *yaml.Node, path string) {
		var s kudo.PipeSpec
		d.object(node, path,
			key{name: "file", read: d.text(&s.File)},
			key{name: "envFile", read: d.text(&s.EnvFile)},
			key{name: "kind", read: d.text(&s.Kind), required: true},
			key{name: "key", read: d.text(&s.Key), required: true},
		)
		*into = append(*into, s)
	}
}

func (d *document) plans(into *map[string]kudo.Plan) reader {
	return func(node *yaml.Node, path string) {
		plans := map[string]kudo.Plan{}
		d.entries(node, path, func(name, node *yaml.Node, path string) {
			var p kudo.Plan
			d.object(node, path,
				key{name: "strategy", read: d.strategy(&p.Strategy)},
				key{name: "phases", read: d.list(d.phase(&p.Phases))},
				key{name: "timeout", read: d.duration(&p.Timeout)},
			)
			p.Strategy = cmp.Or(p.Strategy, kudo.Serial)
			plans[name.Value] = p
		})
		*into = plans
	}
}

func (d *document) phase(into *[]kudo.Phase) reader {
	return func(node *yaml.Node, path string) {
		var p kudo.Phase
		d.object(node, path,
			key{name: "name", read: d.text(&p.Name), required: true},
			key{name: "strategy", read: d.strategy(&p.Strategy)},
			key{name: "steps", read: d.list(d.step(&p.Steps))},
			key{name: "timeout", read: d.duration(&p.Timeout)},
		)
		p.Strategy = cmp.Or(p.Strategy, kudo.Serial)
		*into = append(*into, p)
	}
}

func (d *document) step(into *[]kudo.Step) reader {
	return func(node *yaml.Node, path string) {
		var s kudo.Step
		d.object(node, path,
			key{name: "name", read: d.text(&s.Name), required: true},
			key{name: "tasks", read: d.texts(&s.Tasks)},
			key{name: "delete", read: d.ignore("has no effect: use a task of kind Delete")},
			key{name: "timeout", read: d.duration(&s.Timeout)},
		)
		*into = append(*into, s)
	}
}

func (d *document) strategy(into *kudo.Ordering) reader { return d.text((*string)(into)) }

// ignore accepts a field that KUDO accepts and ignores, too.
func (d *document) ignore(why string) reader {
	return func(node *yaml.Node, path string) { d.find(Warning, node, path, "%s", why) }
}

// params decodes params.yaml.
func (d *document) params(root *yaml.Node) []kudo.Parameter {
	var defs []kudo.Parameter
	groups := map[string]bool{}
	var used []*yaml.Node
	d.object(root, "",
		key{name: "apiVersion", read: d.apiVersion},
		key{name: "groups", read: d.list(d.group(groups))},
		key{name: "parameters", read: d.list(d.parameter(&defs, &used))},
	)
	for _, group := range used {
		if group.Value != "" && !groups[group.Value] {
			d.find(Warning, group, "", "group %s is not defined: add it to groups", text.Quote(group.Value))
		}
	}
	return defs
}

// group decodes a group for user interfaces; only its name matters here.
func (d *document) group(into map[string]bool) reader {
	return func(node *yaml.Node, path string) {
		var name, ignored string
		d.object(node, path,
			key{name: "name", read: d.text(&name), required: true},
			key{name: "displayName", read: d.text(&ignored), describes: true},
			key{name: "description", read: d.text(&ignored), describes: true},
			key{name: "prio", read: d.number, describes: true},
		)
		if into[name] {
			d.find(Warning, node, path, "group %s is defined twice: remove one", text.Quote(name))
		}
		if strings.Contains(name, "/") {
			d.find(Warning, node, path, "the name of group %s contains a slash, which user interfaces do not support", text.Quote(name))
		}
		into[name] = true
	}
}

// parameter decodes one parameter. A parameter is required by default (KUDO's rule for packages). Fields for user interfaces only (group,
// advanced, hint) are checked and dropped, as in KUDO.
func (d *document) parameter(into *[]kudo.Parameter, groups *[]*yaml.Node) reader {
	return func(node *yaml.Node, path string) {
		p := kudo.Parameter{Required: new(true)}
		var advanced bool
		var hint string
		var written *yaml.Node
		d.object(node, path,
			key{name: "name", read: d.text(&p.Name), required: true},
			key{name: "displayName", read: d.text(&p.DisplayName), describes: true},
			key{name: "description", read: d.text(&p.Description), describes: true},
			key{name: "required", read: d.optionalFlag(&p.Required)},
			key{name: "default", read: func(node *yaml.Node, path string) { written = node; d.literal(&p.Default)(node, path) }},
			key{name: "trigger", read: d.text(&p.Trigger)},
			key{name: "type", read: d.text((*string)(&p.Type))},
			key{name: "immutable", read: d.optionalFlag(&p.Immutable)},
			key{name: "enum", read: d.enum(&p.Enum)},
			key{name: "forcePodRestart", read: d.quotedFlag(&p.ForcePodRestart)},
			key{name: "structure", read: d.optionalFlag(&p.Structure)},
			key{name: "sensitive", read: d.optionalFlag(&p.Sensitive)},
			key{name: "group", read: func(node *yaml.Node, _ string) { *groups = append(*groups, node) }, describes: true},
			key{name: "advanced", read: d.flag(&advanced), describes: true},
			key{name: "hint", read: d.text(&hint), describes: true},
		)
		d.corresponds(path+".value-type", path+".type")
		p.Type = cmp.Or(p.Type, kudo.StringType)
		if written != nil && written.Kind != yaml.ScalarNode && p.Type == kudo.StringType {
			d.problem(written, path+".default", "must be a string, got %s: set type: array or type: map", describe(written))
		}
		if advanced && isTrue(p.Required) && p.Default == nil {
			d.find(Warning, node, "", "parameter %s is advanced, but must be set: set a default, or required: false", text.Quote(p.Name))
		}
		*into = append(*into, p)
	}
}

// literal decodes any value as the text of a parameter: a scalar exactly as written, a list or map as compact JSON. An empty default is the
// empty value: packages use it for required lists.
func (d *document) literal(into **string) reader {
	return func(node *yaml.Node, path string) {
		text := new("")
		*into = text
		switch {
		case isNull(node):
		case node.Kind == yaml.ScalarNode:
			*text = node.Value
		default:
			value, err := parameter.DecodeNode(node)
			if err != nil {
				d.problem(node, path, "%v", err)
				return
			}
			*text = parameter.Compact(value)
		}
	}
}

func (d *document) enum(into *[]string) reader {
	items := d.list(func(node *yaml.Node, path string) {
		var item *string
		d.literal(&item)(node, path)
		*into = append(*into, *item)
	})
	return func(node *yaml.Node, path string) {
		items(node, path)
		if node.Kind == yaml.SequenceNode && len(node.Content) == 0 {
			d.problem(node, path, "must not be empty: list the allowed values, or remove the field")
		}
	}
}
