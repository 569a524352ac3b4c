package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
	"github.com/tandem-addons/tandem/pkg/kube/identity"
	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// agentSecret is the Secret with the kubeconfig and the certificate of addon-agent. It has the same keys as the Secrets of OCM's add-on
	// registration.
	agentSecret = "tandem-hub-kubeconfig"
)

// joining is the registration of a managed cluster with a hub.
type joining struct {
	name         string
	hub, cluster client.Client
	// server is the connection from the agent's cluster to the hub.
	server *rest.Config
	// valid is the requested lifetime of the certificate for the agent's own key.
	valid time.Duration
}

// JoinOptions holds the arguments and flags of the command.
type JoinOptions struct {
	*hubclient.Factory
	name    string
	cluster hubclient.ManagedFlags
	server  string
	valid   time.Duration
	// insecure permits that the agent does not verify the hub's certificate.
	insecure bool
}

// NewCmdJoin returns the command. If runF is set, it replaces runJoin.
func NewCmdJoin(f *hubclient.Factory, runF func(context.Context, *JoinOptions) error) *cobra.Command {
	o := &JoinOptions{Factory: f}
	if runF == nil {
		runF = runJoin
	}
	cmd := &cobra.Command{
		Use:   "join CLUSTER --cluster-context NAME",
		Short: "Register a managed cluster and its agent on a hub without OCM",
		Long: "Register a managed cluster on the hub, and grant its addon-agent the permissions that it needs in the cluster's namespace\n" +
			"on the hub. The hub signs a bootstrap certificate that is valid for one day. It is stored in a Secret on the managed cluster,\n" +
			"together with a kubeconfig for the hub. When the agent starts, it replaces the certificate and its key by its own, which it later\n" +
			"renews. Run the command again if the certificate has expired; a running agent reloads it. Your own credentials are not stored.\n\n" +
			"On a hub with OCM, register clusters with clusteradm instead.",
		Example: "  kubectl addon join cluster1 --context hub --cluster-context cluster1\n" +
			"  kubectl addon join cluster1 --cluster-kubeconfig cluster1.kubeconfig --hub-server https://hub.example.com:6443",
		Args: terminal.Exactly("CLUSTER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, args[0]); err != nil {
				return err
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	o.cluster.AddFlags(cmd)
	cmd.Flags().StringVar(&o.server, "hub-server", "",
		"URL of the hub for pods on the managed cluster. Defaults to the server of the hub's context. For a hub on kind: https://HUB-control-plane:6443.")
	cmd.Flags().DurationVar(&o.valid, "valid", 365*24*time.Hour, "Requested lifetime of the agent's own certificate. The hub may issue a shorter one.")
	cmd.Flags().BoolVar(&o.insecure, "agent-insecure-skip-tls-verify", false,
		"If true, the agent does not verify the hub's certificate. Required if the kubeconfig of the hub skips the verification.")
	return cmd
}

func runJoin(ctx context.Context, o *JoinOptions) error {
	j, err := o.connect()
	if err != nil {
		return err
	}
	if warning := serverWarning(j.server.Host); warning != "" && o.server == "" {
		if err := terminal.Warn(o.ErrOut, warning); err != nil {
			return err
		}
	}
	return hubclient.Advise(j.run(ctx, o.Out), j.name)
}

// serverWarning returns a warning for the URL of a hub that other machines do not reach; empty if they may.
func serverWarning(server string) string {
	u, err := url.Parse(server)
	if err != nil || !isThisMachine(u.Hostname()) {
		return ""
	}
	return "the kubeconfig of the hub contains the address " + text.Quote(server) + " of this machine, which a pod on the managed cluster cannot reach; " +
		"name another with --hub-server (for a hub on kind: https://HUB-control-plane:6443)"
}

// isThisMachine reports whether a host is a name or an address that means another machine elsewhere.
func isThisMachine(host string) bool {
	ip := net.ParseIP(host)
	return ip.IsLoopback() || ip.IsUnspecified() || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}

func (o *JoinOptions) check(cmd *cobra.Command, name string) error {
	switch problems := validation.IsDNS1123Label(name); {
	case len(problems) > 0:
		return terminal.Usagef(cmd, "cluster name %q is not valid: %s", name, strings.Join(problems, "; "))
	case !o.cluster.IsSet():
		return terminal.Usagef(cmd, "--cluster-context or --cluster-kubeconfig of the managed cluster is required")
	case o.valid < identity.MinLifetime:
		return terminal.Usagef(cmd, "invalid argument %q for \"--valid\" flag: must be at least %s", o.valid, identity.MinLifetime)
	default:
		return nil
	}
}

// connect connects to the hub and to the managed cluster.
func (o *JoinOptions) connect() (joining, error) {
	j := joining{name: o.name, valid: o.valid}
	hub, err := hubclient.HubConfig(o.Flags)
	if err != nil {
		return j, err
	}
	if j.hub, err = hubclient.AnyClient(hub); err != nil {
		return j, fmt.Errorf("connecting to the hub: %w", err)
	}
	if hub.Insecure && !o.insecure {
		return j, errors.New("the connection to the hub does not verify the hub's certificate (insecure-skip-tls-verify), and the agent would not " +
			"either: set certificate-authority in the kubeconfig of the hub, or use --agent-insecure-skip-tls-verify to accept that")
	}
	j.server = rest.CopyConfig(hub)
	if o.server != "" {
		j.server.Host = o.server
	}
	cluster, err := o.cluster.Config(o.Flags)
	if err != nil {
		return j, err
	}
	if j.cluster, err = hubclient.AnyClient(cluster); err != nil {
		return j, fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	return j, nil
}

// run registers the cluster and prints each step. It is idempotent.
func (j joining) run(ctx context.Context, out io.Writer) error {
	if err := j.register(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "Cluster %s is registered on the hub.\n", j.name)
	key, certificate, err := j.identify(ctx)
	if err != nil {
		return err
	}
	signed, err := certutil.ParseCertsPEM(certificate)
	if err != nil {
		return fmt.Errorf("reading the certificate that the hub signed: %w", err)
	}
	fmt.Fprintf(out, "The bootstrap certificate of its agent is valid until %s. The agent replaces it with its own when it starts.\n",
		signed[0].NotAfter.UTC().Format(time.RFC3339))
	if err := j.keep(ctx, key, certificate); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Secret %s/%s on the cluster contains a kubeconfig for %s.\n",
		hubclient.AgentNamespace, agentSecret, j.server.Host)
	return err
}

// register creates the cluster's namespace on the hub, the agent's permissions in it, and the ManagedCluster.
func (j joining) register(ctx context.Context) error {
	objects, err := manifests.Objects(manifests.FS, "cluster/*.yaml", manifests.ClusterParameters{Cluster: j.name})
	if err != nil {
		return err
	}
	registration := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"hubAcceptsClient": true}}}
	registration.SetAPIVersion("cluster.open-cluster-management.io/v1")
	registration.SetKind("ManagedCluster")
	registration.SetName(j.name)
	for _, object := range append(objects, registration) {
		if _, err := apply.Object(ctx, j.hub, object, hubclient.FieldManager); err != nil {
			return fmt.Errorf("applying %s %q on the hub: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// identify requests a bootstrap certificate for the agent's identity from the hub. It returns the key and the certificate as PEM.
func (j joining) identify(ctx context.Context) (key, certificate []byte, err error) {
	key, csr, err := identity.NewRequest(j.name, min(j.valid, identity.BootstrapLifetime))
	if err != nil {
		return nil, nil, err
	}
	if err := j.hub.Create(ctx, csr); err != nil {
		return nil, nil, fmt.Errorf("requesting a certificate: %w", err)
	}
	certificate, err = j.sign(ctx, csr)
	cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second) // an approved request must not stay after an interrupt
	defer cancel()
	return key, certificate, errors.Join(err, client.IgnoreNotFound(j.hub.Delete(cleanup, csr)))
}

// sign approves the request and waits for the certificate.
func (j joining) sign(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "Joined", Message: "A hub administrator registered the cluster with kubectl addon join.",
	})
	if err := j.hub.SubResource("approval").Update(ctx, csr); err != nil {
		return nil, fmt.Errorf("approving the certificate: %w", err)
	}
	return identity.Sign(ctx, j.hub, csr)
}

