package v1beta1

// DefaultPackagesNamespace is the default namespace on the hub of OperatorVersions for all clusters. addon-manager can be configured
// with another one. manifests/hub permits agents to read the OperatorVersions in it.
const DefaultPackagesNamespace = "addon-packages"

// LabelSharedConfigs, if "true", marks a namespace on the hub whose AddOnDeploymentConfigs the add-ons of all clusters may use. The admission
// policy tandem-shared-configs lets only users set it who may change all namespaces.
const LabelSharedConfigs = "kudo.dev/shared-configs"

// LabelConfiguration, if "true", marks a ConfigMap on the hub that add-ons may take parameters from: its keys are their names. addon-manager reads
// no other ConfigMaps.
const LabelConfiguration = "kudo.dev/configuration"

// LabelStack holds the name of the stack that `kubectl addon apply` has applied an object of the hub with. It decides what --prune may delete.
const LabelStack = "kudo.dev/stack"

// Labels of everything that an Instance applies (KUDO's names): objects, pod templates, volume claim templates.
const (
	LabelHeritage = "heritage"
	LabelOperator = "kudo.dev/operator"
	// LabelInstance holds the Instance's name with dashes instead of dots, like .Name in templates. Packages use it in selectors.
	LabelInstance = "kudo.dev/instance"

	// Heritage is the value of LabelHeritage.
	Heritage = "kudo"
)

// Annotations of every object that an Instance applies (KUDO's names).
const (
	AnnotationPlan            = "kudo.dev/plan"
	AnnotationPhase           = "kudo.dev/phase"
	AnnotationStep            = "kudo.dev/step"
	AnnotationOperatorVersion = "kudo.dev/operator-version"

	// AnnotationExecution holds the uid of the execution that last applied the object. On pod templates it changes only if pods
	// must restart (KEP-27).
	AnnotationExecution = "kudo.dev/last-plan-execution-uid"

	// AnnotationInstanceNamespace distinguishes Instances with the same name on objects outside the Instance's namespace.
	AnnotationInstanceNamespace = "kudo.dev/instance-namespace"

	// AnnotationHook holds what a hook of a chart was last applied at, such as pre-install.
	AnnotationHook = "kudo.dev/hook"

	// AnnotationPipe marks the pods of Pipe tasks (KUDO's name). They are deleted with the execution that created them.
	AnnotationPipe = "kudo.dev/pipepod"
)

// Labels of the Roles and bindings that hold the permissions of an Instance on the managed cluster, in addition to LabelHeritage: the
// namespace and the name of the Instance.
const (
	LabelRightsNamespace = "kudo.dev/rights-namespace"
	LabelRightsInstance  = "kudo.dev/rights-instance"
)

// LabelRoot is the label of every child Instance on the hub that holds the name of the Instance at the root of its tree.
const LabelRoot = "kudo.dev/root"

// AnnotationSignatures holds the signatures of the package on an OperatorVersion on the hub: a JSON list of objects with payload and signature, in base64
// (cosign's simple signing). Set by `kubectl addon package push`. Anyone who may write the OperatorVersion may write it: addon-manager verifies it.
const AnnotationSignatures = "kudo.dev/signatures"

// AnnotationReconcileAt asks for an attempt of a PackageSource at once: each new value, such as the time, is handled once.
const AnnotationReconcileAt = "kudo.dev/reconcile-at"

// AnnotationHosts lists the hosts, separated by commas, that get the credentials in a Secret of type kubernetes.io/basic-auth that a PackageSource names.
const AnnotationHosts = "kudo.dev/hosts"

// Annotations of an Instance on the hub.
const (
	// AnnotationPrune, if "true" on a Namespace that a package renders, lets a version of the package that no longer renders it delete the
	// Namespace with everything in it.
	AnnotationPrune = "kudo.dev/prune"
	// AnnotationKeep, if "true" on an object that a package renders, keeps the object when its Instance is removed, and when a version no longer
	// renders it: the Instance releases it. "false" overrides AnnotationHelmPolicy.
	AnnotationKeep = "kudo.dev/keep"
	// AnnotationHelmPolicy, if "keep", is Helm's name for the same.
	AnnotationHelmPolicy = "helm.sh/resource-policy"
	// AnnotationReleasedBy holds NAMESPACE/NAME of the Instance on the managed cluster that has applied the object and released it. Another
	// execution of that Instance may apply it again.
	AnnotationReleasedBy = "kudo.dev/released-by"
	// AnnotationForceRelease, if "true", releases an Instance that is being deleted: the hub does not wait for the agent, and the
	// agent leaves existing objects on the cluster.
	AnnotationForceRelease = "kudo.dev/force-release"
	// AnnotationSkipCleanup, if "true", removes the objects of an Instance that is being deleted without its cleanup plan. The agent copies
	// it to the mirror.
	AnnotationSkipCleanup = "kudo.dev/skip-cleanup"
	// AnnotationDiagnose is a time in the format of RFC 3339, at which a diagnosis of the Instance was requested. The agent copies it to the mirror, and
	// answers each value once, in status.diagnosis.
	AnnotationDiagnose = "kudo.dev/diagnose"
	// AnnotationAllowDeletion, if "true", lets users delete an Instance that belongs to an add-on or a parent Instance, with its volumes.
	// Its owner creates it again. The admission policy tandem-instance-deletion refuses the deletion without it.
	AnnotationAllowDeletion = "kudo.dev/allow-deletion"
)

