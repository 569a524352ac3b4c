package ocm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"open-cluster-management.io/addon-framework/pkg/addonmanager"
	"open-cluster-management.io/addon-framework/pkg/agent"
	"open-cluster-management.io/addon-framework/pkg/index"
	"open-cluster-management.io/addon-framework/pkg/utils"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	addonclient "open-cluster-management.io/api/client/addon/clientset/versioned"
	addoninformers "open-cluster-management.io/api/client/addon/informers/externalversions"
	clusterclient "open-cluster-management.io/api/client/cluster/clientset/versioned"
	clusterinformers "open-cluster-management.io/api/client/cluster/informers/externalversions"
	workclient "open-cluster-management.io/api/client/work/clientset/versioned"
	workinformers "open-cluster-management.io/api/client/work/informers/externalversions"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	registry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/hub/read"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

// deliveryResync is the interval at which every agent is reconciled without a change, for objects that are not watched: its permissions on
// the hub.
const deliveryResync = time.Hour

// delivery installs addon-agent on managed clusters as an OCM add-on, with addon-framework: a ManifestWork with everything that the agent
// needs there, its own identity on the hub, and the permissions of that identity in the cluster's namespace. OCM's klusterlet applies the
// ManifestWork, requests the identity, and judges the agent by its lease.
type delivery struct {
	client client.Client
	live   client.Reader
	config *rest.Config
	logger logr.Logger
	// certificates counts the answers to certificate requests.
	certificates *prometheus.CounterVec
	// arguments are further arguments of all agents.
	arguments []string
	// allowed are patterns of configs that may configure agents, beside those of the definition.
	allowed []string

	// configs and works are the listers that addon-framework uses.
	configs toolscache.GenericLister
	works   toolscache.Indexer
}

func newDelivery(mgr manager.Manager, certificates *prometheus.CounterVec, arguments, allowed []string) *delivery {
	config := rest.CopyConfig(mgr.GetConfig())
	config.UserAgent = "addon-framework" // the API server uses it to distinguish its fields from Tandem's
	return &delivery{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), config: config, logger: mgr.GetLogger().WithName("delivery"),
		certificates: certificates, arguments: arguments, allowed: allowed,
	}
}

func (d *delivery) SetUp(mgr manager.Manager) error { return mgr.Add(d) }

// Start runs the delivery until ctx ends.
func (d *delivery) Start(ctx context.Context) error {
	ctx = logr.NewContext(ctx, d.logger.V(1)) // addon-framework logs every start and end of its controllers
	sources, err := newDeliverySources(d.config)
	if err != nil {
		return fmt.Errorf("connecting addon-framework to the hub: %w", err)
	}
	d.configs = sources.configs.ForResource(utils.AddOnDeploymentConfigGVR).Lister()
	d.works = sources.works.Work().V1().ManifestWorks().Informer().GetIndexer()
	agents := &deliveries{works: d.works}
	if err := registry.Registry.Register(agents); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	defer registry.Registry.Unregister(agents)
	framework, err := addonmanager.New(d.config)
	if err != nil {
		return fmt.Errorf("starting addon-framework: %w", err)
	}
	if err := framework.AddAgent(d); err != nil {
		return fmt.Errorf("starting addon-framework: %w", err)
	}
	err = framework.StartWithInformers(ctx, sources.workClient, sources.works.Work().V1().ManifestWorks(),
		sources.requests, sources.addOns, sources.clusters, sources.configs)
	if err != nil {
		return fmt.Errorf("starting addon-framework: %w", err)
	}
	sources.run(ctx)
	return nil
}

// deliverySources are the informers for addon-framework, limited to the objects of this add-on, and the clusters.
type deliverySources struct {
	workClient workclient.Interface

	addOns   addoninformers.SharedInformerFactory
	works    workinformers.SharedInformerFactory
	clusters clusterinformers.SharedInformerFactory
	requests kubeinformers.SharedInformerFactory
	configs  dynamicinformer.DynamicSharedInformerFactory
}

