package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/health"
	"github.com/tandem-addons/tandem/pkg/core/render/yaml"
	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// healthFolder has samples of objects that the rules for the health of custom kinds judge: NAME.STATE.yaml.
	healthFolder = "health"
	// maxHealthRules is the limit of the resource definition.
	maxHealthRules = 16
	// maxSamples limits the samples of a package, and maxSample the size of one, in bytes.
	maxSamples = 200
	maxSample  = 256 << 10
)

// states are those of samples, by the part of the file's name before .yaml.
var states = map[string]health.Status{"healthy": health.Healthy, "progressing": health.Progressing, "failed": health.Failed}

// healthRules: the expressions are valid, one rule for each kind.
func healthRules(s *subject) []Problem {
	if len(s.Health) > maxHealthRules {
		return []Problem{problemAt("health", "there are %d rules, more than the limit of %d", len(s.Health), maxHealthRules)}
	}
	var problems []Problem
	first := map[schema.GroupKind]bool{}
	for i := range s.Health {
		rule, field := &s.Health[i], fmt.Sprintf("health[%d]", i)
		for _, problem := range health.CheckRule(rule) {
			problems = append(problems, problemAt(field+"."+problem.Field, "health of %s: %s: %s", ruleName(rule), problem.Field, problem.Message))
		}
		kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		if first[kind] {
			problems = append(problems, problemAt(field, "health of %s is defined twice: remove one", ruleName(rule)))
		}
		first[kind] = true
	}
	return problems
}

// ruleName returns the kind and group of a rule.
func ruleName(rule *kudo.HealthRule) string {
	return text.Quote(strings.TrimSuffix(rule.Kind+"."+rule.Group, "."))
}

// loadSamples reads the samples of a package that has rules for the health of custom kinds.
func (p *Package) loadSamples(fsys fs.FS) {
	if len(p.Version.Health) == 0 {
		return
	}
	names, err := sampleFiles(fsys)
	if err != nil {
		p.problem(healthFolder, 0, "%v", unreadable(err))
		return
	}
	if len(names) > maxSamples {
		p.problem(healthFolder, 0, "has %d samples, more than the limit of %d", len(names), maxSamples)
		return
	}
	for _, name := range names {
		p.loadSample(fsys, name)
	}
}

func (p *Package) loadSample(fsys fs.FS, name string) {
	parts := strings.Split(strings.TrimSuffix(path.Base(name), ".yaml"), ".")
	want, known := states[parts[len(parts)-1]]
	if !known || len(parts) < 2 {
		p.problem(name, 0, "is not a sample: name it NAME.STATE.yaml, where STATE is healthy, progressing or failed")
		return
	}
	content, ok := p.readFile(fsys, name, maxSample, "a sample")
	if !ok {
		return
	}
	object, err := decodeSample(content)
	if err != nil {
		p.problem(name, 0, "is not an object in YAML, as 'kubectl get -o yaml' prints one: %v", err)
		return
	}
	p.samples = append(p.samples, sample{file: name, want: want, object: object})
}

func decodeSample(content string) (*unstructured.Unstructured, error) {
	plain, err := yaml.JSON(content, yaml.MaxFile)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, object.UnmarshalJSON(plain)
}

// sampleFiles returns the samples in the folder health that are not hidden; none if there is no folder.
func sampleFiles(fsys fs.FS) ([]string, error) {
	entries, err := fs.ReadDir(fsys, healthFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") && strings.HasSuffix(entry.Name(), ".yaml") {
			names = append(names, path.Join(healthFolder, entry.Name()))
		}
	}
	return names, err
}

// judgeSamples judges the samples by the rules: each has the state in its name, and each rule has a healthy one, and a failed one if it has failed.
func (p *Package) judgeSamples() []Problem {
	var problems []Problem
	sampled := map[*kudo.HealthRule]map[health.Status]bool{}
	for _, s := range p.samples {
		rule := health.RuleOf(p.Version.Health, s.object)
		if rule == nil {
			problems = append(problems, Problem{File: s.file, Severity: Error, Message: fmt.Sprintf("no rule in health of operator.yaml judges kind %s: add one, or remove the sample",
				text.Quote(s.object.GroupVersionKind().GroupKind().String()))})
			continue
		}
		got := health.ByRule(s.object, rule)
		if sampled[rule] == nil {
			sampled[rule] = map[health.Status]bool{}
		}
		sampled[rule][s.want] = true
		if got.Status != s.want {
			problems = append(problems, Problem{File: s.file, Severity: Error,
				Message: text.Truncate(fmt.Sprintf("the name says %s, but the rule finds %s (correct the rule, or rename the sample): %s", s.want, got.Status, got.Message), messageBytes)})
		}
	}
	for i := range p.Version.Health {
		problems = append(problems, p.missingSamples(fmt.Sprintf("health[%d]", i), &p.Version.Health[i], sampled[&p.Version.Health[i]])...)
	}
	return slices.Clip(problems)
}

// missingSamples warns of the states of a rule at a path that no sample has: without one, an expression that never holds is not noticed.
func (p *Package) missingSamples(path string, rule *kudo.HealthRule, sampled map[health.Status]bool) []Problem {
	var problems []Problem
	if !sampled[health.Healthy] {
		problems = append(problems, p.locate(warningAt(path, "health of %s has no sample of a healthy object: "+
			"store one as %s/NAME.healthy.yaml, as 'kubectl get -o yaml' prints it", ruleName(rule), healthFolder)))
	}
	if rule.Failed != "" && !sampled[health.Failed] {
		problems = append(problems, p.locate(warningAt(path+".failed", "failed of health of %s has no sample of an object that has failed: "+
			"store one as %s/NAME.failed.yaml, as 'kubectl get -o yaml' prints it", ruleName(rule), healthFolder)))
	}
	return problems
}
