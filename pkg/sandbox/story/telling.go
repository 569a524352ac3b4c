package story

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// table prints every add-on on every cluster.
func table(ctx context.Context, s *stage) error {
	addOns, instances := &addonv1alpha1.ManagedClusterAddOnList{}, &kudo.InstanceList{}
	if err := s.hub.List(ctx, addOns); err != nil {
		return err
	}
	if err := s.hub.List(ctx, instances); err != nil {
		return err
	}
	plans := map[client.ObjectKey]string{}
	for i := range instances.Items {
		if last := instances.Items[i].Status.Execution; last != nil {
			state := instances.Items[i].Status.PlanStatus[last.Plan].Status
			plans[client.ObjectKeyFromObject(&instances.Items[i])] = fmt.Sprintf("%s %s", last.Plan, state)
		}
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "   CLUSTER\tADD-ON\tAVAILABLE\tDEGRADED\tPLAN")
	for i := range addOns.Items {
		a := &addOns.Items[i]
		fmt.Fprintf(w, "   %s\t%s\t%s\t%s\t%s\n", a.Namespace, a.Name, conditionText(a, addonv1alpha1.ConditionAvailable), conditionText(a, addonv1alpha1.ConditionDegraded),
			orDash(plans[client.ObjectKeyFromObject(a)]))
	}
	return w.Flush()
}

func conditionText(a *addonv1alpha1.ManagedClusterAddOn, kind string) string {
	c := meta.FindStatusCondition(a.Status.Conditions, kind)
	if c == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func indent(text string) string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return ""
	}
	return "     " + strings.ReplaceAll(text, "\n", "\n     ") + "\n"
}

// warnings prints the warnings of an API server as kubectl does.
type warnings struct{ out io.Writer }

// HandleWarningHeader prints a warning.
func (w warnings) HandleWarningHeader(_ int, _, text string) {
	fmt.Fprint(w.out, indent("Warning: "+text))
}

// progress prints the progress of plans, every line once per execution.
type progress struct {
	out      io.Writer
	reported map[types.UID]map[string]bool
}

func (p *progress) reportOnce(execution types.UID, line string) {
	if p.reported == nil {
		p.reported = map[types.UID]map[string]bool{}
	}
	if p.reported[execution] == nil {
		p.reported[execution] = map[string]bool{}
	}
	if !p.reported[execution][line] {
		fmt.Fprintln(p.out, line)
		p.reported[execution][line] = true
	}
}

// report prints the progress of all plans on the hub. It returns an error if the steps of a serial plan were observed out of order; plans
// that cannot be read are printed later.
func (p *progress) report(ctx context.Context, hub client.Client) error {
	instances := &kudo.InstanceList{}
	if hub.List(ctx, instances) != nil {
		return nil
	}
	for i := range instances.Items {
		instance := &instances.Items[i]
		if instance.Status.Execution == nil {
			continue
		}
		status := instance.Status.PlanStatus[instance.Status.Execution.Plan]
		line := fmt.Sprintf("   … %s/%s: plan %s", instance.Namespace, instance.Name, where(status))
		p.reportOnce(instance.Status.Execution.UID, line)
		if err := overtaken(status); err != nil {
			return fmt.Errorf("%s/%s: %w", instance.Namespace, instance.Name, err)
		}
	}
	return nil
}

// where returns a short description of a plan's progress.
func where(status kudo.PlanStatus) string {
	var done []string
	for _, phase := range status.Phases {
		if phase.Status == kudo.Complete {
			done = append(done, phase.Name)
		}
	}
	text := fmt.Sprintf("%s %s (%d of %d phases complete)", status.Name, status.Status, len(done), len(status.Phases))
	if status.Message != "" {
		text += ": " + status.Message
	}
	return text
}

// overtaken returns an error if a phase has started before the previous one was complete. Both packages of the story have only serial
// plans.
func overtaken(status kudo.PlanStatus) error {
	for i := 1; i < len(status.Phases); i++ {
		before, phase := status.Phases[i-1], status.Phases[i]
		if before.Status != kudo.Complete && phase.Status != kudo.Pending {
			return fmt.Errorf("phase %q of plan %q is %s while %q is %s", phase.Name, status.Name, phase.Status, before.Name, before.Status)
		}
	}
	return nil
}
