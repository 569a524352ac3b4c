package check

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tandem-addons/tandem/pkg/text"
)

// agentSums has the clusters by problem.
type agentSums struct {
	silent, detached, unseen, skewed []string
	// maxSilence is the longest time since the last contact of a silent agent.
	maxSilence time.Duration
}

func sum(o Observations) agentSums {
	var s agentSums
	for _, agent := range o.Agents.Agents {
		silent := o.Now.Sub(agent.Renewed)
		switch {
		case agent.Klusterlet != "" && agent.Klusterlet != metav1.ConditionTrue:
			s.detached = append(s.detached, agent.Cluster)
		case !agent.Seen:
			s.unseen = append(s.unseen, agent.Cluster)
		case !agent.Renewed.IsZero() && silent > agent.Timeout+maxClockSkew:
			s.silent, s.maxSilence = append(s.silent, agent.Cluster), max(s.maxSilence, silent)
		}
		if agent.Version != "" && o.Manager.Version != "" && agent.Version != o.Manager.Version {
			s.skewed = append(s.skewed, agent.Cluster)
		}
	}
	return s
}

// agents judges the agents by problem, so that the number of findings does not depend on the number of clusters.
func agents(o Observations) []Finding {
	const subject = "agents"
	if err := o.Agents.Problem; err != nil {
		return []Finding{unreadable(subject, "the Leases of agents; select clusters with --cluster", err)}
	}
	s := sum(o)
	var findings []Finding
	if len(s.silent) > 0 {
		findings = failed(subject, fmt.Sprintf("addon-agent of %s has not renewed its Lease for up to %s: check whether it runs on the managed cluster and reaches the hub",
			clusters(s.silent), duration.HumanDuration(s.maxSilence)), text.Command("kubectl -n tandem-system logs deployment/addon-agent --context %s", s.silent[0]))
	}
	if len(s.detached) > 0 {
		findings = append(findings, failed(subject, "the klusterlet of "+clusters(s.detached)+
			" is not in contact with the hub: check whether it runs there and reaches the hub", text.Command("kubectl describe managedcluster %s", s.detached[0]))...)
	}
	if len(s.unseen) > 0 {
		findings = append(findings, warning(subject, "no addon-agent of "+clusters(s.unseen)+
			" has ever contacted the hub: install it there", "kubectl addon join --help")...)
	}
	if len(s.skewed) > 0 {
		findings = append(findings, warning(subject, fmt.Sprintf("addon-manager is %s, and addon-agent of %s has another version: upgrade addon-manager first, then the agents",
			o.Manager.Version, clusters(s.skewed)), "kubectl addon version -o wide")...)
	}
	if len(findings) == 0 {
		return ok(subject, text.Plural(len(o.Agents.Agents), "managed cluster")+", all agents in contact")
	}
	return findings
}

// clusters returns the number of clusters and the first names.
func clusters(names []string) string {
	if len(names) == 1 {
		return "cluster " + names[0]
	}
	return fmt.Sprintf("%d clusters (%s)", len(names), list(names))
}
