package why

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/console/notice"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/suspension"
	"github.com/tandem-addons/tandem/pkg/text"
)

// The objects that messages name. Agents and users write parts of messages: what is found in them becomes words of a command, or of a sentence.
var (
	configOf      = regexp.MustCompile(`\b(AddOnDeploymentConfig|ConfigMap) ([a-z0-9.-]+)/([a-z0-9.-]+)(?: sets variable|: | has| does not)`)
	noVersion     = regexp.MustCompile(`\bOperatorVersion "?([a-z0-9.-]+)/[a-z0-9.-]+"? does not exist`)
	noPublicKeys  = regexp.MustCompile(`\bkubectl create configmap ([a-z0-9.-]+) -n ([a-z0-9-]+) --from-file`)
	replaced      = regexp.MustCompile(`was replaced: run a plan of Instance "([a-z0-9.-]+)"`)
	noSecret      = regexp.MustCompile(`\bSecret ([a-z0-9-]+)/([a-z0-9.-]+) does not exist: create it with key "([A-Za-z0-9._-]+)"`)
	noKey         = regexp.MustCompile(`\bSecret ([a-z0-9-]+)/([a-z0-9.-]+) has no key "([A-Za-z0-9._-]+)"`)
	noClass       = regexp.MustCompile(`\bStorageClass ([a-z0-9.-]+) does not exist`)
	scaledToZero  = regexp.MustCompile(`: has 0 replicas where [0-9]+ were applied(?: \(by .*\))?$`)
	noDefault     = "the cluster has no default StorageClass"
	exceededQuota = regexp.MustCompile(`\bexceeded quota: ([a-z0-9.-]+)`)
	held          = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]+) (?:([a-z0-9-]+)/)?([a-z0-9.:-]+): is being deleted, held by finalizer ([a-zA-Z0-9./-]+(?:, [a-zA-Z0-9./-]+)*)`)
)

// suggestFix suggests commands that fix what an add-on reports, as far as its messages name it.
func (e *Explanation) suggestFix(addOn *addonv1alpha1.ManagedClusterAddOn) {
	resolved := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionResolved)
	if resolved != nil && resolved.Status == metav1.ConditionFalse {
		e.fixRequest(addOn, resolved)
	}
	available := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	if available != nil && available.Status != metav1.ConditionTrue {
		e.fixCluster(addOn, available.Message)
	}
	if waiting := meta.FindStatusCondition(addOn.Status.Conditions, kudo.ConditionWaiting); waiting != nil && waiting.Reason == kudo.ReasonSuspended {
		e.fixSuspension(addOn, waiting.Message)
	} else if waiting != nil && waiting.Reason == kudo.ReasonWindow {
		e.fixWindow(addOn, waiting.Message)
	}
}

// fixSuspension says what suspends the Instance of an add-on, and suggests the commands that resume it.
func (e *Explanation) fixSuspension(addOn *addonv1alpha1.ManagedClusterAddOn, message string) {
	origins, by := suspension.ParseMessage(message), ""
	if len(origins) > 0 {
		by = " by " + suspension.Describe(origins)
	}
	e.addSentence("Instance %s is suspended%s: no plan starts until it is resumed.", addOn.Name, by)
	for _, origin := range origins {
		e.suggest(origin.ResumeCommand())
	}
	if instance := e.view.Instances[addOn.Name]; len(origins) == 0 || instance != nil && instance.Spec.Suspend {
		e.suggest("kubectl addon resume %s --cluster %s", addOn.Name, e.view.Name)
	}
}

// fixWindow says that a plan waits for a maintenance window, and suggests the command that starts it now, unless the administrator of the cluster has closed it.
func (e *Explanation) fixWindow(addOn *addonv1alpha1.ManagedClusterAddOn, message string) {
	e.addSentence("Instance %s: %s.", addOn.Name, message)
	if plan := notice.PlanOfWindow(message); plan != "" {
		e.suggest("kubectl addon plan run %s %s --cluster %s --now", addOn.Name, plan, e.view.Name)
	}
}

// fixRequest suggests commands that fix why the hub does not pass on an add-on or its last change.
func (e *Explanation) fixRequest(addOn *addonv1alpha1.ManagedClusterAddOn, resolved *metav1.Condition) {
	message := resolved.Message
	switch resolved.Reason {
	case kudo.ReasonParametersInvalid, addonv1alpha1.ReasonConfigurationInvalid:
		e.fixParameters(addOn, message)
	case addonv1alpha1.ReasonConfigurationNotFound:
		e.suggest("kubectl edit managedclusteraddon %s --namespace %s", addOn.Name, e.view.Name)
	case kudo.ReasonClusterFactsInvalid:
		e.suggest("kubectl edit managedcluster %s", e.view.Name)
	default:
		e.fixPackage(addOn, resolved)
	}
}

// fixParameters suggests the command that changes all parameters that a message names, or the config that it names. A command changes no ConfigMap.
func (e *Explanation) fixParameters(addOn *addonv1alpha1.ManagedClusterAddOn, message string) {
	values, config := valuesFor(message), configOf.FindStringSubmatch(message)
	if config != nil && (values == "" || config[1] == "ConfigMap") {
		e.suggest("kubectl edit "+strings.ToLower(config[1])+" %s --namespace %s", config[3], config[2])
	} else if values != "" {
		e.suggestChange(addOn, values)
	}
}

// suggestChange suggests the command that changes parameters of an add-on: it edits the config if that is not the add-on's own one, which update
// refuses to change.
func (e *Explanation) suggestChange(addOn *addonv1alpha1.ManagedClusterAddOn, values string) {
	command := e.changeCommand(addOn, values)
	if !slices.Contains(e.commands, command) {
		e.commands = append(e.commands, command)
	}
	if config, ok := install.ConfigMapOf(e.view.Definitions[addOn.Name].Object, addOn); ok {
		e.addSentence("Parameters that ConfigMap %s/%s sets are changed there.", text.Word(config.Namespace), text.Word(config.Name))
		e.suggest("kubectl edit configmap %s --namespace %s", config.Name, config.Namespace)
	}
}

// changeCommand returns the command that changes parameters of an add-on.
func (e *Explanation) changeCommand(addOn *addonv1alpha1.ManagedClusterAddOn, values string) string {
	if config, ok := install.ForeignConfig(e.view.Definitions[addOn.Name].Object, addOn); ok {
		return text.Command("kubectl edit addondeploymentconfig %s --namespace %s", config.Name, config.Namespace)
	}
	return text.Command("kubectl addon update %s --cluster %s", addOn.Name, e.view.Name) + values
}

// fixPackage suggests commands that fix what is wrong with the package of an add-on, if that is the case.
func (e *Explanation) fixPackage(addOn *addonv1alpha1.ManagedClusterAddOn, resolved *metav1.Condition) {
	switch resolved.Reason {
	case kudo.ReasonOperatorVersionNotFound:
		if instance := replaced.FindStringSubmatch(resolved.Message); instance != nil {
			e.suggest("kubectl addon plan run %s deploy --cluster %s", instance[1], e.view.Name)
		} else if version := noVersion.FindStringSubmatch(resolved.Message); version != nil {
			e.suggest("kubectl addon package push DIR --namespace %s", version[1])
		}
	case kudo.ReasonOperatorVersionNotSigned:
		if keys := noPublicKeys.FindStringSubmatch(resolved.Message); keys != nil {
			e.commands = append(e.commands, text.Command("kubectl create configmap %s --namespace %s --from-file=cosign.pub --dry-run=client --output yaml", keys[1], keys[2])+
				" | kubectl apply --filename -")
		} else if instance := e.view.Instances[addOn.Name]; instance != nil && instance.Spec.OperatorVersion.Namespace != "" {
			e.suggest("kubectl addon package push DIR --namespace %s --sign-key FILE", instance.Spec.OperatorVersion.Namespace)
		}
	case kudo.ReasonChildVersionNotFound, kudo.ReasonOperatorVersionInvalid, kudo.ReasonContentIncomplete:
		if instance := e.view.Instances[addOn.Name]; instance != nil && instance.Spec.OperatorVersion.Namespace != "" {
			e.suggest("kubectl addon package push DIR --namespace %s", instance.Spec.OperatorVersion.Namespace)
		}
	}
}

// fixCluster suggests commands that fix a problem on the managed cluster.
func (e *Explanation) fixCluster(addOn *addonv1alpha1.ManagedClusterAddOn, message string) {
	if found := noSecret.FindStringSubmatch(message); found != nil {
		e.suggestThere("create secret generic %s --namespace %s --from-literal=%s", found[2], found[1], found[3]+"=VALUE")
	}
	if found := noKey.FindStringSubmatch(message); found != nil {
		e.suggestThere("patch secret %s --namespace %s --patch %s", found[2], found[1], `{"stringData":{"`+found[3]+`":"VALUE"}}`)
	}
	if found := noClass.FindStringSubmatch(message); found != nil {
		e.fixStorageClass(addOn, found[1])
	} else if strings.Contains(message, noDefault) {
		e.addSentence("Make one of the StorageClasses of cluster %s its default, or choose one with a parameter of %s.", e.view.Name, addOn.Name)
		e.suggestThere("annotate storageclass NAME storageclass.kubernetes.io/is-default-class=true")
	}
	if found := exceededQuota.FindStringSubmatch(message); found != nil {
		e.addSentence("Raise the quota, or lower what %s requests with its parameters.", addOn.Name)
		if namespace := e.namespaceOf(addOn); namespace != "" {
			e.suggestThere("edit resourcequota %s --namespace %s", found[1], namespace)
		}
	}
}

// fixStorageClass suggests another value of the parameters that name a StorageClass that does not exist.
func (e *Explanation) fixStorageClass(addOn *addonv1alpha1.ManagedClusterAddOn, class string) {
	e.addSentence("Create StorageClass %s on cluster %s, or choose another one with a parameter of %s.", class, e.view.Name, addOn.Name)
	values := ""
	if instance := e.view.Instances[addOn.Name]; instance != nil {
		values = valuesWith(instance.Spec.Parameters, class)
	}
	if values == "" {
		values = " -p NAME=STORAGECLASS"
	}
	e.suggestThere("get storageclass")
	e.suggestChange(addOn, values)
}

// fixRemoval states which finalizer holds up the removal of an add-on, and suggests the command that removes it.
func (e *Explanation) fixRemoval(message string) {
	found := held.FindStringSubmatch(message)
	if found == nil {
		return
	}
	e.addSentence("Only the controllers that set the finalizers (%s) can finish the deletion: check that these controllers are running on cluster %s, "+
		"or remove the finalizers of those that no longer exist.", found[4], e.view.Name)
	object := strings.ToLower(found[1])
	if found[2] == "" {
		e.suggestThere("edit "+object+" %s", found[3])
		return
	}
	e.suggestThere("edit "+object+" %s --namespace %s", found[3], found[2])
}

// suggestThere suggests a command for the managed cluster, with its name for the name of its context: the command fails on any other cluster.
func (e *Explanation) suggestThere(format string, names ...string) {
	e.suggest("kubectl "+format+" --context %s", append(names, e.view.Name)...)
}

// namespaceOf returns the namespace of an add-on's resources on the cluster.
func (e *Explanation) namespaceOf(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	if instance := e.view.Instances[addOn.Name]; instance != nil {
		return instance.TargetNamespace()
	}
	return addOn.Spec.InstallNamespace
}
