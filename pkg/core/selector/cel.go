package selector

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"k8s.io/apiserver/pkg/cel/library"
)

// variable is the only variable of expressions.
const variable = "managedCluster"

// costLimit bounds the evaluation of an expression on a cluster, in the units of CEL: a tenth of what Kubernetes allows. A label costs less than ten,
// and a search through 60 claims about a thousand.
const costLimit = 100_000

// maxExpression limits the length of an expression, in bytes.
const maxExpression = 2048

// environment has what an expression needs to compare values, and nothing that builds larger ones: the limit of the cost is checked after each
// function, and so does not bound what one builds. Of the functions of OCM's Placements, it lacks +, map, those of strings that build a string or a list,
// parseJSON, and scores, which reads other objects; semver can also normalize "v1.37.2".
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeMacros: []string{"map"}, ExcludeFunctions: []*env.Function{{Name: operators.Add}}})),
		cel.Variable(variable, cel.MapType(cel.StringType, cel.DynType)),
		library.Regex(), library.Quantity(), library.IP(), library.CIDR(), library.Format(), library.SemverLib(library.SemverVersion(1)),
	)
})

// programs holds the compiled expressions: each is evaluated for every cluster, and again on changes.
var programs = cache{known: map[string]compiled{}}

// cache holds up to maxPrograms compiled expressions.
type cache struct {
	mutex sync.Mutex
	known map[string]compiled
}

const maxPrograms = 1024

type compiled struct {
	program cel.Program
	err     error
}

func (c *cache) of(expression string) (cel.Program, error) {
	if len(expression) > maxExpression {
		return nil, fmt.Errorf("an expression has at most %d bytes", maxExpression)
	}
	c.mutex.Lock()
	found, known := c.known[expression]
	c.mutex.Unlock()
	if !known {
		found.program, found.err = compile(expression)
		c.keep(expression, found)
	}
	return found.program, found.err
}

// keep stores a compiled expression, in place of any other one if there are too many.
func (c *cache) keep(expression string, program compiled) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for other := range c.known {
		if len(c.known) < maxPrograms {
			break
		}
		delete(c.known, other)
	}
	c.known[strings.Clone(expression)] = program
}

// compile returns the program of an expression that returns a bool, or a value whose type is only known when it is evaluated.
func compile(expression string) (cel.Program, error) {
	environment, err := environment()
	if err != nil {
		return nil, fmt.Errorf("preparing CEL: %w", err)
	}
	ast, issues := environment.Compile(expression)
	if issues.Err() != nil {
		return nil, errors.New(firstIssue(issues, expression))
	}
	if result := ast.OutputType(); !result.IsExactType(cel.BoolType) && !result.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("the expression returns %s and not bool", cel.FormatCELType(result))
	}
	return environment.Program(ast, cel.CostLimit(costLimit), cel.CostTracking(&library.CostEstimator{}))
}

// firstIssue returns the first problem of an expression with its place, without the expression itself.
func firstIssue(issues *cel.Issues, expression string) string {
	first := issues.Errors()[0]
	message := strings.ReplaceAll(first.Message, " (in container '')", "")
	if name, is := strings.CutPrefix(message, "undeclared reference to '"); is {
		message += "; the only variable is " + variable
		if name = strings.TrimSuffix(name, "'"); strings.HasPrefix(name, "_") || strings.Contains(expression, name+"(") {
			message = fmt.Sprintf("function %q is not available", strings.Trim(name, "_"))
		}
	}
	return fmt.Sprintf("line %d, column %d: %s", first.Location.Line(), first.Location.Column()+1, message)
}

// holds reports whether an expression is true for a cluster. An expression that fails, such as one that reads a label that the cluster does not have,
// is not.
func holds(expression string, object map[string]any) bool {
	program, err := programs.of(expression)
	if err != nil {
		return false
	}
	result, _, err := program.Eval(map[string]any{variable: object})
	return err == nil && result == types.True
}

// objectOf returns the parts of a ManagedCluster that expressions read, under the names of the API.
func objectOf(cluster Cluster) map[string]any {
	claims := make([]any, 0, len(cluster.Claims))
	for _, name := range slices.Sorted(maps.Keys(cluster.Claims)) {
		claims = append(claims, map[string]any{"name": name, "value": cluster.Claims[name]})
	}
	labels := make(map[string]any, len(cluster.Labels))
	for name, value := range cluster.Labels {
		labels[name] = value
	}
	return map[string]any{
		"metadata": map[string]any{"name": cluster.Name, "labels": labels},
		"status":   map[string]any{"clusterClaims": claims, "version": map[string]any{"kubernetes": cluster.KubernetesVersion}},
	}
}
