package ui

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/fleet"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/why"
	"github.com/tandem-addons/tandem/pkg/ui/contact"
	"github.com/tandem-addons/tandem/test/sample"
)

var writeGolden = flag.Bool("update", false, "write testdata/*.html instead of comparing with it")

// framed is the golden page that is stored with the frame, which is the same for all pages.
const framed = "fleet"

// parts matches what differs between pages: the title and the main element.
var parts = regexp.MustCompile(`(?s)<title>.*?</title>\n|<main.*</main>\n`)

// golden compares a page with testdata/NAME.html.
func golden(t *testing.T, name string, f frame) {
	t.Helper()
	got := renderPage(t, f)
	if name != framed {
		got = strings.Join(parts.FindAllString(got, -1), "")
	}
	file := filepath.Join("testdata", name+".html")
	if *writeGolden {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

func renderPage(t *testing.T, f frame) string {
	t.Helper()
	f.Visitor, f.Version, f.Live = &Visitor{}, "v1.2.3", true
	content, err := server(t).render("layout", f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// readCompletely returns the contact to a hub that has been read.
func readCompletely() *contact.Tracker {
	tracker := &contact.Tracker{}
	tracker.MarkComplete()
	return tracker
}

// server returns a server whose hub has been read and is empty.
func server(t *testing.T) *Server {
	t.Helper()
	s, err := New(Options{Hub: &Hub{contact: readCompletely(), changes: newChanges()}, Gate: NewLocal("tandem"), Hosts: []string{"127.0.0.1"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wide returns a fleet of that many clusters with 20 add-ons, on every tenth of which one is not available.
func wide(clusters int) fleet.Glance {
	all := fleet.Glance{}
	for i := range clusters {
		for k := range 20 {
			seen := fleet.Glimpse{State: fleet.Available, Reason: "Healthy"}
			if i%10 == 3 && k == i/10%20 {
				seen = fleet.Glimpse{State: fleet.NotAvailable, Reason: "ProbeUnavailable"}
			}
			all.Add(fmt.Sprintf("cluster-%04d", i), fleet.Subject{Name: fmt.Sprintf("addon-%02d", k)}, seen)
		}
	}
	return all
}

func fleetFrame(all fleet.Glance, query string) frame {
	values, _ := url.ParseQuery(query)
	f := filterOf("/", values)
	return frame{Title: "Fleet", Template: "fleet", View: fleetOf(f.of(all), f)}
}

func TestPages(t *testing.T) {
	at := metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	small := fleet.Glance{}
	small.Add("cluster1", fleet.Subject{Name: "kafka"}, fleet.Glimpse{State: fleet.NotAvailable, Reason: "PlanFailed"})
	small.Add("cluster2", fleet.Subject{Name: "kafka"}, fleet.Glimpse{State: fleet.Available, Reason: "Healthy"})
	small.Add("cluster2", fleet.Subject{Instance: true, Name: "store"}, fleet.Glimpse{State: fleet.Unknown, Reason: "NotReported"})
	small.Add("cluster3", fleet.Subject{Name: "kafka"}, fleet.Glimpse{State: fleet.Blocked, Reason: "ParametersInvalid"})
	small.Add("cluster3", fleet.Subject{Instance: true, Name: "store"}, fleet.Glimpse{State: fleet.Waiting, Reason: "WaitingForConfiguration"})
	small.Add("cluster4", fleet.Subject{Name: "kafka"}, fleet.Glimpse{State: fleet.NotAvailable, Reason: "PlanFailed", Blocked: "ParametersInvalid"})
	golden(t, "fleet", fleetFrame(small, ""))
	golden(t, "fleet-filtered", fleetFrame(small, "addon=kafka&state=NotAvailable&selector=a%3Db"))
	golden(t, "fleet-empty", fleetFrame(fleet.Glance{}, ""))

	view := cluster(at)
	golden(t, "cluster", frame{Title: "Cluster cluster1", Template: "cluster", View: clusterOf(view)})
	explained := why.Of(view, "kafka", sample.Now).Data("kafka")
	fixes := visit{acts: everything{}, token: "token"}.fixRows(t.Context(), view, "kafka", explained.Commands)
	golden(t, "why", frame{Title: "kafka on cluster1", Template: "why", View: whyView{
		Data: explained, Fixes: fixes, Glimpse: fleet.GlimpseOf(view.AddOns["kafka"]), Conditions: conditionRows(view.AddOns["kafka"].Status.Conditions, sample.Now),
	}})
	stuck := sample.NewCluster("shop:", "kafka:").With("shop", sample.Works, sample.NotRolledOut).With("kafka", sample.Works).Progressive("shop", 1).
		RolledOut("shop", "cluster2", sample.Works, sample.UpgradeWaits).Stuck("kafka cluster1: shop", "kafka cluster0: shop", "shop cluster2: kafka")
	explained = why.Of(stuck.Cluster, "shop", sample.Now).Data("shop")
	golden(t, "why-rollouts", frame{Title: "shop on cluster1", Template: "why", View: whyView{
		Data: explained, Fixes: visit{acts: everything{}}.fixRows(t.Context(), stuck.Cluster, "shop", explained.Commands), Stuck: rolloutRows(explained.Deadlocks), Glimpse: fleet.GlimpseOf(stuck.AddOns["shop"]),
	}})
	golden(t, "addon", frame{Title: "Add-on kafka", Template: "addon", View: addOnOf("kafka", small, view.Definitions)})
	placed := sample.NewCluster("store:").Plans("store").VersionPlacedBy("store", "all", "store-1.0.0")
	golden(t, "addon-placed", frame{Title: "Add-on store", Template: "addon", View: addOnOf("store", fleet.Glance{}, placed.Definitions)})
	instance := view.Instances["kafka"]
	shown := instanceOf(progress.View{Instance: instance}, visit{now: at.Add(time.Minute)})
	golden(t, "instance", frame{Title: "kafka on cluster1", Template: "instance", View: shown})
	shown.History = revisionRows([]kudo.HistoryEntry{
		{Revision: 7, Plan: "deploy", Cause: kudo.CauseInstall, By: "<b>kubectl (ManagedClusterAddOn cluster1/kafka)", OperatorVersion: corev1.ObjectReference{Name: "kafka-1.0.0"}, Outcome: kudo.HistoryComplete,
			StartedTimestamp: &at, EndedTimestamp: &at},
		{Revision: 8, Plan: "update", Cause: kudo.CauseParameters, Parameters: []string{"A", "B", "C", "D"}, Outcome: kudo.HistorySuperseded, Message: "superseded by\nplan <b>"},
		{Revision: 9, Plan: "upgrade", Cause: "Later", From: "kafka-1.0.0", Outcome: kudo.HistoryFailed, Retries: 2, Message: "no more disks", StartedTimestamp: &at, EndedTimestamp: &at},
		{Revision: 10, Plan: "backup", Cause: kudo.CauseRequest, Outcome: kudo.HistoryCancelled, Retries: 1},
		{Revision: 11, Plan: "deploy", Cause: kudo.CauseOwed, StartedTimestamp: &at},
	}, at.Add(time.Hour))
	golden(t, "instance-history", frame{Title: "kafka on cluster1", Template: "instance", View: shown})
	asked := instance.DeepCopy()
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, kudo.AnnotationDiagnose, "2026-01-02T03:00:00Z")
	asked.Status.Diagnosis = &kudo.Diagnosis{
		Request: "2026-01-02T02:00:00Z", Time: at, Message: "logs cannot be read: <b>", Truncated: true,
		Pods: []kudo.DiagnosedPod{{Namespace: "shop", Name: "kafka-0", Phase: "Running", Ready: "0/1", Restarts: 4, Reason: "<script>", Image: "kafka:1", Logs: []kudo.DiagnosedLog{
			{Container: "kafka", Previous: true, Lines: []string{"starts", "\x1b[2J<b>fails</b>"}}, {Container: "proxy"},
		}}},
		Events: []kudo.DiagnosedEvent{{Time: at, Object: "Pod kafka-0", Reason: "BackOff", Message: "<i>", Count: 3}, {Object: "Pod kafka-0"}},
	}
	golden(t, "instance-diagnosis", frame{Title: "kafka on cluster1", Template: "instance", View: instanceOf(progress.View{Instance: asked}, visit{now: at.Add(time.Minute)})})
	changed := instance.DeepCopy()
	meta.SetStatusCondition(&changed.Status.Conditions, metav1.Condition{Type: kudo.ConditionDrifted, Status: metav1.ConditionTrue, Reason: kudo.ReasonDrifted, LastTransitionTime: at,
		Message: "Deployment kafka/ui: /spec/replicas is 0 instead of 1 (by kubectl-scale)"})
	golden(t, "instance-drift", frame{Title: "kafka on cluster1", Template: "instance", View: instanceOf(progress.View{Instance: changed}, visit{now: at.Add(time.Minute)})})
	golden(t, "absent", frame{Title: "Not found", Template: "absent", View: hiddenText(errAbsent)})
}

// cluster returns a cluster whose kafka lacks zookeeper and has a failed plan.
func cluster(at metav1.Time) fleet.Cluster {
	condition := func(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: at}
	}
	view := fleet.Cluster{Name: "cluster1", Definitions: map[string]fleet.Definition{}, AddOns: map[string]*addonv1alpha1.ManagedClusterAddOn{}}
	for name, needs := range map[string][]addonv1alpha1.AddonDependency{
		"zookeeper": nil, "kafka": {{Name: "zookeeper", Type: addonv1alpha1.DependencyTypeRequired}},
	} {
		definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
		definition.Spec.Dependencies = needs
		view.Definitions[name] = fleet.DefinitionOf(definition)
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka"}}
	addOn.Status.Conditions = []metav1.Condition{condition(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, kudo.ReasonPlanFailed, "no more\ndisks")}
	view.AddOns["kafka"] = addOn
	instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "kafka"}}
	instance.Spec.OperatorVersion.Name = "kafka-3.9.0-1.0.0"
	instance.Spec.Parameters = map[string]string{"BROKERS": "3"}
	instance.Status.Execution = &kudo.Execution{Plan: "deploy"}
	instance.Status.Conditions = []metav1.Condition{condition(kudo.ConditionReady, metav1.ConditionFalse, kudo.ReasonPlanInProgress, "")}
	instance.Status.PlanStatus = map[string]kudo.PlanStatus{"deploy": {UID: "ran", Status: kudo.InProgress, StartedTimestamp: &at, Phases: []kudo.PhaseStatus{{
		Name: "brokers", Status: kudo.InProgress, Steps: []kudo.StepStatus{
			{Name: "brokers", Status: kudo.Error, Message: "no more\ndisks", Tasks: []kudo.TaskStatus{{Name: "brokers", Status: kudo.Error}}},
		},
	}}}}
	instance.Status.Tasks = []kudo.TaskRecord{{Task: "brokers", HooksOf: "ran", Hooks: []kudo.HookRecord{
		{Event: "pre-install", Kind: "Job", Namespace: "kafka", Name: "check", State: kudo.HookSucceeded},
		{Event: "pre-install", Kind: "Job", Namespace: "kafka", Name: "migrate", State: kudo.HookFailed, Message: "exit code 3: <no database>"},
	}}}
	view.Instances = map[string]*kudo.Instance{"kafka": instance}
	return view
}

// TestFleetIsSmall checks the size of the page for the largest fleet that is promised.
func TestFleetIsSmall(t *testing.T) {
	all := wide(1000)
	if size := len(renderPage(t, fleetFrame(all, ""))); size > 150_000 {
		t.Errorf("page Fleet has %d bytes for 1,000 clusters with 20 add-ons, want at most 150,000", size)
	} else {
		t.Logf("page Fleet of 1,000 clusters with 20 add-ons has %d bytes", size)
	}
	odd := fleet.Glance{} // no two clusters are alike
	for i := range 1000 {
		for k := range 20 {
			odd.Add(fmt.Sprintf("cluster-%04d", i), fleet.Subject{Name: fmt.Sprintf("addon-%02d", k)},
				fleet.Glimpse{State: []fleet.State{fleet.NotAvailable, fleet.Available}[i>>(k%10)&1], Reason: fmt.Sprint("Reason", i)})
		}
	}
	if size := len(renderPage(t, fleetFrame(odd, ""))); size > 150_000 {
		t.Errorf("page Fleet has %d bytes for 1,000 different clusters, want at most 150,000", size)
	}
}

func TestFilters(t *testing.T) {
	all := wide(50)
	for query, want := range map[string]int{
		"": 50, "cluster=-000": 10, "state=NotAvailable": 5, "reason=ProbeUnavailable&addon=addon-00": 1, "addon=addon-01": 50, "addon=none": 0,
		"state=Removing": 0, "state=Blocked": 0, "alike=cluster-0000": 50, "page=9": 50, "page=x": 50,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		f := filterOf("/", values)
		if got := len(f.of(all)); got != want {
			t.Errorf("%q selects %d clusters, want %d", query, got, want)
		}
	}
	if f := filterOf("/", url.Values{"selector": {"a=("}}); f.Problem == "" {
		t.Error("an invalid selector is no problem")
	}
}

func TestRequests(t *testing.T) {
	s := server(t)
	ask := func(method, target, host string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, nil)
		r.Host = host
		for _, c := range change {
			c(r)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	session := &http.Cookie{}
	for _, step := range []struct {
		sentence, method, target, host string
		change                         func(*http.Request)
		want                           int
	}{
		{"a host that leads here by DNS rebinding is refused", "GET", "/", "evil.example", nil, http.StatusMisdirectedRequest},
		{"a host that only begins like a served one is refused", "GET", "/", "127.0.0.1.evil.example:80", nil, http.StatusMisdirectedRequest},
		{"without a session there is no page", "GET", "/clusters/cluster1", "127.0.0.1:8080", nil, http.StatusUnauthorized},
		{"without a session there is no page that does not exist", "GET", "/nothing", "127.0.0.1:8080", nil, http.StatusUnauthorized},
		{"a wrong key starts no session", "GET", "/session/open?key=wrong", "127.0.0.1:8080", nil, http.StatusUnauthorized},
		{"a request of another site is refused", "POST", "/session/leave", "127.0.0.1:8080",
			func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden},
		{"the key starts a session", "GET", s.Gate.(*Local).Path(), "127.0.0.1:8080", nil, http.StatusOK},
		{"the key works once", "GET", s.Gate.(*Local).Path() + "&again", "127.0.0.1:8080", nil, http.StatusUnauthorized},
		{"with the session, what does not exist is absent", "GET", "/nothing", "127.0.0.1:8080", func(r *http.Request) { r.AddCookie(session) }, http.StatusNotFound},
		{"another cookie is no session", "GET", "/nothing", "127.0.0.1:8080",
			func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "tandem", Value: "x"}) }, http.StatusUnauthorized},
	} {
		var change []func(*http.Request)
		if step.change != nil {
			change = append(change, step.change)
		}
		w := ask(step.method, step.target, step.host, change...)
		if w.Code != step.want {
			t.Errorf("%s: got status %d, want %d", step.sentence, w.Code, step.want)
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'; script-src 'self'") {
			t.Errorf("%s: the policy is %q", step.sentence, policy)
		}
		for _, cookie := range w.Result().Cookies() {
			session = cookie
			if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode {
				t.Errorf("%s: cookie %v is readable by scripts or sent by other sites", step.sentence, cookie)
			}
		}
	}
}

func TestRefusalsNameWhatHelps(t *testing.T) {
	s := server(t)
	gate := s.Gate.(*Local)
	session, _ := gate.open(gate.key)
	for sentence, test := range map[string]struct {
		host, form string
		status     int
		want       string
	}{
		"another host":          {"evil.example", "", http.StatusMisdirectedRequest, "host \"evil.example\" is not served; use one of 127.0.0.1\n"},
		"a form that is stale":  {"127.0.0.1", "token=x", http.StatusForbidden, "the form is not from this session: load the page again\n"},
		"a form that is large":  {"127.0.0.1", "value=" + strings.Repeat("x", maxForm), http.StatusRequestEntityTooLarge, "the form has more than 65536 bytes; use the plugin\n"},
		"a form that is broken": {"127.0.0.1", "%", http.StatusForbidden, "the form is not from this session: load the page again\n"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/enable", strings.NewReader(test.form))
		r.Host = test.host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: "tandem", Value: session})
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != test.status || w.Body.String() != test.want {
			t.Errorf("%s: got %d %q, want %d %q", sentence, w.Code, w.Body, test.status, test.want)
		}
	}
}

func TestSessionsEnd(t *testing.T) {
	gate := NewLocal("tandem")
	now := time.Now()
	gate.now = func() time.Time { return now }
	key := gate.key
	session, ok := gate.open(key)
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.AddCookie(&http.Cookie{Name: "tandem", Value: session})
	if visitor, _ := gate.Visitor(r); !ok || visitor == nil {
		t.Fatal("the session has not begun")
	}
	now = now.Add(sessionLifetime + time.Second)
	if visitor, _ := gate.Visitor(r); visitor != nil {
		t.Error("the session does not end")
	}
	late := NewLocal("tandem")
	late.now = func() time.Time { return time.Now().Add(keyLifetime + time.Second) }
	if _, ok := late.open(late.key); ok {
		t.Error("the key does not end")
	}
}

// BenchmarkFleet measures page Fleet of 1,000 clusters with 20 add-ons: what one update of one viewer costs.
func BenchmarkFleet(b *testing.B) {
	all := wide(1000)
	s, err := New(Options{Hub: &Hub{contact: readCompletely(), changes: newChanges()}, Gate: NewLocal("tandem")})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.render("content", fleetFrame(all, "")); err != nil {
			b.Fatal(err)
		}
	}
}
