// Package suspension describes the objects on the hub that suspend many Instances at a time: all of them, those of a managed cluster, and those of an add-on
// (DESIGN §11.2). It writes and reads their description in Instances, and touches no cluster.
package suspension

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Kind is the kind of an object that suspends Instances.
type Kind string

// The kinds. The annotation of the last two, and the ConfigMap itself, suspend by their existence, whatever their value.
const (
	// KindEverything is the ConfigMap in the namespace of addon-manager that suspends all Instances.
	KindEverything Kind = "ConfigMap"
	KindCluster    Kind = "ManagedCluster"
	KindAddOn      Kind = "ClusterManagementAddOn"
)

// kinds are the kinds, the widest one first.
var kinds = []Kind{KindEverything, KindCluster, KindAddOn}

// Origin is an object that suspends Instances.
type Origin struct {
	Kind Kind `json:"kind"`
	// Name is the name of the object; NAMESPACE/NAME of the ConfigMap.
	Name string `json:"name"`
	// Reason is the text of a user; it may be empty.
	Reason string `json:"reason,omitempty"`
}

// maxReason is the number of characters of a reason that are passed on. Anyone who may write one of the objects chooses it.
const maxReason = 200

// Bound returns a reason on one line, and its first characters if it has too many.
func Bound(reason string) string {
	return text.Head(text.OneLine(text.Prefix(reason, 16*maxReason)), maxReason)
}

// ReasonOf returns the reason in the annotation of a ManagedCluster or a ClusterManagementAddOn, and whether it has the annotation. Any value counts.
func ReasonOf(o metav1.Object) (reason string, suspended bool) {
	reason, suspended = o.GetAnnotations()[kudo.AnnotationSuspend]
	return Bound(reason), suspended
}

// Denial returns why the reason of an origin does not mean what its writer probably meant; empty if it may.
func (o Origin) Denial() string {
	if !slices.Contains([]string{"false", "no", "off", "0"}, strings.ToLower(o.Reason)) {
		return ""
	}
	if o.Kind == KindEverything {
		return o.object() + " has " + kudo.SuspendKey + " " + strconv.Quote(o.Reason) + ", and suspends: delete the ConfigMap to resume (" + o.ResumeCommand() + ")"
	}
	return "annotation " + kudo.AnnotationSuspend + " of " + o.object() + " is " + strconv.Quote(o.Reason) +
		", and suspends regardless of its value: remove the annotation to resume (" + o.ResumeCommand() + ")"
}

// ResumeCommand returns the command that ends the suspension.
func (o Origin) ResumeCommand() string {
	switch o.Kind {
	case KindEverything:
		namespace, _, _ := strings.Cut(o.Name, "/")
		if namespace != kudo.DefaultManagerNamespace {
			return text.Command("kubectl addon resume --all --everywhere --namespace %s", namespace)
		}
		return "kubectl addon resume --all --everywhere"
	case KindCluster:
		return text.Command("kubectl addon resume --all --cluster %s", o.Name)
	default:
		return text.Command("kubectl addon resume %s --everywhere", o.Name)
	}
}

func (o Origin) object() string { return string(o.Kind) + " " + o.Name }

// String returns the origin as messages name it.
func (o Origin) String() string {
	if o.Reason == "" {
		return o.object()
	}
	return o.object() + " (" + strconv.Quote(o.Reason) + ")"
}

// Sort returns the origins without duplicates, the widest one first.
func Sort(origins []Origin) []Origin {
	sorted := slices.SortedStableFunc(slices.Values(origins), func(a, b Origin) int {
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)), strings.Compare(a.Name, b.Name), strings.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(sorted)
}

// separator is between the origins in a description.
const separator = ", "

// Describe returns the description of the origins for spec.suspendedBy of an Instance; empty if there are none.
func Describe(origins []Origin) string {
	described := make([]string, 0, len(origins))
	for _, o := range Sort(origins) {
		described = append(described, o.String())
	}
	return strings.Join(described, separator)
}

// named matches the kind and the name of an origin at the start of a description.
var named = regexp.MustCompile(`^(ConfigMap|ManagedCluster|ClusterManagementAddOn) ([a-z0-9]([-a-z0-9./]*[a-z0-9])?)`)

// Parse returns the origins in a description. Other writers of Instances may have written anything there: the rest of a text that Describe does not write
// is omitted. Quotes keep the reason of one origin from naming another one.
func Parse(description string) []Origin {
	var origins []Origin
	for {
		found := named.FindStringSubmatch(description)
		if found == nil {
			return origins
		}
		o := Origin{Kind: Kind(found[1]), Name: found[2]}
		description = description[len(found[0]):]
		if quoted, given := strings.CutPrefix(description, " ("); given {
			literal, err := strconv.QuotedPrefix(quoted)
			if err != nil || !strings.HasPrefix(quoted[len(literal):], ")") {
				return append(origins, o)
			}
			reason, _ := strconv.Unquote(literal) // a quoted prefix is always a literal
			o.Reason, description = Bound(reason), quoted[len(literal)+1:]
		}
		origins = append(origins, o)
		rest, more := strings.CutPrefix(description, separator)
		if !more {
			return origins
		}
		description = rest
	}
}

// opening begins the part of a message that names what suspends an Instance.
const opening = "the Instance is suspended by "

// Message says that an Instance is suspended, and by what if that is not only its own spec.
func Message(by string) string {
	if by == "" {
		return "the Instance is suspended"
	}
	return opening + by
}

// ParseMessage returns the origins that a message with Message names; none if its own spec suspends the Instance.
func ParseMessage(message string) []Origin {
	_, named, found := strings.Cut(message, opening)
	if !found {
		return nil
	}
	return Parse(named)
}

// Kinds returns the kinds of the origins, each once, the widest one first.
func Kinds(origins []Origin) []string {
	var found []string
	for _, o := range Sort(origins) {
		if !slices.Contains(found, string(o.Kind)) {
			found = append(found, string(o.Kind))
		}
	}
	return found
}

// By returns what suspends an Instance, as messages name it: its origins, and its own spec.suspend. It is empty for an Instance that only the latter
// suspends, or nothing.
func By(spec kudo.InstanceSpec) string {
	if spec.SuspendedBy != "" && spec.Suspend {
		return spec.SuspendedBy + " and spec.suspend"
	}
	return spec.SuspendedBy
}
