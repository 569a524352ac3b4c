package ui

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/core/preview"
)

// store returns an Instance that has been deployed, and its version.
func store() (*kudo.Instance, *kudo.OperatorVersion) {
	version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "addon-packages", Name: "store-1.0.0", UID: "version"}}
	version.Spec.Operator.Name, version.Spec.Version = "store", "1.0.0"
	version.Spec.Templates = map[string]string{"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: size}\ndata: {size: \"{{ .Params.SIZE }}\"}\n"}
	version.Spec.Tasks = []kudo.Task{{Name: "config", Kind: kudo.TaskApply, Spec: kudo.TaskSpec{
		ResourceTaskSpec: kudo.ResourceTaskSpec{Resources: []string{"config.yaml"}},
	}}}
	version.Spec.Plans = map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "main", Steps: []kudo.Step{{Name: "config", Tasks: []string{"config"}}}}}}}
	version.Spec.Parameters = []kudo.Parameter{{Name: "SIZE", Default: ptr.To("1")}, {Name: "TEXT"}, {Name: "PASSWORD", Sensitive: ptr.To(true)}}
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "store", UID: "store", Generation: 2}}
	instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name}
	instance.Spec.Parameters = map[string]string{"TEXT": "<b>"}
	instance.Spec.ParametersFrom = []kudo.ParameterFrom{{Name: "PASSWORD", SecretKeyRef: kudo.SecretKeyRef{Name: "secrets", Key: "password"}}}
	instance.Status.Execution = &kudo.Execution{
		UID: "ran", Plan: "deploy", Parameters: instance.Spec.Parameters,
		OperatorVersion: corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID},
	}
	instance.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {Name: "deploy", Status: kudo.Complete}}
	instance.Status.Inventory = []kudo.InventoryEntry{{Kind: "ConfigMap", Namespace: "cluster1", Name: "size", Task: "config"}}
	return instance, version
}

