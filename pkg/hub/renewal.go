package hub

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tandem-addons/tandem/pkg/kube/controller"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
)

// agentBinding is the RoleBinding in a cluster's namespace that grants the cluster's agent its permissions.
const agentBinding = "tandem:addon-agent"

// renewals approves the certificate requests of agents that renew their certificate, and denies all other requests of agents: an agent may
// request exactly its own identity, as long as the RoleBinding in its cluster's namespace exists. Requests of other users are ignored.
type renewals struct {
	client client.Client
	live   client.Reader
	logger logr.Logger
	// answers counts the decisions.
	answers *prometheus.CounterVec
}

func (r *renewals) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "renewal", controller.Options{}).
		For(&certificatesv1.CertificateSigningRequest{}, builder.WithPredicates(predicate.NewPredicateFuncs(isPending))).
		Complete(r)
}

// isPending reports whether a request for a client certificate was made by an agent and is undecided.
func isPending(o client.Object) bool {
	csr := o.(*certificatesv1.CertificateSigningRequest)
	_, byAgent := identity.ClusterOf(csr.Spec.Username)
	decided := slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied
	})
	return byAgent && !decided && csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName && csr.DeletionTimestamp == nil
}

// Reconcile decides on one request.
func (r *renewals) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.client.Get(ctx, request.NamespacedName, csr); err != nil || !isPending(csr) {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	cluster, _ := identity.ClusterOf(csr.Spec.Username)
	problem, err := r.problem(ctx, csr, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	condition, answer := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "Renewed", Message: fmt.Sprintf("The agent of cluster %s renews its certificate.", cluster),
	}, "approved"
	if problem != "" {
		condition.Type, condition.Reason, answer = certificatesv1.CertificateDenied, "Refused", "refused"
		condition.Message = fmt.Sprintf("The agent of cluster %s may only renew its own certificate: %s.", cluster, problem)
	}
	decided := csr.DeepCopy()
	decided.Status.Conditions = append(decided.Status.Conditions, condition)
	if err := r.client.SubResource("approval").Update(ctx, decided); err != nil {
		return controller.RetryConflict(client.IgnoreNotFound(err))
	}
	r.answers.WithLabelValues(answer).Inc()
	r.logger.Info("decided on the renewal of an agent's certificate", "request", csr.Name, "cluster", cluster, "answer", answer, "problem", problem)
	return ctrl.Result{}, nil
}

// problem returns why the agent of a cluster must not get the certificate; empty if it may. The binding is a live read, so that a revoked
// agent gets no certificate afterwards.
func (r *renewals) problem(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, cluster string) (string, error) {
	if problem := identity.Problem(csr, identity.User(cluster), identity.Groups(cluster)); problem != "" {
		return problem, nil
	}
	err := r.live.Get(ctx, types.NamespacedName{Namespace: cluster, Name: agentBinding}, &rbacv1.RoleBinding{})
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("RoleBinding %q in namespace %q does not exist, which revokes its permissions", agentBinding, cluster), nil
	}
	if err != nil {
		return "", fmt.Errorf("reading RoleBinding %q in namespace %q: %w", agentBinding, cluster, err)
	}
	return "", nil
}
