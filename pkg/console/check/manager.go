package check

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/text"
)

const manager = "addon-manager"

// leader judges the Lease that the leading addon-manager renews.
func leader(o Observations) []Finding {
	pods := text.Command("kubectl -n %s get pods -l app.kubernetes.io/name=addon-manager", o.Namespace)
	l := o.Leader
	silent, isSilent := l.silence(o.Now)
	switch {
	case l.Problem != nil:
		return []Finding{unreadable(manager, "its Lease in namespace "+o.Namespace, l.Problem)}
	case !l.Exists && o.Manager.Problem == nil && !o.Manager.Exists:
		return failed(manager, fmt.Sprintf("not installed in namespace %s: it has no Lease and no ConfigMap %s there; install it, or name its namespace with -n",
			o.Namespace, addonv1alpha1.ManagerConfigMap), pods)
	case !l.Exists:
		return warning(manager, fmt.Sprintf("unknown whether it runs: namespace %s has no Lease %s, because it runs without --leader-elect, keeps its Lease in another namespace, or has never run",
			o.Namespace, addonv1alpha1.LeaderLease), pods)
	case isSilent:
		return silentLeader(o, silent, pods)
	case silent < -maxClockSkew:
		return warning(manager, fmt.Sprintf("its Lease was renewed %s in the future: synchronize the clocks of the hub's nodes", age(-silent)), "")
	default:
		return ok(manager, fmt.Sprintf("leader %s renews its Lease", text.Quote(l.Holder)))
	}
}

// silentLeader judges a Lease that has not been renewed for that time.
func silentLeader(o Observations, silent time.Duration, pods string) []Finding {
	switch l := o.Leader; {
	case l.Renewed.IsZero():
		return failed(manager, "does not run: it never renewed its Lease", pods)
	case l.Holder == "":
		return warning(manager, fmt.Sprintf("the last one with --leader-elect stopped %s ago: none runs, or one runs without --leader-elect", age(silent)), pods)
	default:
		return failed(manager, fmt.Sprintf("does not run: its Lease was last renewed %s ago, by %s; inspect its pods, then restart them with '%s'", age(silent),
			text.Quote(l.Holder), text.Command("kubectl -n %s rollout restart deployment/addon-manager", o.Namespace)), pods)
	}
}

// Hint returns one sentence about an addon-manager that does not run, or an empty string if it runs or if that is unknown.
func Hint(l Leader, now time.Time) string {
	silent, isSilent := l.silence(now)
	if l.Problem != nil || !l.Exists || !isSilent || l.Renewed.IsZero() || l.Holder == "" { // without a holder, one may run without --leader-elect
		return ""
	}
	return fmt.Sprintf("addon-manager has not renewed its Lease for %s: nothing on the hub changes until it runs; see 'kubectl addon check'", age(silent))
}

// silence returns the time since the last renewal, and whether it is too long. Replicas take over within the duration of the Lease; clocks
// may differ.
func (l Leader) silence(now time.Time) (time.Duration, bool) {
	silent := now.Sub(l.Renewed)
	return silent, silent > l.Duration+maxClockSkew
}

// version judges the versions of addon-manager and of the plugin.
func version(o Observations) []Finding {
	const subject = "version"
	switch v := o.Manager; {
	case v.Problem != nil:
		return []Finding{unreadable(subject, "the version of addon-manager", v.Problem)}
	case v.Version == "":
		return []Finding{{Level: Unknown, Subject: subject, Message: "unknown: addon-manager has not reported its version"}}
	case addonv1alpha1.VersionLabel(o.Client) != v.Version:
		return warning(subject, fmt.Sprintf("the plugin is %s and addon-manager is %s: upgrade the older one", o.Client, v.Version), "kubectl addon version")
	default:
		return ok(subject, "the plugin and addon-manager are "+v.Version)
	}
}

func age(d time.Duration) string { return duration.HumanDuration(d) }
