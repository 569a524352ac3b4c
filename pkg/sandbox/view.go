package sandbox

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes the state as a table with a line for each program, with its age relative to now.
func WriteTable(w io.Writer, state State, now time.Time) error {
	fmt.Fprintf(w, "sandbox: %s", state.Phase)
	if state.Phase != Stopped && state.Phase != Failed {
		fmt.Fprintf(w, " (process %d)", state.PID)
	}
	fmt.Fprintln(w)
	if state.Error != "" {
		fmt.Fprintln(w, state.Error)
	}
	if state.Phase == Stopped || state.Phase == Failed {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CLUSTER\tPROGRAM\tPID\tPORT\tUP\tRESTARTS\tLOG")
	for _, cluster := range state.Clusters {
		for _, process := range cluster.Processes {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", cluster.Name, process.Name, orDash(process.PID),
				orDash(process.Port), uptime(process, now), process.Restarts, process.Log)
		}
	}
	return table.Flush()
}

// ManagedClusters returns the phrase for n managed clusters.
func ManagedClusters(n int) string {
	if n == 1 {
		return "1 managed cluster"
	}
	return fmt.Sprintf("%d managed clusters", n)
}

func orDash(number int) string {
	if number == 0 {
		return "-"
	}
	return fmt.Sprint(number)
}

func uptime(process ProcessState, now time.Time) string {
	switch {
	case process.Held:
		return "stopped"
	case process.PID == 0:
		return "down"
	default:
		return now.Sub(process.Since).Round(time.Second).String()
	}
}

// Environment returns shell code that sets KUBECONFIG to a context for each cluster, with the hub's as the current one, and adds the
// control plane programs and the given folder to PATH.
func Environment(state State, programs string) string {
	kubeconfigs := make([]string, 0, len(state.Clusters))
	for _, cluster := range state.Clusters {
		kubeconfigs = append(kubeconfigs, cluster.Kubeconfig)
	}
	return fmt.Sprintf("export KUBECONFIG=%s\nexport PATH=%s:\"$PATH\"\n",
		quote(strings.Join(kubeconfigs, ":")), quote(programs+":"+state.Assets))
}

// quote quotes the text as a shell word.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
