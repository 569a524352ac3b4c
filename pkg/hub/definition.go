package hub

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/dependency"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/controller"
)

// definitions emits an event on a ClusterManagementAddOn with malformed dependencies: once for each change of them, regardless of the
// number of clusters with the add-on. It writes nothing else.
type definitions struct {
	client   client.Client
	recorder events.EventRecorder
}

func (d *definitions) SetUp(mgr manager.Manager) error {
	return controller.New(mgr, "definition", controller.Options{}).
		For(&addonv1alpha1.ClusterManagementAddOn{}, builder.WithPredicates(controller.ChangeIn(read.ViewDeclaration))).
		Complete(d)
}

// Reconcile checks one ClusterManagementAddOn.
func (d *definitions) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var definition addonv1alpha1.ClusterManagementAddOn
	if err := d.client.Get(ctx, request.NamespacedName, &definition); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("reading ClusterManagementAddOn %q: %w", request.Name, err))
	}
	if _, err := dependency.DeclaredBy(&definition); err != nil {
		d.recorder.Eventf(&definition, nil, corev1.EventTypeWarning, eventDependenciesMalformed, actionEvaluate, "%s",
			controller.TruncateNote(fmt.Sprintf("%v; every cluster keeps the last verdict", err)))
	}
	return ctrl.Result{}, nil
}