func newDeliverySources(config *rest.Config) (*deliverySources, error) {
	addOns, ofAddOns := addonclient.NewForConfig(config)
	works, ofWorks := workclient.NewForConfig(config)
	clusters, ofClusters := clusterclient.NewForConfig(config)
	kube, ofKube := kubernetes.NewForConfig(config)
	untyped, ofUntyped := dynamic.NewForConfig(config)
	if err := errors.Join(ofAddOns, ofWorks, ofClusters, ofKube, ofUntyped); err != nil {
		return nil, err
	}
	ours := func(o *metav1.ListOptions) {
		o.LabelSelector = labels.Set{upstreamv1beta1.AddonLabelKey: addonv1alpha1.AgentAddOn}.String()
	}
	named := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, addonv1alpha1.AgentAddOn).String()
	}
	s := &deliverySources{
		workClient: works,
		addOns: addoninformers.NewSharedInformerFactoryWithOptions(addOns, deliveryResync,
			addoninformers.WithTweakListOptions(named), addoninformers.WithTransform(forgetManagers)),
		works: workinformers.NewSharedInformerFactoryWithOptions(works, deliveryResync,
			workinformers.WithTweakListOptions(ours), workinformers.WithTransform(forgetManagers)),
		clusters: clusterinformers.NewSharedInformerFactoryWithOptions(clusters, deliveryResync,
			clusterinformers.WithTransform(forgetManagers)),
		requests: kubeinformers.NewSharedInformerFactoryWithOptions(kube, deliveryResync,
			kubeinformers.WithTransform(forgetManagers)),
		configs: dynamicinformer.NewDynamicSharedInformerFactory(untyped, deliveryResync),
	}
	s.requests.InformerFor(&certificatesv1.CertificateSigningRequest{}, copyingRequests(ours))
	configs := s.configs.ForResource(utils.AddOnDeploymentConfigGVR).Informer()
	return s, errors.Join(s.addIndexes(), configs.SetTransform(forgetManagers))
}

// addIndexes adds the indexes that addon-framework uses.
func (s *deliverySources) addIndexes() error {
	addOns := s.addOns.Addon().V1beta1()
	return errors.Join(
		s.works.Work().V1().ManifestWorks().Informer().AddIndexers(toolscache.Indexers{
			index.ManifestWorkByAddon:           index.IndexManifestWorkByAddon,
			index.ManifestWorkByHostedAddon:     index.IndexManifestWorkByHostedAddon,
			index.ManifestWorkHookByHostedAddon: index.IndexManifestWorkHookByHostedAddon,
		}),
		addOns.ManagedClusterAddOns().Informer().AddIndexers(toolscache.Indexers{
			index.ManagedClusterAddonByNamespace: index.IndexManagedClusterAddonByNamespace,
			index.AddonByConfig:                  index.IndexAddonByConfig,
		}),
		addOns.ClusterManagementAddOns().Informer().AddIndexers(toolscache.Indexers{
			index.ClusterManagementAddonByConfig: index.IndexClusterManagementAddonByConfig,
		}),
	)
}

// run runs the informers until ctx ends.
func (s *deliverySources) run(ctx context.Context) {
	factories := []interface {
		Start(stop <-chan struct{})
		Shutdown()
	}{s.addOns, s.works, s.clusters, s.requests, s.configs}
	for _, f := range factories {
		f.Start(ctx.Done())
	}
	<-ctx.Done()
	for _, f := range factories {
		f.Shutdown()
	}
}

