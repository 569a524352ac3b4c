package structure

import (
	"encoding/json"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // registers the metrics of controllers
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	_ "sigs.k8s.io/controller-runtime/pkg/webhook" // registers the metrics of webhooks
)

const (
	// metricsPage lists every metric of Tandem in tables, and the metrics of its libraries that the dashboard shows.
	metricsPage = "docs/troubleshooting.md"
	dashboard   = "deploy/grafana/tandem.json"
)

func TestMetricsAreDocumented(t *testing.T) {
	code, page, libraries := madeMetrics(t), documentedMetrics(t), libraryMetrics()
	for name, labels := range code {
		if documented, found := page[name]; !found || documented != labels {
			t.Errorf("metric %s%s is not in a table of %s, or with other labels", name, labels, metricsPage)
		}
	}
	for name := range page {
		if _, made := code[name]; !made && !libraries[name] {
			t.Errorf("%s lists metric %s, which neither Tandem nor a library of it makes", metricsPage, name)
		}
	}
}

func TestDashboardShowsDocumentedMetrics(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, dashboard))
	if err != nil {
		t.Fatal(err)
	}
	var board any
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatalf("%s: %v", dashboard, err)
	}
	page, shown := documentedMetrics(t), map[string]bool{}
	queries(board, func(query string) {
		names := metricsIn(query)
		if len(names) == 0 {
			t.Errorf("%s: no metric in %q", dashboard, query)
		}
		for _, name := range names {
			shown[name] = true
			if _, found := page[name]; !found {
				t.Errorf("%s: metric %s in %q is not in a table of %s", dashboard, name, query, metricsPage)
			}
		}
	})
	for name := range page {
		if !shown[name] {
			t.Errorf("%s does not show metric %s", dashboard, name)
		}
	}
}

// documentedMetrics returns the metrics in the first column of a table, with their labels as written: {a,b}.
func documentedMetrics(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, metricsPage))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+(?:_[a-z]+)+)({[a-z,_]+})?` \\|").FindAllStringSubmatch(string(page), -1)
	for _, row := range rows {
		found[row[1]] = row[2]
	}
	return found
}

// madeMetrics returns the metrics that the code creates, with their labels in the order of the code.
func madeMetrics(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, s := range sources(t) {
		if s.isTest() || !within("pkg")(s.folder()) {
			continue
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if name, labels := metricOf(call); name != "" {
					found[name] = labels
				}
			}
			return true
		})
	}
	if len(found) == 0 {
		t.Fatal("no metrics found in the code")
	}
	return found
}

// metricOf returns the metric that a call creates with client_golang, whose constructors take the name, directly or in a struct of options,
// and a list of labels; the name is empty for other calls.
func metricOf(call *ast.CallExpr) (name, labels string) {
	isName := regexp.MustCompile(`^addon(_[a-z]+)+$`).MatchString
	for _, argument := range call.Args {
		if text := literal(argument); isName(text) {
			name = text
		}
		list, ok := argument.(*ast.CompositeLit)
		if !ok {
			continue
		}
		var texts []string
		for _, element := range list.Elts {
			if field, ok := element.(*ast.KeyValueExpr); ok && isName(literal(field.Value)) {
				name = literal(field.Value)
			}
			texts = append(texts, literal(element))
		}
		if _, ok := list.Type.(*ast.ArrayType); ok {
			labels = "{" + strings.Join(texts, ",") + "}"
		}
	}
	return name, labels
}

// literal returns the value of a string literal; empty for other expressions.
func literal(expression ast.Expr) string {
	if basic, ok := expression.(*ast.BasicLit); ok && basic.Kind == token.STRING {
		text, _ := strconv.Unquote(basic.Value) // the parser has validated it
		return text
	}
	return ""
}

// libraryMetrics returns the names of the metrics that controller-runtime, client-go and client_golang register on import.
func libraryMetrics() map[string]bool {
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Registry.(prometheus.Collector).Describe(descriptions)
		close(descriptions)
	}()
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	found := map[string]bool{}
	for description := range descriptions {
		found[name.FindStringSubmatch(description.String())[1]] = true
	}
	return found
}

// queries visits the PromQL queries of a dashboard's panels and variables.
func queries(node any, visit func(query string)) {
	switch node := node.(type) {
	case []any:
		for _, element := range node {
			queries(element, visit)
		}
	case map[string]any:
		for key, value := range node {
			text, ok := value.(string)
			if !ok {
				queries(value, visit)
			} else if key == "expr" || strings.HasPrefix(text, "label_values(") {
				visit(text)
			}
		}
	}
}

// metricsIn returns the metrics in a query, each histogram by its base name. Other identifiers with underscores are functions, which are
// followed by a parenthesis, because no label has an underscore.
func metricsIn(query string) []string {
	var names []string
	for _, match := range regexp.MustCompile(`\b([a-z]+(?:_[a-z]+)+)\b(\()?`).FindAllStringSubmatch(query, -1) {
		if match[2] == "" {
			names = append(names, regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(match[1], ""))
		}
	}
	return names
}
