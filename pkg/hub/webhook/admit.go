package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/text"
)

// admissions reviews writes for the API server: its methods read the state that decides about a write of one kind, and a pure function
// decides. Nothing is written, so a dry run gets the same response as the real write.
//
// It serves on every replica and fails open: a write that cannot be judged is admitted with a warning, and judged after it is stored
// (conditions Degraded and Resolved).
type admissions struct {
	scheme *runtime.Scheme
	client client.Client
	// live bypasses the cache, for writes that depend on other recent writes, and does not wait for the requests of controllers.
	live          client.Client
	namespaces    install.Namespaces
	reserved      []string // namespaces of managed clusters in which nothing is installed
	verifications read.Verifications
	user          ownUser
	answers       *prometheus.CounterVec
}

func newAdmissions(mgr manager.Manager, namespaces install.Namespaces, reserved []string) (*admissions, error) {
	answers, err := controller.Register(registry.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "addon_admission_answers_total",
		Help: "Number of reviewed writes, by resource and answer: admitted, refused, or unjudged " +
			"(admitted because of an error).",
	}, []string{"resource", "answer"}))
	if err != nil {
		return nil, err
	}
	// A standby replica answers too, and then has no time to fill its cache.
	for _, kind := range []client.Object{&kudo.OperatorVersion{}, &kudo.Instance{}, &clusterv1.ManagedCluster{}, read.Namespace()} {
		if _, err := mgr.GetCache().GetInformer(context.Background(), kind); err != nil {
			return nil, fmt.Errorf("watching %T: %w", kind, err)
		}
	}
	// Apart: responses must not wait for the requests of the leader's controllers.
	live, err := client.New(controller.WithoutLimits(mgr.GetConfig()), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client for admission: %w", err)
	}
	return &admissions{
		scheme: mgr.GetScheme(), client: mgr.GetClient(), live: live, namespaces: namespaces, reserved: reserved,
		verifications: read.NewVerifications(), answers: answers,
	}, nil
}

// write is a write under review.
type write[O client.Object] struct {
	// before is the existing object, nil on create; after is the new object, nil on delete.
	before, after O
	user          string
	// forced is true for a deletion with grace period 0, as that of 'kubectl delete --force'.
	forced bool
	// replaces is true for an update that sends the whole object (PUT), as clusteradm does: what it lacks may have been dropped by mistake.
	replaces bool
}

// opinion is the result of a review. The zero value admits the write without warnings.
type opinion struct {
	warnings []string
	// refused is why the write is rejected and how to fix it; nil: it is admitted.
	refused error
}

// The answers, as labels of the metric.
const (
	answerAdmitted = "admitted"
	answerRefused  = "refused"
	answerUnjudged = "unjudged"
)

// reviewOf returns the handler for writes of one resource. Metrics do not use labels from the request: a client that reaches the endpoint
// could create any number of them.
func reviewOf[T any, O interface {
	*T
	client.Object
}](a *admissions, resource string, judge func(context.Context, write[O]) (opinion, error)) http.Handler {
	decoder := admission.NewDecoder(a.scheme)
	handle := func(ctx context.Context, request admission.Request) (o opinion, err error) {
		defer func() {
			if problem := recover(); problem != nil {
				for _, logStack := range utilruntime.PanicHandlers {
					logStack(ctx, problem)
				}
				err = fmt.Errorf("panic: %v", problem)
			}
		}()
		w := write[O]{user: request.UserInfo.Username, forced: isForced(request), replaces: isReplacement(request)}
		for _, side := range []struct {
			raw  runtime.RawExtension
			into *O
		}{{request.OldObject, &w.before}, {request.Object, &w.after}} {
			if len(side.raw.Raw) == 0 {
				continue
			}
			if !isObject(side.raw.Raw) { // the decoder would take it for YAML, which expands
				return o, errors.New("reading the object: it is not a JSON object")
			}
			*side.into = new(T)
			if err := decoder.DecodeRaw(side.raw, *side.into); err != nil {
				return o, fmt.Errorf("reading the object: %w", err)
			}
		}
		return judge(ctx, w)
	}
	return &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
		o, err := handle(ctx, request)
		answer, response := answerTo(ctx, request, o, err)
		a.answers.WithLabelValues(resource, answer).Inc()
		return response
	})}
}

// answerTo returns the response for an opinion, or for an error, and its label in the metric.
func answerTo(ctx context.Context, request admission.Request, o opinion, err error) (answer string, response admission.Response) {
	answer, response = answerAdmitted, admission.Allowed("")
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "admitting a write without validation", "operation", request.Operation)
		answer = answerUnjudged
		o.warnings = []string{fmt.Sprintf("this write was admitted without validation, and problems are reported after it is stored: %v", err)}
	case o.refused != nil:
		answer = answerRefused
		response = admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: text.Truncate(o.refused.Error(), refusalLimit),
		}}}
	}
	return answer, response.WithWarnings(limitWarnings(o.warnings)...)
}

// Limits for texts that users read. The API server truncates longer or further warnings at arbitrary positions.
const (
	refusalLimit  = 4096
	warningLimit  = 256
	warningsLimit = 4096 / warningLimit
)

// limitWarnings returns warnings that fit into a response.
func limitWarnings(warnings []string) []string {
	var fitting []string
	if left := len(warnings) - warningsLimit; left > 0 {
		warnings = append(warnings[:warningsLimit-1:warningsLimit-1], fmt.Sprintf("and %d more warnings", left+1))
	}
	for _, warning := range warnings {
		// A warning is a header of the response, so it has one line.
		fitting = append(fitting, text.Truncate(text.OneLine(warning), warningLimit))
	}
	return fitting
}
