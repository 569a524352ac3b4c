package controller_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// newLimitedConfig returns the config of a client with an adaptive limit, for an API server that answers with serve.
func newLimitedConfig(t *testing.T, serve http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL}
	if err := new(controller.Limit).ApplyTo(config); err != nil {
		t.Fatal(err)
	}
	return config
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func answerWith(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"kind": "` + kind + `", "apiVersion": "v1", "metadata": {"name": "a"}}`))
}

// client-go repeats a request that the API server's priority and fairness rejects.
func TestAThrottledRequestIsRepeatedAfterTheTimeThatTheServerGives(t *testing.T) {
	var answers []time.Time
	config := newLimitedConfig(t, func(w http.ResponseWriter, _ *http.Request) {
		answers = append(answers, time.Now())
		if len(answers) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		answerWith(w, "ConfigMap")
	})
	if _, err := clientset(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(answers) != 2 || answers[1].Sub(answers[0]) < time.Second {
		t.Errorf("requests arrived at %v, want two with a second between them", answers)
	}
}

// runAtLimit calls do while as many requests as the limit permits wait for their answers and one more is not sent. hold reports whether the
// server holds a request back.
func runAtLimit(t *testing.T, hold func(*http.Request) bool, do func(config *rest.Config)) {
	t.Helper()
	var held atomic.Int64
	arrived, release := make(chan struct{}, 1000), make(chan struct{})
	config := newLimitedConfig(t, func(w http.ResponseWriter, r *http.Request) {
		if hold(r) {
			held.Add(1)
			arrived <- struct{}{}
			<-release
		}
		switch {
		case strings.HasSuffix(r.URL.Path, "/log"):
			_, _ = w.Write([]byte("a line"))
		case strings.Contains(r.URL.Path, "/leases"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": {"name": "a"}}`))
		default:
			answerWith(w, "ConfigMap")
		}
	})
	bulk, done := clientset(t, config), make(chan struct{})
	const requests = 100
	for range requests {
		go func() {
			_, _ = bulk.CoreV1().ConfigMaps("default").Get(context.Background(), "a", metav1.GetOptions{})
			done <- struct{}{}
		}()
	}
	for range startLimit {
		<-arrived
	}
	do(config)
	if held := held.Load(); held != startLimit {
		t.Errorf("%d requests are in flight, want %d", held, startLimit)
	}
	close(release)
	for range requests {
		<-done
	}
}

// requestTimeout is the timeout of a request that does not wait for others.
const requestTimeout = time.Minute

// startLimit is the limit before anything is known about the server.
const startLimit = 32

func TestOnlyRequestsThatCanWaitAreLimited(t *testing.T) {
	ofConfigMap := func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/configmaps/a") }
	for sentence, send := range map[string]func(context.Context, kubernetes.Interface) error{
		"a watch": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
			return err
		},
		"the renewal of a Lease": func(ctx context.Context, c kubernetes.Interface) error {
			_, err := c.CoordinationV1().Leases("default").Get(ctx, "a", metav1.GetOptions{})
			return err
		},
		"the log of a pod": func(ctx context.Context, c kubernetes.Interface) error {
			return c.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").Name("a").SubResource("log").Do(ctx).Error()
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			runAtLimit(t, ofConfigMap, func(config *rest.Config) {
				ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
				defer cancel()
				if err := send(ctx, clientset(t, config)); err != nil {
					t.Error(err)
				}
			})
		})
	}
	t.Run("another request waits", func(t *testing.T) {
		runAtLimit(t, ofConfigMap, func(config *rest.Config) {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := clientset(t, config).CoreV1().Secrets("default").Get(ctx, "a", metav1.GetOptions{})
			if err == nil || ctx.Err() == nil {
				t.Errorf("it was sent: %v", err)
			}
		})
	})
	t.Run("a client apart does not", func(t *testing.T) {
		runAtLimit(t, ofConfigMap, func(config *rest.Config) {
			ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
			defer cancel()
			if _, err := clientset(t, controller.WithoutLimits(config)).CoreV1().ConfigMaps("default").Get(ctx, "b", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
		})
	})
}
