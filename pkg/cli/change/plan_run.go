package change

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// PlanRunOptions holds the arguments and flags of the command.
type PlanRunOptions struct {
	*hubclient.Factory
	cluster, name, plan string
	parameters          map[string]string
	terminal.WaitFlags
}

// NewCmdPlanRun returns the command. If runF is set, it replaces runPlanRun.
func NewCmdPlanRun(f *hubclient.Factory, runF func(context.Context, *PlanRunOptions) error) *cobra.Command {
	o := &PlanRunOptions{Factory: f}
	if runF == nil {
		runF = runPlanRun
	}
	var parameters []string
	cmd := &cobra.Command{
		Use:     "run NAME PLAN --cluster CLUSTER",
		Aliases: []string{"trigger"},
		Short:   "Run a plan of an Instance or add-on",
		Long: "Request a plan of an Instance or add-on with its current version and parameters. While another plan runs, the request is\n" +
			"queued.\n\n" +
			"With -p the command also changes parameters of an Instance that belongs neither to an add-on nor to another Instance. If\n" +
			"the change alone triggers the requested plan, the plan does not run twice. If it triggers another plan, that plan runs\n" +
			"first.",
		Example: "  kubectl addon plan run kafka backup --cluster cluster1\n" +
			"  kubectl addon plan run kafka deploy --cluster cluster1 -p BROKERS=5 --wait --timeout 10m",
		Args: terminal.Exactly("NAME", "PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.parameters, err = parseForAll(cmd, parameters); err != nil {
				return err
			}
			o.name, o.plan = args[0], args[1]
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "runs the Instance or add-on")
	parametersFlag(cmd, &parameters)
	o.AddWait(cmd, false, "Wait until the plan has ended.")
	return cmd
}

func runPlanRun(ctx context.Context, o *PlanRunOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: o.cluster, Name: o.name}
	return hubclient.Advise(planRun(ctx, h, key, o), o.cluster)
}

// parametersFlag adds the flag -p, which parseParameters parses.
func parametersFlag(cmd *cobra.Command, parameters *[]string) {
	cmd.Flags().StringArrayVarP(parameters, "parameter", "p", nil,
		"Parameter to set, as NAME=VALUE, or as NAME=secret:SECRET/KEY if it is sensitive. Can be repeated.")
}

func parseParameters(cmd *cobra.Command, given []string) (map[string]string, error) {
	parameters := make(map[string]string, len(given))
	for _, text := range given {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, terminal.Usagef(cmd, "invalid argument %q for \"--parameter\" flag: must be NAME=VALUE", text)
		}
		if !utf8.ValidString(text) {
			return nil, terminal.Usagef(cmd, "invalid argument for \"--parameter\" flag: %q is not UTF-8 text: encode the value, for example with base64", name)
		}
		if _, twice := parameters[name]; twice {
			return nil, terminal.Usagef(cmd, "--parameter %s is given twice", name)
		}
		parameters[name] = value
	}
	return parameters, nil
}

// parseForAll is parseParameters for commands that set parameters on all their clusters alike.
func parseForAll(cmd *cobra.Command, given []string) (map[string]string, error) {
	parameters, err := parseParameters(cmd, given)
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		if strings.Contains(name, "/") {
			return nil, terminal.Usagef(cmd, "invalid argument %q for \"--parameter\" flag: %s takes NAME=VALUE; "+
				"only install, update and upgrade take CLUSTER/NAME=VALUE", name, cmd.Name())
		}
	}
	return parameters, err
}

// planRun requests the plan and, if requested, waits for its end.
func planRun(ctx context.Context, h hubclient.Hub, key client.ObjectKey, o *PlanRunOptions) error {
	instance, err := read.ReadInstance(ctx, h, key)
	if err != nil {
		return err
	}
	view := read.View(ctx, h, instance)
	wanted, warnings, err := change.Run(view, o.plan, types.UID(uuid.NewString()), o.parameters)
	if err != nil {
		return err
	}
	if err := terminal.Warn(o.ErrOut, warnings...); err != nil {
		return err
	}
	if err := change.Request(ctx, requester(h), instance, wanted); err != nil {
		return err
	}
	if err := printers.WriteEscaped(o.Out, askedText(view, o.plan)); err != nil || !o.Wait {
		return err
	}
	a := awaitedPlan{ObjectKey: key, generation: instance.Generation, plan: o.plan, request: wanted.PlanExecution.UID}
	return awaitPlan(ctx, h, o.IOStreams, a, o.Timeout)
}

// askedText describes the result of a request for a plan.
func askedText(v progress.View, plan string) string {
	text := fmt.Sprintf("%s plan %s requested\n", text.ObjectName(kudo.GroupVersion.Group, "Instance", v.Instance.Name), plan)
	if preceding := change.PrecedingText(v, plan); preceding != "" {
		text += preceding + "\n"
	}
	return text
}

// requester returns a client that writes as the plugin.
func requester(c client.Client) client.Client {
	return client.WithFieldOwner(c, hubclient.FieldManager)
}
