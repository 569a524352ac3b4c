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
	"sigs.k8s.io/yaml"
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
	var board any
	if err := json.Unmarshal([]byte(readText(t, dashboard)), &board); err != nil {
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

// TestAlertsAreDocumented requires each alert to use documented metrics only, to name the heading of a page that says what it means and what to do, and
// to be played by promtool.
func TestAlertsAreDocumented(t *testing.T) {
	page := documentedMetrics(t)
	runbook := readText(t, "docs/alerts.md")
	alerts := map[string]bool{}
	for _, file := range []string{"hub.yaml", "agent.yaml"} {
		played := readText(t, "test/alerts/"+file)
		for _, rule := range alertsIn(t, "deploy/alerts/"+file) {
			alerts[rule.Alert] = true
			if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
				t.Errorf("alert %s has no severity, summary or description", rule.Alert)
			}
			if link := alertsPage + "#" + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != link {
				t.Errorf("alert %s: runbook_url is not %s", rule.Alert, link)
			}
			if !strings.Contains(runbook, "\n### "+rule.Alert+"\n") {
				t.Errorf("docs/alerts.md has no heading for alert %s", rule.Alert)
			}
			if !strings.Contains(played, rule.Annotations["runbook_url"]) && !strings.Contains(played, "alertname: "+rule.Alert+"}") {
				t.Errorf("test/alerts/%s does not play alert %s", file, rule.Alert)
			}
			for _, name := range metricsIn(rule.Expr) {
				if _, found := page[name]; !found {
					t.Errorf("alert %s: metric %s is not in a table of %s", rule.Alert, name, metricsPage)
				}
			}
		}
	}
	for _, heading := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(runbook, -1) {
		if !alerts[heading[1]] {
			t.Errorf("docs/alerts.md describes %s, which is no alert", heading[1])
		}
	}
}

// alertsPage is the address of the page that describes alerts.
const alertsPage = "https://github.com/tandem-addons/tandem/blob/main/docs/alerts.md"

// alert is a rule of Prometheus.
type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// readText returns the content of a file of the project.
func readText(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// alertsIn returns the alerts of a PrometheusRule.
func alertsIn(t *testing.T, path string) []alert {
	t.Helper()
	var object struct {
		Spec struct{ Groups []struct{ Rules []alert } }
	}
	if err := yaml.Unmarshal([]byte(readText(t, path)), &object); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var alerts []alert
	for _, group := range object.Spec.Groups {
		alerts = append(alerts, group.Rules...)
	}
	if len(alerts) == 0 {
		t.Fatalf("%s has no alerts", path)
	}
	return alerts
}

// documentedMetrics returns the metrics in the first column of a table, with their labels as written: {a,b}.
func documentedMetrics(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+(?:_[a-z]+)+)({[a-z,_]+})?` \\|").FindAllStringSubmatch(readText(t, metricsPage), -1)
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