// forgetManagers drops managed fields, which are not read.
func forgetManagers(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// GetAgentAddonOptions returns OCM's options for the agent.
func (d *delivery) GetAgentAddonOptions() agent.AgentAddonOptions {
	return agent.AgentAddonOptions{
		AddonName: addonv1alpha1.AgentAddOn,
		Registration: &agent.RegistrationOption{
			Configurations:   agent.KubeClientSignerConfigurations(addonv1alpha1.AgentAddOn, addonv1alpha1.AgentName),
			CSRApproveCheck:  d.approve,
			PermissionConfig: d.permit,
		},
		HealthProber:                    &agent.HealthProber{Type: agent.HealthProberTypeLease},
		AgentInstallNamespace:           d.installNamespace,
		SupportedConfigGVRs:             []schema.GroupVersionResource{utils.AddOnDeploymentConfigGVR},
		AgentDeployTriggerClusterFilter: utils.ClusterImageRegistriesAnnotationChanged,
		ConfigCheckEnabled:              true,
	}
}

// Manifests returns the manifests for a cluster. If its configuration has changed but is not rolled out to the cluster yet, it returns the
// current ones.
func (d *delivery) Manifests(ctx context.Context, on *clusterv1.ManagedCluster, addOn *upstreamv1beta1.ManagedClusterAddOn) ([]runtime.Object, error) {
	config, err := d.configuration(ctx, addOn)
	if errors.Is(err, errNotRolledOut) {
		return d.currentManifests(addOn)
	}
	if err != nil {
		return nil, err
	}
	variables, err := agentVariables(config)
	if err != nil {
		return nil, err
	}
	image, err := overrideImage(variables[variableImage], on, config.Registries)
	if err != nil {
		return nil, err
	}
	return agentManifests(image, d.arguments, config)
}

// errNotRolledOut reports that the add-on's AddOnDeploymentConfig differs from the one that OCM currently desires on the cluster.
var errNotRolledOut = errors.New("the add-on's AddOnDeploymentConfig has changed, and " +
	"OCM's addon-manager has not rolled it out to this cluster yet")

// configuration returns the AddOnDeploymentConfig that OCM desires for the agent on its cluster; the zero value if there is none.
func (d *delivery) configuration(
	ctx context.Context, addOn *upstreamv1beta1.ManagedClusterAddOn,
) (upstreamv1beta1.AddOnDeploymentConfigSpec, error) {
	config := upstreamv1beta1.AddOnDeploymentConfig{}
	resource := utils.AddOnDeploymentConfigGVR
	found, reference := utils.GetAddOnConfigRef(addOn.Status.ConfigReferences, resource.Group, resource.Resource)
	if !found || reference.DesiredConfig == nil {
		return config.Spec, nil
	}
	desired := reference.DesiredConfig
	if err := d.checkNamespace(ctx, addOn.Namespace, desired.ConfigReferent); err != nil {
		return config.Spec, err
	}
	if err := d.checkAllowed(ctx, addOn.Namespace, desired.ConfigReferent); err != nil {
		return config.Spec, err
	}
	object, err := d.configs.ByNamespace(desired.Namespace).Get(desired.Name)
	if err != nil {
		return config.Spec, fmt.Errorf("reading AddOnDeploymentConfig %s/%s: %w", desired.Namespace, desired.Name, err)
	}
	untyped, ok := object.(*unstructured.Unstructured)
	if !ok {
		return config.Spec, fmt.Errorf("reading AddOnDeploymentConfig %s/%s: it is a %T", desired.Namespace, desired.Name, object)
	}
	hash, err := utils.GetSpecHash(untyped)
	if err != nil {
		return config.Spec, fmt.Errorf("hashing AddOnDeploymentConfig %s/%s: %w", desired.Namespace, desired.Name, err)
	}
	if hash != desired.SpecHash {
		return config.Spec, errNotRolledOut
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(untyped.Object, &config); err != nil {
		return config.Spec, fmt.Errorf("decoding AddOnDeploymentConfig %s/%s: %w", desired.Namespace, desired.Name, err)
	}
	return config.Spec, nil
}

// checkNamespace returns a ForeignConfigError if the AddOnDeploymentConfig is in the namespace of another cluster, which may be detached: the
// manifests would disclose it to everyone who may read the add-on's namespace. checkAllowed judges all other namespaces.
func (d *delivery) checkNamespace(ctx context.Context, cluster string, config upstreamv1beta1.ConfigReferent) error {
	namespaces, err := read.Namespaces(ctx, d.client, install.Namespaces{Lenient: true}, []string{config.Namespace})
	if err != nil {
		return err
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: addonv1alpha1.AgentAddOn}}
	return namespaces.CheckConfig(nil, addOn, types.NamespacedName(config))
}

// checkAllowed returns a refusedConfigError if no administrator allows the AddOnDeploymentConfig.
func (d *delivery) checkAllowed(ctx context.Context, cluster string, config upstreamv1beta1.ConfigReferent) error {
	name := types.NamespacedName(config)
	for _, reader := range []client.Reader{d.client, d.live} { // a definition may have just changed
		definition, err := read.Definition(ctx, reader, addonv1alpha1.AgentAddOn)
		if err != nil {
			return err
		}
		if isAllowed(cluster, name, definition, d.allowed) {
			return nil
		}
	}
	return &refusedConfigError{config: name}
}

// currentManifests returns the current manifests of the cluster; errNotRolledOut if there are none.
func (d *delivery) currentManifests(addOn *upstreamv1beta1.ManagedClusterAddOn) ([]runtime.Object, error) {
	works, err := d.works.ByIndex(index.ManifestWorkByAddon, addOn.Namespace+"/"+addOn.Name)
	if err != nil {
		return nil, fmt.Errorf("finding the ManifestWorks of add-on %s/%s: %w", addOn.Namespace, addOn.Name, err)
	}
	var objects []runtime.Object
	for _, w := range works {
		for _, manifest := range w.(*workv1.ManifestWork).Spec.Workload.Manifests {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(manifest.Raw); err != nil {
				return nil, fmt.Errorf("decoding the ManifestWorks of add-on %s/%s: %w", addOn.Namespace, addOn.Name, err)
			}
			objects = append(objects, object)
		}
	}
	if len(objects) == 0 {
		return nil, errNotRolledOut
	}
	return objects, nil
}

// overrideImage returns the image as overridden by the registries, or else by those of the cluster's annotation.
func overrideImage(image string, on *clusterv1.ManagedCluster, registries []upstreamv1beta1.ImageMirror) (string, error) {
	if image == "" {
		return "", fmt.Errorf("no image of addon-agent is configured: set variable %s in the add-on's AddOnDeploymentConfig", variableImage)
	}
	overrides := on.Annotations
	if len(registries) > 0 {
		spelt, err := json.Marshal(map[string]any{"registries": registries})
		if err != nil {
			return "", fmt.Errorf("encoding the registries: %w", err)
		}
		overrides = map[string]string{clusterv1.ClusterImageRegistriesAnnotationKey: string(spelt)}
	}
	image, err := utils.OverrideImageByAnnotation(overrides, image)
	if err != nil {
		return "", fmt.Errorf("reading the image registries of ManagedCluster %q: %w", on.Name, err)
	}
	return image, nil
}

// installNamespace returns the current or desired namespace of the agent, which also holds the Secret with its hub kubeconfig, and its
// lease.
func (d *delivery) installNamespace(ctx context.Context, addOn *upstreamv1beta1.ManagedClusterAddOn) (string, error) {
	config, err := d.configuration(ctx, addOn)
	var foreign *install.ForeignConfigError
	var refused *refusedConfigError
	if !errors.Is(err, errNotRolledOut) && !errors.As(err, &foreign) && !errors.As(err, &refused) { // Manifests reports the latter two
		return installNamespaceOf(config), err
	}
	current, err := d.currentManifests(addOn)
	if err != nil && !errors.Is(err, errNotRolledOut) {
		return "", err
	}
	return cmp.Or(namespaceOf(current), addOn.Status.Namespace, agentNamespace), nil
}

// approve reports whether a certificate request was made by a cluster for its agent.
func (d *delivery) approve(
	_ context.Context, on *clusterv1.ManagedCluster, _ *upstreamv1beta1.ManagedClusterAddOn, csr *certificatesv1.CertificateSigningRequest,
) bool {
	user := agent.DefaultUser(on.Name, addonv1alpha1.AgentAddOn, addonv1alpha1.AgentName)
	problem := csrProblem(csr, on.Name, user, agent.DefaultGroups(on.Name, addonv1alpha1.AgentAddOn))
	if !on.Spec.HubAcceptsClient {
		problem = "the cluster is not accepted"
	}
	if problem != "" {
		d.certificates.WithLabelValues("refused").Inc()
		d.logger.Info("not approving a request for an agent's certificate", "request", csr.Name, "cluster", on.Name, "why", problem)
		return false
	}
	d.certificates.WithLabelValues("approved").Inc()
	d.logger.Info("approving the certificate of an agent", "request", csr.Name, "cluster", on.Name)
	return true
}

// permit grants the agent its permissions in the cluster's namespace, which equal those of agents without OCM. They are deleted with the
// add-on.
func (d *delivery) permit(ctx context.Context, on *clusterv1.ManagedCluster, addOn *upstreamv1beta1.ManagedClusterAddOn) error {
	objects, err := manifests.Objects(manifests.FS, "cluster/*.yaml", manifests.ClusterParameters{Cluster: on.Name})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			continue // OCM manages it
		}
		object.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn", Name: addOn.Name, UID: addOn.UID,
		}})
		if err := d.grant(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// grant applies a Role or a RoleBinding, unless it is up to date.
func (d *delivery) grant(ctx context.Context, want *unstructured.Unstructured) error {
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(want.GroupVersionKind())
	err := d.live.Get(ctx, client.ObjectKeyFromObject(want), existing)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	same := func(field string) bool {
		return equality.Semantic.DeepEqual(existing.Object[field], want.Object[field])
	}
	if !apierrors.IsNotFound(err) && same("rules") && same("roleRef") && same("subjects") &&
		equality.Semantic.DeepEqual(existing.GetOwnerReferences(), want.GetOwnerReferences()) {
		return nil
	}
	if _, err := apply.Object(ctx, d.client, want, ManagerDelivery); err != nil {
		return fmt.Errorf("applying %s %s: %w", want.GetKind(), client.ObjectKeyFromObject(want), err)
	}
	return nil
}