// keep stores the agent's certificate and hub kubeconfig on the managed cluster.
func (j joining) keep(ctx context.Context, key, certificate []byte) error {
	kubeconfig, err := j.kubeconfig()
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: hubclient.AgentNamespace},
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: hubclient.AgentNamespace, Name: agentSecret},
		Data: map[string][]byte{
			"kubeconfig": kubeconfig, "cluster-name": []byte(j.name), corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key,
			identity.RequestedLifetime: []byte(j.valid.String()),
		},
	}
	for _, object := range []client.Object{namespace, secret} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("converting %s: %w", object.GetName(), err)
		}
		delete(content, "status")
		if _, err := apply.Object(ctx, j.cluster, &unstructured.Unstructured{Object: content}, hubclient.FieldManager); err != nil {
			return fmt.Errorf("applying %s on the managed cluster: %w", object.GetName(), err)
		}
	}
	return nil
}

// kubeconfig returns a kubeconfig for the hub that refers to the key and certificate files beside it, because these are rotated.
func (j joining) kubeconfig() ([]byte, error) {
	if err := rest.LoadTLSFiles(j.server); err != nil {
		return nil, fmt.Errorf("reading the certificate of the hub: %w", err)
	}
	content := clientcmdapi.NewConfig()
	content.Clusters["hub"] = &clientcmdapi.Cluster{
		Server: j.server.Host, CertificateAuthorityData: j.server.CAData,
		TLSServerName: j.server.ServerName, InsecureSkipTLSVerify: j.server.Insecure,
	}
	content.AuthInfos["addon-agent"] = &clientcmdapi.AuthInfo{ClientCertificate: corev1.TLSCertKey, ClientKey: corev1.TLSPrivateKeyKey}
	content.Contexts["hub"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "addon-agent", Namespace: j.name}
	content.CurrentContext = "hub"
	written, err := clientcmd.Write(*content)
	if err != nil {
		return nil, fmt.Errorf("writing the agent's kubeconfig: %w", err)
	}
	return written, nil
}
