package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/audit"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

var (
	//go:embed audit.yaml
	auditPolicy []byte
	//go:embed audit-installs.yaml
	installsPolicy []byte
)

// auditPolicy returns what the API server logs.
func (s *settings) auditPolicy() []byte {
	if s.first {
		return installsPolicy
	}
	return auditPolicy
}

// The writers: addon-manager with its service account's name and permissions, and a user that acts as the platform team and all
// klusterlets.
const (
	judge      = "system:serviceaccount:tandem-system:addon-manager"
	others     = "tandem-bench"
	klusterlet = "klusterlet" // field manager of condition Available
)

// The namespace and name of addon-manager's lease.
const (
	leaseNamespace = "tandem-system"
	leaseName      = "tandem-addon-manager"
)

// hub is an API server with all of Tandem's objects for a hub, and its clients.
type hub struct {
	server *environment.Environment
	store  *etcd
	// admin creates and reads the fleet; the audit log omits the administrator.
	admin client.Client
	// others makes the measured changes.
	others client.Client
	// judge is addon-manager's client configuration, also stored in the file kubeconfig.
	judge      *rest.Config
	kubeconfig string
	log        *audit.Log
}

// startHub starts an API server that logs to folder by an audit policy, with the default limits of concurrent requests.
func startHub(ctx context.Context, folder string, logged []byte) (*hub, error) {
	policy, log := filepath.Join(folder, "audit-policy.yaml"), filepath.Join(folder, "audit.log")
	if err := os.WriteFile(policy, logged, 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	store := &envtest.Etcd{}
	server, err := environment.Start(func(e *envtest.Environment) {
		e.ControlPlane.GetAPIServer().Configure().
			Set("audit-policy-file", policy).
			Set("audit-log-path", log).
			Set("audit-log-maxsize", "1000000") // megabytes: never rotate
		e.ControlPlane.Etcd = store
		store.Configure().Set("quota-backend-bytes", "8589934592")
	})
	if err != nil {
		return nil, err
	}
	h := &hub{server: server, store: &etcd{url: store.URL.String()}}
	if err := h.prepare(ctx, folder, log); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return h, nil
}

func (h *hub) prepare(ctx context.Context, folder, log string) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, addonv1alpha1.AddToScheme, kudo.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("registering API types: %w", err)
		}
	}
	unlimited := rest.CopyConfig(h.server.Config)
	unlimited.QPS = -1
	var err error
	if h.admin, err = client.New(unlimited, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connecting as administrator: %w", err)
	}
	if err := h.server.Apply(ctx, "hub", manifests.ClusterParameters{}); err != nil {
		return err
	}
	if h.others, err = h.addOthers(ctx); err != nil {
		return err
	}
	if h.kubeconfig, err = h.addJudge(filepath.Join(folder, "kubeconfig")); err != nil {
		return err
	}
	h.log, err = audit.Open(log)
	return err
}

// admit installs the policies and webhooks. The fleet is created before that, because it is much faster.
func (h *hub) admit(ctx context.Context) error {
	return h.server.Apply(ctx, "admission", manifests.ClusterParameters{})
}

// addJudge creates addon-manager's user and writes its kubeconfig to a file.
func (h *hub) addJudge(file string) (string, error) {
	user, err := h.server.AddUser(judge, "system:serviceaccounts", "system:serviceaccounts:tandem-system")
	if err != nil {
		return "", err
	}
	h.judge = user.Config()
	text, err := user.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("making addon-manager's kubeconfig: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return "", fmt.Errorf("writing addon-manager's kubeconfig: %w", err)
	}
	return file, nil
}

// addOthers creates the user of all other changes: it may change definitions, and report the status of add-ons.
func (h *hub) addOthers(ctx context.Context) (client.Client, error) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: others}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{addonv1alpha1.GroupVersion.Group},
		Resources: []string{"clustermanagementaddons", "managedclusteraddons/status"},
		Verbs:     []string{"patch"},
	}}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: others},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: others},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: others}},
	}
	for _, object := range []client.Object{role, binding} {
		if err := h.admin.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("giving rights to %s: %w", others, err)
		}
	}
	user, err := h.server.AddUser(others)
	if err != nil {
		return nil, err
	}
	config := user.Config()
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: h.admin.Scheme(), Mapper: h.admin.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting as %s: %w", others, err)
	}
	return c, nil
}

// hold takes addon-manager's lease, so that a starting addon-manager remains on standby, or releases it.
func (h *hub) hold(ctx context.Context, taken bool) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leaseNamespace, Name: leaseName}}
	holder := ""
	if taken {
		holder = others
	}
	err := environment.Edit(ctx, h.admin, lease, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity = &holder
		l.Spec.RenewTime = ptr.To(metav1.NowMicro())
		l.Spec.LeaseDurationSeconds = ptr.To(int32((24 * time.Hour).Seconds()))
	})
	if err != nil {
		return fmt.Errorf("writing addon-manager's lease: %w", err)
	}
	return nil
}

// webhooksAnswer reports whether addon-manager serves the webhooks: whether the API server can respond in the version that is not stored.
func (h *hub) webhooksAnswer(ctx context.Context) bool {
	definitions := &metav1.PartialObjectMetadataList{}
	definitions.SetGroupVersionKind(schema.GroupVersionKind{
		Group: addonv1alpha1.GroupVersion.Group, Version: "v1beta1", Kind: "ClusterManagementAddOnList",
	})
	return h.admin.List(ctx, definitions, client.Limit(1)) == nil
}

func (h *hub) stop() error { return errors.Join(h.log.Close(), h.server.Stop()) }