func TestProposals(t *testing.T) {
	instance, version := store()
	g := given{set: map[string]string{"SIZE": "2"}, unset: []string{"TEXT"}}
	edited := change.Change{Cluster: "cluster1", Change: preview.Change{
		Before: instance, After: instance.DeepCopy(), Version: version, Started: version, Instances: []kudo.Instance{*instance},
	}}
	edited.After.Spec.Parameters = map[string]string{"SIZE": "2"}
	update := updateProposal(instance, version, g)
	update.describeChange(edited)
	golden(t, "proposal-update", frame{Title: update.Title, Template: "proposal", View: update.shownTo("token")})
	broken := version.DeepCopy()
	broken.Spec.Tasks = append(broken.Spec.Tasks, kudo.Task{Name: "never", Kind: kudo.TaskDummy, Spec: kudo.TaskSpec{
		DummyTaskSpec: kudo.DummyTaskSpec{WantErr: true, Fatal: true},
	}})
	broken.Spec.Plans["deploy"].Phases[0].Steps[0].Tasks = []string{"config", "never"}
	worse := edited
	worse.Version = broken
	failing := updateProposal(instance, broken, g)
	failing.describeChange(worse)
	golden(t, "proposal-failing", frame{Title: failing.Title, Template: "proposal", View: failing.shownTo("token")})
	refused := updateProposal(instance, version, g)
	refused.Refusal = "parameter SIZE: must be an integer"
	golden(t, "proposal-refused", frame{Title: refused.Title, Template: "proposal", View: refused.shownTo("token")})

	next := version.DeepCopy()
	next.Name, next.UID, next.Spec.Version = "store-1.1.0", "next", "1.1.0"
	next.Spec.Templates["config.yaml"] = strings.Replace(next.Spec.Templates["config.yaml"], "\ndata: {", "\ndata: {more: \"yes\", ", 1)
	upgraded := edited
	upgraded.After, upgraded.Version = instance.DeepCopy(), next
	upgraded.After.Spec.OperatorVersion.Name = next.Name
	upgrade := upgradeProposal(client.ObjectKeyFromObject(instance), instance, next.Name)
	upgrade.describeChange(upgraded)
	golden(t, "proposal-upgrade", frame{Title: upgrade.Title, Template: "proposal", View: upgrade.shownTo("token")})

	view := cluster(metav1.Time{})
	e := change.EnableRequest{View: view, AddOn: "zookeeper", Desired: change.Desired{Namespace: "data", WithDependencies: true}}
	enable := enableProposal(e, given{set: map[string]string{"SIZE": "2"}})
	step := change.Step{Wanted: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "zookeeper"}}}
	step.Wanted.Spec.InstallNamespace = "data"
	step.Config = &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "zookeeper-parameters"}}
	step.Config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "SIZE", Value: "2"}, {Name: "TEXT", Value: "from before"}}
	step.Parameters = map[string]string{"SIZE": "2"}
	enable.Parameters = parameterFormOf(version, kudo.InstanceSpec{Parameters: step.Parameters})
	enabled := change.Change{Cluster: "cluster1", Step: &step, Change: preview.Change{After: instance.DeepCopy(), Version: version}}
	enabled.After.Name, enabled.After.Spec.Parameters = "zookeeper", map[string]string{"SIZE": "2"}
	enable.describeEnabling(change.EnableResult{Changes: []change.Change{enabled}}, version)
	golden(t, "proposal-enable", frame{Title: enable.Title, Template: "proposal", View: enable.shownTo("token")})

	gone := change.Change{Cluster: "cluster2", Object: "instance.kudo.dev/store", Warnings: []string{"without store, add-on shop becomes unavailable"}}
	gone.Before, gone.Started = instance.DeepCopy(), version
	gone.Before.Status.Inventory = append(gone.Before.Status.Inventory, kudo.InventoryEntry{Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data"})
	golden(t, "whatif", frame{Title: "What if", Template: "whatif", View: whatIfView{
		Name: "store", Back: addOnPath("store"), Change: ifUpgraded, Version: "store-2.0.0", Versions: []string{"store-1.0.0", "store-2.0.0"},
		Clusters: 60, More: 10, Commands: []string{command("upgrade store --all-clusters --dry-run")},
		DryRun: change.DryRunOf([]change.Change{edited, gone}, change.Refusals{"cluster3": errAbsent}),
	}})
}

func TestParametersOfARequest(t *testing.T) {
	_, version := store()
	for sentence, test := range map[string]struct {
		form    url.Values
		version *kudo.OperatorVersion
		want    given
		err     string
	}{
		"a value": {form: url.Values{"parameter": {"SIZE"}, "value": {"a\r\nb"}}, version: version, want: given{set: map[string]string{"SIZE": "a\nb"}}},
		"a value beside those of the preview": {form: url.Values{"parameter": {"SIZE"}, "value": {"3"}, "set.SIZE": {"2"}, "set.TEXT": {"x"}, "unset.SIZE": {"yes"}},
			version: version, want: given{set: map[string]string{"SIZE": "3", "TEXT": "x"}}},
		"a preview that was edited": {form: url.Values{"set.TEXT": {"%"}}, version: version, err: "is not one of the preview"},
		"a default": {form: url.Values{"parameter": {"SIZE"}, "reset": {"yes"}, "value": {"9"}, "set.SIZE": {"2"}}, version: version,
			want: given{set: map[string]string{}, unset: []string{"SIZE"}}},
		"a Secret for a sensitive one": {form: url.Values{"parameter": {"PASSWORD"}, "secret": {"s"}, "key": {"k"}}, version: version,
			want: given{set: map[string]string{"PASSWORD": "secret:s/k"}}},
		"a value for a sensitive one":                      {form: url.Values{"parameter": {"PASSWORD"}, "value": {"hunter2"}}, version: version, err: "the value itself is not accepted"},
		"a value beside the Secret of a sensitive one":     {form: url.Values{"parameter": {"PASSWORD"}, "value": {"hunter2"}, "secret": {"s"}, "key": {"k"}}, version: version, err: "the value itself is not accepted"},
		"a reference as the value of a sensitive one":      {form: url.Values{"parameter": {"PASSWORD"}, "value": {"secret:s/k"}}, version: version, err: "the value itself is not accepted"},
		"a value for a sensitive one, as of a preview":     {form: url.Values{"set.PASSWORD": {"hunter2"}}, version: version, err: "must be secret:NAME/KEY"},
		"a value in place of the name of a Secret":         {form: url.Values{"parameter": {"PASSWORD"}, "secret": {"hunter2!"}, "key": {"k"}}, version: version, err: "must be secret:NAME/KEY"},
		"a Secret for one that is not sensitive":           {form: url.Values{"parameter": {"SIZE"}, "secret": {"s"}, "key": {"k"}}, version: version, err: "is not sensitive"},
		"a value without the version, which may mark it":   {form: url.Values{"parameter": {"SIZE"}, "value": {"hunter2"}}, err: "cannot be read"},
		"a preview without the version, which may mark it": {form: url.Values{"set.SIZE": {"hunter2"}}, err: "cannot be read"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(test.form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			got, err := givenBy(r, test.version)
			if test.err == "" {
				if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(given{})); diff != "" || err != nil {
					t.Error(err, diff)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want an error with %q that does not quote the value", err, test.err)
			}
		})
	}
}

// TestAPreviewKeepsValues sends what a preview has shown as a browser does, which sends line breaks of any field as CRLF.
func TestAPreviewKeepsValues(t *testing.T) {
	_, version := store()
	for _, value := range []string{"", "one", "two\nlines\n", "\ttab", "100 %", "a+b c", `"<>&'`, "family 👨‍👩‍👧", "\ufeffmark", "\a"} {
		g := given{set: map[string]string{"TEXT": value}, unset: []string{"SIZE"}}
		shown := renderPage(t, frame{Template: "proposal", View: proposal{Path: "/", Fields: g.fields()}.shownTo("token")})
		form := url.Values{}
		for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(shown, -1) {
			form.Set(html.UnescapeString(field[1]), strings.ReplaceAll(html.UnescapeString(field[2]), "\n", "\r\n"))
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		got, err := givenBy(r, version)
		if diff := cmp.Diff(g, got, cmp.AllowUnexported(given{})); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
}

func TestPlainValuesOfSensitiveParametersAreNotShown(t *testing.T) {
	instance, version := store()
	instance.Spec.ParametersFrom, instance.Spec.Parameters = nil, map[string]string{"PASSWORD": "hunter2"} // before admission was in place
	for name, shown := range map[string]string{
		"the form": renderPage(t, frame{Template: "proposal", View: updateProposal(instance, version, given{unset: []string{"PASSWORD"}}).shownTo("token")}),
		"the page": renderPage(t, frame{Template: "instance", View: instanceOf(progress.View{Instance: instance, Version: version}, visit{})}),
	} {
		if strings.Contains(shown, "hunter2") {
			t.Errorf("%s shows the value", name)
		}
	}
}

func TestFailedActionReportsWhatIsKnown(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "instances"}, "kafka", errors.New("no"))
	unanswered := fmt.Errorf("changing the Instance: %w", context.DeadlineExceeded)
	written := []change.Written{{Kind: "AddOnDeploymentConfig", Name: "kafka-parameters", Cluster: "c1", Effect: "created"}}
	for sentence, test := range map[string]struct {
		err    error
		title  string
		status int
	}{
		"before the change":                        {errors.New("no plan is running"), "Not changed", http.StatusUnprocessableEntity},
		"a change that the hub refuses":            {changeError(forbidden), "Not changed", http.StatusForbidden},
		"one that the hub has not answered":        {changeError(unanswered), "Possibly changed", http.StatusBadGateway},
		"one that the hub has not completed":       {changeError(apierrors.NewTimeoutError("too slow", 1)), "Possibly changed", http.StatusGatewayTimeout},
		"one that was refused after a part of it":  {changeError(incomplete(written, forbidden)), "Partly changed", http.StatusForbidden},
		"one without an answer after a part of it": {changeError(incomplete(written, unanswered)), "Partly changed", http.StatusBadGateway},
	} {
		page := refusalOf(test.err, "/")
		if page.Status != test.status || !strings.Contains(renderPage(t, page), "<h1>"+test.title+"</h1>") {
			t.Errorf("%s: got %s, status %d, want %s, status %d", sentence, page.Title, page.Status, test.title, test.status)
		}
	}
}

func TestRefusedActionsLinkBack(t *testing.T) {
	for path, want := range map[string]string{
		"/clusters/c1/instances/kafka/run/preview": "/clusters/c1/instances/kafka",
		"/clusters/c1/instances/kafka/cancel":      "/clusters/c1/instances/kafka",
		"/clusters/c1/instances/kafka/parameters":  "/clusters/c1/instances/kafka",
		"/clusters/c1/addons/kafka/disable":        "/clusters/c1/addons/kafka",
		"/enable":                                  "/clusters/c1/addons/kafka",
	} {
		mux, back := http.NewServeMux(), ""
		for pattern := range actions() {
			for _, suffix := range []string{"", "/preview"} {
				mux.HandleFunc("POST "+pattern+suffix, func(_ http.ResponseWriter, r *http.Request) { back = objectPath(r) })
			}
		}
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("cluster=c1&addon=kafka"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		mux.ServeHTTP(httptest.NewRecorder(), r)
		shown := renderPage(t, frame{Template: "refused", View: refusedView{"Not changed", "no", back}})
		if !strings.Contains(shown, `<a href="`+want+`">Back</a>`) {
			t.Errorf("%s: want a link to %s, got\n%s", path, want, shown)
		}
	}
}

// TestCommandsAreWordsOfAShell covers names from the URL of a page, which is shown with a button that copies the command.
func TestCommandsAreWordsOfAShell(t *testing.T) {
	for want, got := range map[string]string{
		"kubectl addon get 'A=b c'":                                                command("get %s", "A=b c"),
		`kubectl addon get 'A=it'\''s'`:                                            command("get %s", "A=it's"),
		"kubectl addon get ''":                                                     command("get %s", ""),
		"kubectl addon get kafka --selector region=eu":                             fleetCommand(filter{AddOn: "kafka", Selector: "region=eu"}),
		"kubectl addon get '$(reboot)' --selector 'a in (b)'":                      fleetCommand(filter{AddOn: "$(reboot)", Selector: "a in (b)"}),
		"kubectl addon get '`reboot`' -o wide":                                     fleetCommand(filter{AddOn: "instance/`reboot`", Page: 2}),
		"kubectl addon upgrade kafka --all-clusters --version ';reboot' --dry-run": whatIfView{Name: "kafka", Change: ifUpgraded, Version: ";reboot"}.command(false),
		"kubectl addon what-if upgrade kafka ';reboot' --all-clusters":             whatIfView{Name: "kafka", Change: ifUpgraded, Version: ";reboot"}.command(true),
		"kubectl addon what-if upgrade kafka VERSION --cluster c1":                 whatIfView{Name: "kafka", Change: ifUpgraded, Cluster: "c1"}.command(true),
		"kubectl addon uninstall kafka --cluster c1 --dry-run":                     whatIfView{Name: "kafka", Change: ifDisabled, Cluster: "c1"}.command(false),
		"kubectl addon what-if disable kafka --cluster c1":                         whatIfView{Name: "kafka", Change: ifDisabled, Cluster: "c1"}.command(true),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestUsersHaveNames(t *testing.T) {
	for sentence, test := range map[string]struct {
		status authenticationv1.TokenReviewStatus
		want   bool
	}{
		"a user":                {authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "ann"}}, true},
		"a token that is wrong": {authenticationv1.TokenReviewStatus{User: authenticationv1.UserInfo{Username: "ann"}}, false},
		"a user without a name": {authenticationv1.TokenReviewStatus{Authenticated: true}, false},
	} {
		if got := userOf(test.status) != nil; got != test.want {
			t.Errorf("%s: got %t, want %t", sentence, got, test.want)
		}
	}
}