// AnnotationWindows holds the maintenance windows of a ManagedCluster, or of the add-ons that use an AddOnDeploymentConfig, in YAML. addon-manager copies
// it to their Instances: see InstanceSpec.ClusterWindows and Windows.
const AnnotationWindows = "kudo.dev/maintenance-windows"

// AnnotationOnFailure holds what happens if a plan for another version fails, Stop or Return, on a ClusterManagementAddOn, or on an AddOnDeploymentConfig, which
// has precedence. addon-manager copies it to the Instances of add-ons: see InstanceSpec.OnFailure.
const AnnotationOnFailure = "kudo.dev/on-failure"

// AnnotationHealthyFor holds how long a cluster has to be healthy after a plan before a rollout counts it as done, such as 10m, on a ClusterManagementAddOn, or
// on an AddOnDeploymentConfig, which has precedence. addon-manager copies it to the Instances of add-ons: see InstanceSpec.HealthyFor.
const AnnotationHealthyFor = "kudo.dev/healthy-for"

// AnnotationSuspend suspends all Instances of a ManagedCluster, or of the add-on of a ClusterManagementAddOn, while it exists. Its value is the reason: any
// value suspends. See InstanceSpec.SuspendedBy.
const AnnotationSuspend = "kudo.dev/suspend"

// The ConfigMap in the namespace of addon-manager that suspends all Instances while it exists, and its key with the reason, which may be absent.
const (
	SuspendConfigMap = "tandem-suspend"
	SuspendKey       = "reason"
)

// DefaultManagerNamespace is the default namespace of addon-manager on the hub.
const DefaultManagerNamespace = "tandem-system"

// The ConfigMap in the agent's namespace on a managed cluster with the maintenance windows of the administrator of that cluster.
const (
	WindowsConfigMap = "tandem-windows"
	WindowsKey       = "windows"
)

// Annotations of a mirror on the managed cluster.
const (
	// AnnotationVersionContent is the digest of the OperatorVersion's content, on a child Instance: one that is deleted and re-created with
	// equal content still belongs to the child.
	AnnotationVersionContent = "kudo.dev/operator-version-content"
	// AnnotationHubUID is the uid of the mirrored object on the hub.
	AnnotationHubUID = "kudo.dev/hub-uid"
	// AnnotationHubGeneration is the generation on the hub that the mirror's spec was copied from. The engine ignores a mirror
	// without it.
	AnnotationHubGeneration = "kudo.dev/hub-generation"
	// AnnotationHubOperatorVersion is namespace/name of the mirrored OperatorVersion on the hub.
	AnnotationHubOperatorVersion = "kudo.dev/hub-operator-version"
	// AnnotationHubDeleted holds the time at which a deletion timestamp was observed on the hub. Nothing is deleted without it.
	AnnotationHubDeleted = "kudo.dev/hub-deleted"
	// AnnotationInventoryRestored, if "true", means that the mirror was re-created with the status on the hub, whose inventory may lack
	// objects: its removal searches all kinds of the cluster.
	AnnotationInventoryRestored = "kudo.dev/inventory-restored"
	// AnnotationParent is the name of the parent Instance, on the mirror of a child Instance.
	AnnotationParent = "kudo.dev/parent"
	// AnnotationOrphaned means that the hub no longer has an object for the mirror, or has released it: existing objects stay on the
	// cluster. Together with AnnotationHubDeleted it means that some objects were removed before.
	AnnotationOrphaned = "kudo.dev/orphaned"
	// AnnotationSignature is the agent's signature of a mirror: of its name, its spec, MirrorAnnotations and, of an Instance, its uid. The
	// agent ignores mirrors without a valid one.
	AnnotationSignature = "kudo.dev/signature"
)

// MirrorAnnotations are the annotations that only a mirror has, without its signature. They prove nothing: see AnnotationSignature.
var MirrorAnnotations = []string{
	AnnotationHubUID, AnnotationHubGeneration, AnnotationHubOperatorVersion, AnnotationHubDeleted, AnnotationInventoryRestored,
	AnnotationParent, AnnotationOrphaned,
}

// Finalizer keeps an Instance until its resources are removed: on the hub until the agent reports the removal, on the managed
// cluster until the agent has completed it. An orphaned mirror has none.
const Finalizer = "kudo.dev/removal"
