package v1beta1

// DefaultPackagesNamespace is where OperatorVersions for all clusters stand on the hub unless addon-manager is told otherwise
// (manifests/hub lets agents read them there).
const DefaultPackagesNamespace = "addon-packages"

// Labels that Tandem puts on everything an Instance applies (KUDO's names): objects, pod templates, volume claim templates.
const (
	LabelHeritage = "heritage"
	LabelOperator = "kudo.dev/operator"
	// LabelInstance holds the Instance's name with dashes for dots, as .Name in templates: packages select by it.
	LabelInstance = "kudo.dev/instance"

	// Heritage is the value of LabelHeritage.
	Heritage = "kudo"
)

// Annotations that Tandem puts on the top level of everything an Instance applies (KUDO's names).
const (
	AnnotationPlan            = "kudo.dev/plan"
	AnnotationPhase           = "kudo.dev/phase"
	AnnotationStep            = "kudo.dev/step"
	AnnotationOperatorVersion = "kudo.dev/operator-version"

	// AnnotationExecution holds the uid of the execution that last applied the object. On pod templates it changes only when
	// pods must restart (KEP-27).
	AnnotationExecution = "kudo.dev/last-plan-execution-uid"

	// AnnotationInstanceNamespace tells Instances of one name apart on objects outside of the Instance's namespace.
	AnnotationInstanceNamespace = "kudo.dev/instance-namespace"

	// AnnotationPipe marks the pods of Pipe tasks (KUDO's name), which go with the execution that made them.
	AnnotationPipe = "kudo.dev/pipepod"
)

// LabelRoot is on every Instance on the hub that is a child, and holds the name of the Instance at the root of its tree.
const LabelRoot = "kudo.dev/root"

// Annotations of an Instance on the hub.
const (
	// AnnotationForceRelease lets go, where it is "true", of an Instance that is being deleted: the hub waits for no agent, and the
	// agent leaves on the cluster what is there.
	AnnotationForceRelease = "kudo.dev/force-release"
)

// Annotations of a mirror on the managed cluster.
const (
	// AnnotationHubUID is the uid of the mirrored object on the hub.
	AnnotationHubUID = "kudo.dev/hub-uid"
	// AnnotationHubGeneration is the generation on the hub that the mirror's spec was copied from. The engine leaves a mirror
	// alone until it is there.
	AnnotationHubGeneration = "kudo.dev/hub-generation"
	// AnnotationHubOperatorVersion is namespace/name of the mirrored OperatorVersion on the hub.
	AnnotationHubOperatorVersion = "kudo.dev/hub-operator-version"
	// AnnotationHubDeleted holds when a deletion timestamp was seen on the hub: only then is anything destroyed.
	AnnotationHubDeleted = "kudo.dev/hub-deleted"
	// AnnotationOrphaned says that the hub has no object for the mirror any more, or has let go of it: what is there stays. Beside
	// AnnotationHubDeleted it says that something was removed before.
	AnnotationOrphaned = "kudo.dev/orphaned"
)

// Finalizer holds an Instance until its resources are gone: on the hub until the agent reports it removed, on the managed
// cluster until the agent has removed them.
const Finalizer = "kudo.dev/removal"
