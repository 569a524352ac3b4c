package plans

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	helm "github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	corecontent "github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// following is the life of a PackageSource that follows a chart: versions of the chart, one that is deleted on the hub, and a value that a stored version does
// not have.
func following() scenario {
	return scenario{
		name:    "source",
		prepare: func(context.Context, *world) error { return nil },
		actions: []action{
			{"follow", follow, stored("1.0.0", "one")},
			{"publish", publish("1.1.0"), stored("1.1.0", "one")},
			{"lose", loseVersion("1.1.0"), stored("1.1.0", "one")},
			{"change", setValue("two"), func(ctx context.Context, r *run) error {
				return errors.Join(r.attempted(ctx, kudo.ReasonVersionConflict, "1.1.0"), r.isComplete(ctx, "1.1.0", "one"))
			}},
			{"release", publish("1.2.0"), stored("1.2.0", "two")},
			{"remove", removeSource, sourceGone},
		},
		onHub: []kind{
			kudo.GroupVersion.WithKind("PackageSource"), kudo.GroupVersion.WithKind("Operator"), kudo.GroupVersion.WithKind("OperatorVersion"),
		},
	}
}

// startFollowing starts package-controller, with the permissions that its manifests grant, and the repository that its sources follow.
func (w *world) startFollowing(t *testing.T) {
	t.Helper()
	rights, err := manifests.Objects(os.DirFS("../../../deploy"), "packagesources/rights.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range rights {
		if err := w.hub.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	w.charts = newCharts(t)
	w.programs = append(w.programs, newProgram(t, w, "package-controller", map[string]apiServer{
		"hub": {"kubeconfig", as(w.hubConfig, account+"package-controller", accounts()...)},
	}, "--health-probe-bind-address=0", "--leader-elect=false", "--allow-hosts="+w.charts.host, "--plain-http="+w.charts.host))
}

// charts is a repository on this machine.
type charts struct {
	host     string
	mutex    sync.Mutex
	archives map[string][]byte // by their files
}

func newCharts(t *testing.T) *charts {
	t.Helper()
	c := &charts{archives: map[string][]byte{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mutex.Lock()
		served := maps.Clone(c.archives)
		c.mutex.Unlock()
		registrytest.Repository(served).ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c.host = strings.TrimPrefix(server.URL, "http://")
	return c
}

// publish adds a version of a chart.
func (c *charts) publish(name, version string) error {
	archive, err := helm.Pack(fstest.MapFS{
		"Chart.yaml":            {Data: []byte("apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"), Mode: 0o644},
		"values.yaml":           {Data: []byte("value: none\n"), Mode: 0o644},
		"templates/config.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: {{ .Values.value | quote }}}\n"), Mode: 0o644},
	})
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.archives[name+"-"+version+".tgz"] = archive
	return nil
}

// source returns the run's PackageSource. Its chart is named like the run, and so are the versions that it stores.
func (r *run) source() *kudo.PackageSource {
	s := &kudo.PackageSource{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: r.name}}
	s.Spec.Chart = &kudo.SourceChart{
		Repository: "http://" + r.charts.host + "/charts", Name: r.name, Version: "*",
		Values: &runtime.RawExtension{Raw: []byte(`{"value": "one"}`)},
	}
	return s
}

func follow(ctx context.Context, r *run) error {
	if err := r.charts.publish(r.name, "1.0.0"); err != nil {
		return err
	}
	return r.hub.Create(ctx, r.source())
}

// publish returns an action that publishes a version, and asks for an attempt.
func publish(version string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		if err := r.charts.publish(r.name, version); err != nil {
			return err
		}
		return r.requestAttempt(ctx)
	}
}

// loseVersion returns an action that deletes a version, and asks for an attempt.
func loseVersion(version string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		if err := r.hub.Delete(ctx, r.versionOf(version)); err != nil {
			return err
		}
		return r.requestAttempt(ctx)
	}
}

// requestAttempt asks for an attempt of the source in the current action.
func (r *run) requestAttempt(ctx context.Context) error {
	return environment.Edit(ctx, r.hub, r.source(), func(s *kudo.PackageSource) {
		s.Annotations = map[string]string{kudo.AnnotationReconcileAt: r.action}
	})
}

func setValue(value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		return environment.Edit(ctx, r.hub, r.source(), func(s *kudo.PackageSource) {
			s.Spec.Chart.Values = &runtime.RawExtension{Raw: []byte(`{"value": "` + value + `"}`)}
		})
	}
}

// stored returns a check that the last attempt has stored a version with a value.
func stored(version, value string) func(context.Context, *run) error {
	return func(ctx context.Context, r *run) error {
		return errors.Join(r.attempted(ctx, kudo.ReasonStored, version), r.isComplete(ctx, version, value))
	}
}

// attempted returns an error unless the source was attempted as it is now, with a result, and has stored that version last.
func (r *run) attempted(ctx context.Context, reason, version string) error {
	s := r.source()
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	ready := meta.FindStatusCondition(s.Status.Conditions, kudo.ConditionReady)
	isCurrent := s.Status.ObservedGeneration == s.Generation && s.Status.LastHandledReconcileAt == s.Annotations[kudo.AnnotationReconcileAt]
	if ready == nil || ready.Reason != reason || !isCurrent || s.Status.Artifact == nil || s.Status.Artifact.Version != version {
		return fmt.Errorf("the status of PackageSource %s is %+v, want reason %s and version %s", s.Name, s.Status, reason, version)
	}
	return nil
}

func (r *run) versionOf(version string) *kudo.OperatorVersion {
	return &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: r.name + "-" + version}}
}

// isComplete returns an error unless the hub has a version with a value, and the archive of its chart as it was published, in parts that belong to it.
func (r *run) isComplete(ctx context.Context, version, value string) error {
	found := r.versionOf(version)
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
		return err
	}
	if given := found.Spec.Templates["values.yaml"]; given != "value: "+value+"\n" || len(found.Spec.Content) != 1 {
		return fmt.Errorf("OperatorVersion %s has values %q and %d files, want value %s and one file", found.Name, given, len(found.Spec.Content), value)
	}
	var parts [][]byte
	for _, digest := range found.Spec.Content[0].Parts {
		part := &kudo.OperatorContent{}
		if err := r.hub.Get(ctx, client.ObjectKey{Namespace: packages, Name: corecontent.Name(found.Name, digest)}, part); err != nil {
			return err
		}
		if len(part.OwnerReferences) != 1 || part.OwnerReferences[0].UID != found.UID {
			return fmt.Errorf("OperatorContent %s belongs to %+v, want OperatorVersion %s", part.Name, part.OwnerReferences, found.UID)
		}
		data, err := corecontent.Unpack(part)
		if err != nil {
			return err
		}
		parts = append(parts, data)
	}
	_, err := corecontent.Join(packages, found.Spec.Content[0], parts)
	return err
}

func removeSource(ctx context.Context, r *run) error { return r.hub.Delete(ctx, r.source()) }

// sourceGone returns an error unless the source is gone. The versions that it has stored stay.
func sourceGone(ctx context.Context, r *run) error {
	s := r.source()
	if err := r.hub.Get(ctx, client.ObjectKeyFromObject(s), s); !apierrors.IsNotFound(err) {
		return fmt.Errorf("PackageSource %s still exists: %v", s.Name, err)
	}
	found := r.versionOf("1.0.0")
	return r.hub.Get(ctx, client.ObjectKeyFromObject(found), found)
}
