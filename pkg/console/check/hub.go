package check

import (
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tandem-addons/tandem/pkg/text"
)

// maxClockSkew is the difference of two clocks that is not reported.
const maxClockSkew = time.Minute

func hub(o Observations) []Finding {
	const subject = "hub"
	switch err := o.Hub.Problem; {
	case apierrors.IsForbidden(err):
		return []Finding{unreadable(subject, "its version", err)}
	case apierrors.IsUnauthorized(err):
		return failed(subject, "the API server rejects your credentials: log in again, or select another user with --user or --context", "")
	case err != nil:
		return failed(subject, "the API server does not respond: "+oneLine(err.Error()), "kubectl cluster-info")
	}
	return ok(subject, "the API server responds, version "+oneLine(o.Hub.Version))
}

// clock compares the local clock with that of the hub: times and ages that the plugin prints depend on both.
func clock(o Observations) []Finding {
	const subject = "clock"
	if !o.Clock.Known {
		return []Finding{{Level: Unknown, Subject: subject, Message: "unknown: responses of the API server have no Date header"}}
	}
	direction := "ahead of"
	if o.Clock.Ahead < 0 {
		direction = "behind"
	}
	if o.Clock.Ahead.Abs() > maxClockSkew {
		return warning(subject, fmt.Sprintf("the clock of the hub is %s %s the local one: synchronize both, for example with NTP",
			duration.HumanDuration(o.Clock.Ahead.Abs()), direction), "")
	}
	return ok(subject, "the local clock and that of the hub differ by less than "+duration.HumanDuration(maxClockSkew))
}

func definitions(o Observations) []Finding {
	const subject = "definitions"
	switch of := o.Definitions; {
	case of.Problem != nil:
		return []Finding{unreadable(subject, "the kinds that the hub serves", of.Problem)}
	case len(of.Missing) > 0:
		return failed(subject, "the hub does not serve "+list(of.Missing)+": apply manifests/crds of the version of addon-manager on the hub", "kubectl get crds")
	default:
		return ok(subject, "the hub serves "+text.Plural(of.Wanted, "kind")+" of add-ons, packages and clusters")
	}
}

// admission judges the webhooks and policies. Kinds that an API server does not have yet are a known limitation of old hubs.
func admission(o Observations) []Finding {
	const subject = "admission"
	of := o.Admission
	var findings []Finding
	if len(of.Missing) > 0 {
		findings = failed(subject, "missing on the hub: "+list(of.Missing)+"; apply manifests/admission on the hub", "")
	}
	if len(of.Unserved) > 0 {
		findings = append(findings, warning(subject, "the API server does not serve "+strings.Join(of.Unserved, " and ")+
			", so their rules are not enforced: upgrade the hub", "")...)
	}
	if of.Problem != nil {
		findings = append(findings, unreadable(subject, "webhooks and admission policies", of.Problem))
	}
	if len(findings) == 0 {
		return ok(subject, fmt.Sprintf("the hub has all %d webhook configurations, policies and bindings", of.Wanted))
	}
	return findings
}

// permissions judges what the user may do. A user that only reads is legitimate.
func permissions(o Observations) []Finding {
	const subject = "permissions"
	if err := o.Permissions.Problem; err != nil {
		return []Finding{{Level: Unknown, Subject: subject, Message: "unknown: your permissions cannot be reviewed: " + oneLine(err.Error())}}
	}
	where := ""
	if o.Permissions.Namespace != "" {
		where = " in namespace " + o.Permissions.Namespace
	}
	var denied []string
	if namespaced := o.Permissions.denied(false); len(namespaced) > 0 {
		denied = append(denied, strings.Join(namespaced, ", ")+where)
	}
	if clusterScoped := o.Permissions.denied(true); len(clusterScoped) > 0 {
		denied = append(denied, strings.Join(clusterScoped, ", ")+" at the cluster scope")
	}
	if len(denied) == 0 {
		return ok(subject, "your user has all permissions that were checked"+where)
	}
	return warning(subject, "your user may not "+strings.Join(denied, "; nor ")+": ask an administrator of the hub if you need these commands", "")
}

// denied returns the permissions that the user lacks, of cluster-scoped or of namespaced resources.
func (p Permissions) denied(clusterScoped bool) (denied []string) {
	for _, one := range p.Reviewed {
		if !one.Allowed && one.ClusterScoped == clusterScoped {
			denied = append(denied, fmt.Sprintf("%s %s (%s)", one.Verb, one.Resource, one.Commands))
		}
	}
	return denied
}
