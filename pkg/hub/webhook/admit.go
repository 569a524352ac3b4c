package webhook

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/controller"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// admissions answers the API server's questions about writes: its methods gather what matters about a write of one kind, and a pure
// function decides. Nothing is written, so that a dry run is answered as the real write would be.
//
// It serves on every replica and never stands in the way: what cannot be judged is let in with a warning, and judged where it
// stands (conditions Degraded and Resolved).
type admissions struct {
	scheme *runtime.Scheme
	client client.Client
	// live reads past the cache, where a write is about what was written a moment before.
	live              client.Reader
	packagesNamespace string
	verifications     read.Verifications
	user              ownUser
	answers           *prometheus.CounterVec
}

func newAdmissions(mgr manager.Manager, packagesNamespace string) (*admissions, error) {
	answers, err := controller.Register(registry.Registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "addon_admission_answers_total",
		Help: "Writes that the API server asked about, by resource and answer: admitted, refused, or unjudged " +
			"(let in because of an error).",
	}, []string{"resource", "answer"}))
	if err != nil {
		return nil, err
	}
	// A replica that stands by answers too, and then has no time to fill its cache.
	if _, err := mgr.GetCache().GetInformer(context.Background(), &kudo.OperatorVersion{}); err != nil {
		return nil, fmt.Errorf("watching OperatorVersions: %w", err)
	}
	// With a limit of its own: who waits for an answer must not wait for what the controllers of the leader send.
	live, err := client.New(controller.Apart(mgr.GetConfig()), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client for admission: %w", err)
	}
	return &admissions{
		scheme: mgr.GetScheme(), client: mgr.GetClient(), live: live, packagesNamespace: packagesNamespace,
		verifications: read.NewVerifications(), answers: answers,
	}, nil
}

// write is a write that the API server asks about.
type write[O client.Object] struct {
	// before is the object as it stands, nil on create; after as it is to stand, nil on delete.
	before, after O
	user          string
}

// opinion is what is said of a write. The zero value lets it in without a word.
type opinion struct {
	warnings []string
	// refused says why the write is refused, and the way out; nil: it is let in.
	refused error
}

// The answers, as they are counted.
const (
	answerAdmitted = "admitted"
	answerRefused  = "refused"
	answerUnjudged = "unjudged"
)

// reviewOf makes the handler for the writes of one resource of what judges them. What a request says of its resource is not counted
// by: whoever reaches the endpoint could make up any number of them.
func reviewOf[T any, O interface {
	*T
	client.Object
}](a *admissions, resource string, judge func(context.Context, write[O]) (opinion, error)) http.Handler {
	decoder := admission.NewDecoder(a.scheme)
	handle := func(ctx context.Context, request admission.Request) (o opinion, err error) {
		defer func() {
			if fault := recover(); fault != nil {
				for _, logStack := range utilruntime.PanicHandlers {
					logStack(ctx, fault)
				}
				err = fmt.Errorf("panic: %v", fault)
			}
		}()
		w := write[O]{user: request.UserInfo.Username}
		for _, side := range []struct {
			raw  runtime.RawExtension
			into *O
		}{{request.OldObject, &w.before}, {request.Object, &w.after}} {
			if len(side.raw.Raw) == 0 {
				continue
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

// answerTo makes the response of an opinion, or of the error that there is none, and says as which answer it counts.
func answerTo(ctx context.Context, request admission.Request, o opinion, err error) (answer string, response admission.Response) {
	answer, response = answerAdmitted, admission.Allowed("")
	switch {
	case err != nil:
		log.FromContext(ctx).Error(err, "letting a write in unjudged", "operation", request.Operation)
		answer = answerUnjudged
		o.warnings = []string{fmt.Sprintf("this write was let in without a check, it is judged where it stands: %v", err)}
	case o.refused != nil:
		answer = answerRefused
		response = admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: text.Truncate(o.refused.Error(), refusalLimit),
		}}}
	}
	return answer, response.WithWarnings(bounded(o.warnings)...)
}

// Bounds of what a user reads. The API server cuts warnings that are longer or more than that where they please it.
const (
	refusalLimit  = 4096
	warningLimit  = 256
	warningsLimit = 4096 / warningLimit
)

// bounded are warnings as they fit into a response.
func bounded(warnings []string) []string {
	var fitting []string
	if left := len(warnings) - warningsLimit; left > 0 {
		warnings = append(warnings[:warningsLimit-1:warningsLimit-1], fmt.Sprintf("and %d more warnings", left+1))
	}
	for _, warning := range warnings {
		// A warning is a header of the response, so it is one line.
		fitting = append(fitting, text.Truncate(text.OneLine(warning), warningLimit))
	}
	return fitting
}
