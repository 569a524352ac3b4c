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
	_ "sigs.k8s.io/controller-runtime/pkg/webhook" // registers those of webhooks
)

const (
	// metricsPage lists in tables every metric of Tandem's, and those of its libraries that the dashboard shows.
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

// documentedMetrics are the metrics that begin a row of a table, with their labels as they stand: {a,b}.
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

// madeMetrics are the metrics that the code makes, with their labels in the order of the code.
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

// metricOf is the metric that a call makes in the manner of client_golang, whose constructors take the name, as it is or in a
// struct of options, and a list of labels; the name is empty where a call makes none.
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

// literal is the string that an expression spells out; empty where it does not.
func literal(expression ast.Expr) string {
	if basic, ok := expression.(*ast.BasicLit); ok && basic.Kind == token.STRING {
		text, _ := strconv.Unquote(basic.Value) // the parser has seen to it
		return text
	}
	return ""
}

// libraryMetrics are the names of those that controller-runtime, client-go and client_golang register where they are imported.
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

// queries visits the PromQL of a dashboard: that of panels, and that of variables.
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

// metricsIn are the metrics that a query names, each histogram by its own name. What else is spelt with underscores, no label being
// so, is a function, which a parenthesis follows.
func metricsIn(query string) []string {
	var names []string
	for _, match := range regexp.MustCompile(`\b([a-z]+(?:_[a-z]+)+)\b(\()?`).FindAllStringSubmatch(query, -1) {
		if match[2] == "" {
			names = append(names, regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(match[1], ""))
		}
	}
	return names
}
