package details

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/progress"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/render"
	"github.com/tandem-addons/tandem/pkg/text"
)

// LogsOptions holds the arguments and flags of the command.
type LogsOptions struct {
	*hubclient.Factory
	cluster, name string
	managed       hubclient.ManagedFlags
	withChildren  bool
	choice        logChoice
	// log has the flags that the API server evaluates.
	log              corev1.PodLogOptions
	tail, limitBytes int64
	since            time.Duration
	sinceTime        string
	maxFollowed      int
	prefix           bool
}

// Defaults of flags.
const (
	// tailLines is the number of lines of each log, as of kubectl logs for several pods.
	tailLines = 10
	// logBytes is the limit of each log, 16 MiB.
	logBytes = 16 << 20
	// maxFollowed is the number of logs that are followed at a time: each is a connection.
	maxFollowed = 20
)

// NewCmdLogs returns the command. If runF is set, it replaces runLogs.
func NewCmdLogs(f *hubclient.Factory, runF func(context.Context, *LogsOptions) error) *cobra.Command {
	o := &LogsOptions{Factory: f}
	if runF == nil {
		runF = runLogs
	}
	cmd := &cobra.Command{
		Use:   "logs NAME --cluster CLUSTER --cluster-context CONTEXT",
		Short: "Print the logs of the pods of an Instance or add-on",
		Long: "Print the logs of the pods of an Instance on its managed cluster: those of the objects that its plans have applied. The Instance of an\n" +
			"add-on has the name of the add-on. With --tree, also print those of its child Instances. Pods that another operator has created for a\n" +
			"custom resource of the Instance are included only if the custom resource is their controller, or if they have the label\n" +
			kudo.LabelInstance + ".\n\n" +
			"The hub has no connection to managed clusters: select the cluster with --cluster-context or --cluster-kubeconfig, as a user who may\n" +
			"list pods and get pods/log.\n\n" +
			"Of each pod, the default container is shown, which is the first one unless the pod names another. By default, the last 10 lines of\n" +
			"each log are printed, or all lines since --since or --since-time. Each line begins with [POD/CONTAINER], or\n" +
			"[NAMESPACE/POD/CONTAINER] in a namespace other than the Instance's. Control characters are escaped. With --follow, pods that\n" +
			"start later are not included.",
		Example: "  kubectl addon logs kafka --cluster cluster1 --cluster-context cluster1\n" +
			"  kubectl addon logs kafka --cluster cluster1 --cluster-context cluster1 -f --since 5m --all-containers\n" +
			"  kubectl addon logs kafka --cluster cluster1 --cluster-kubeconfig cluster1.kubeconfig -c broker --previous --tail=-1",
		Args: terminal.Exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			o.name = args[0]
			return runF(cmd.Context(), o)
		},
	}
	hubclient.ClusterFlag(cmd, &o.cluster, "runs the Instance or add-on")
	o.managed.AddFlags(cmd)
	o.addFlags(cmd)
	return cmd
}

func (o *LogsOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.withChildren, "tree", false, "Also print the logs of the children of the Instance, and of their children.")
	flags.StringVarP(&o.choice.container, "container", "c", "", "Container whose logs are printed. Pods without it are omitted.")
	flags.BoolVar(&o.choice.all, "all-containers", false, "All containers of each pod, with init and ephemeral containers.")
	flags.BoolVarP(&o.log.Follow, "follow", "f", false, "Continue to print new lines until all containers have ended, or the command is interrupted.")
	flags.BoolVarP(&o.choice.previous, "previous", "p", false, "Logs of the previous run of each container. Containers without one are omitted.")
	flags.BoolVar(&o.log.Timestamps, "timestamps", false, "Print the time of each line.")
	flags.BoolVar(&o.prefix, "prefix", true, "Begin each line with the names of the pod and the container.")
	flags.Int64Var(&o.tail, "tail", tailLines, "Number of lines at the end of each log; -1 means all, which is the default with --since and --since-time.")
	flags.DurationVar(&o.since, "since", 0, "Only lines that are newer than this duration, such as 5s, 2m or 3h.")
	flags.StringVar(&o.sinceTime, "since-time", "", "Only lines after this time (RFC 3339), such as 2026-01-02T03:04:05Z.")
	flags.Int64Var(&o.limitBytes, "limit-bytes", logBytes, "Number of bytes after which each log is cut; 0 means no limit, which is the default with --follow.")
	flags.IntVar(&o.maxFollowed, "max-log-requests", maxFollowed, "Number of logs that --follow may follow at a time.")
}

// check checks the flags, and converts them into the options of the API.
func (o *LogsOptions) check(cmd *cobra.Command) error {
	switch {
	case !o.managed.IsSet():
		return terminal.Usagef(cmd, "the hub has no connection to managed clusters: select cluster %s with --cluster-context or --cluster-kubeconfig%s",
			text.Word(o.cluster), o.contextsText())
	case o.choice.all && o.choice.container != "":
		return terminal.Usagef(cmd, "--container and --all-containers are mutually exclusive")
	case o.since != 0 && o.sinceTime != "":
		return terminal.Usagef(cmd, "--since and --since-time are mutually exclusive")
	}
	if err := o.checkNumbers(cmd); err != nil {
		return err
	}
	if o.log.Follow && !cmd.Flags().Changed("limit-bytes") {
		o.limitBytes = 0
	}
	return o.checkTimes(cmd)
}

// checkNumbers checks the limits.
func (o *LogsOptions) checkNumbers(cmd *cobra.Command) error {
	switch {
	case o.tail < -1:
		return terminal.Usagef(cmd, "invalid argument \"%d\" for \"--tail\" flag: must be -1 or greater", o.tail)
	case o.since < 0 || o.since == 0 && cmd.Flags().Changed("since"):
		return terminal.Usagef(cmd, "invalid argument %q for \"--since\" flag: must be greater than 0", o.since)
	case o.limitBytes < 0:
		return terminal.Usagef(cmd, "invalid argument \"%d\" for \"--limit-bytes\" flag: must be 0 or greater", o.limitBytes)
	case o.maxFollowed < 1:
		return terminal.Usagef(cmd, "invalid argument \"%d\" for \"--max-log-requests\" flag: must be greater than 0", o.maxFollowed)
	}
	return nil
}

// checkTimes sets which lines are printed.
func (o *LogsOptions) checkTimes(cmd *cobra.Command) error {
	o.log.Previous = o.choice.previous
	switch {
	case o.since > 0:
		o.log.SinceSeconds = ptr.To(max(1, int64(o.since.Round(time.Second)/time.Second)))
	case o.sinceTime != "":
		at, err := time.Parse(time.RFC3339, o.sinceTime)
		if err != nil {
			return terminal.Usagef(cmd, "invalid argument %q for \"--since-time\" flag: must be a time such as 2026-01-02T03:04:05Z", o.sinceTime)
		}
		o.log.SinceTime = &metav1.Time{Time: at}
	}
	isSince := o.log.SinceSeconds != nil || o.log.SinceTime != nil
	if o.tail >= 0 && (!isSince || cmd.Flags().Changed("tail")) {
		o.log.TailLines = &o.tail
	}
	return nil
}

// contextsText returns the contexts of the kubeconfig, for a message.
func (o *LogsOptions) contextsText() string {
	names := hubclient.Contexts(o.Flags.ToRawKubeConfigLoader())
	if len(names) == 0 {
		return ""
	}
	listed := "; contexts of the kubeconfig: " + text.ListOrNone(names)
	if meant := text.ClosestMatch(o.cluster, names); meant != "" {
		return fmt.Sprintf(", such as --cluster-context %s%s", text.Word(meant), listed)
	}
	return listed
}

func runLogs(ctx context.Context, o *LogsOptions) error {
	h, err := o.Hub()
	if err != nil {
		return err
	}
	instances, err := o.instances(ctx, h)
	if err != nil {
		return hubclient.Advise(err, o.cluster)
	}
	config, err := o.managed.Config(o.Flags)
	if err != nil {
		return err
	}
	cluster, err := connectPods(config, o.cluster, func(warning string) error { return terminal.Warn(o.ErrOut, warning) })
	if err != nil {
		return err
	}
	logs, err := o.logsOn(ctx, cluster, instances)
	if err != nil {
		return err
	}
	p := &logPrinter{cluster: cluster, options: o.log, maxBytes: o.limitBytes, prefix: o.prefix, own: instances[0].TargetNamespace(), out: o.Out}
	if o.log.Follow {
		return p.follow(ctx, logs)
	}
	return p.print(ctx, logs)
}

// logsOn returns the chosen logs of Instances, the first of which is the parent of the others.
func (o *LogsOptions) logsOn(ctx context.Context, cluster *podCluster, instances []*kudo.Instance) ([]podLog, error) {
	if err := cluster.checkMirror(ctx, instances[0]); err != nil {
		return nil, err
	}
	var pods []corev1.Pod
	for _, instance := range instances {
		found, err := cluster.podsOf(ctx, instance)
		if err != nil {
			return nil, err
		}
		pods = append(pods, found...)
	}
	if len(pods) == 0 {
		return nil, o.noPodsError(instances[0])
	}
	logs, err := o.choice.of(pods)
	if err != nil {
		return nil, fmt.Errorf("logs of %s on cluster %s: %w", text.Quote(o.name), text.Quote(o.cluster), err)
	}
	if o.log.Follow && len(logs) > o.maxFollowed {
		return nil, fmt.Errorf("there are %d logs to follow, more than %d: choose a container with --container, or raise --max-log-requests", len(logs), o.maxFollowed)
	}
	return logs, nil
}

// instances returns the Instance, followed by its children if they are requested.
func (o *LogsOptions) instances(ctx context.Context, h hubclient.Hub) ([]*kudo.Instance, error) {
	instance, err := read.ReadInstance(ctx, h, client.ObjectKey{Namespace: o.cluster, Name: o.name})
	if err != nil || !o.withChildren {
		return []*kudo.Instance{instance}, err
	}
	view := read.View(ctx, h, instance)
	if err := read.Children(ctx, h, &view); err != nil {
		return nil, err
	}
	return instancesOf(view), nil
}

// instancesOf returns the Instances of a view, parents before their children.
func instancesOf(view progress.View) []*kudo.Instance {
	all := []*kudo.Instance{view.Instance}
	for _, child := range view.Children {
		all = append(all, instancesOf(child)...)
	}
	return all
}

// noPodsError returns the error that an Instance has no pods.
func (o *LogsOptions) noPodsError(instance *kudo.Instance) error {
	hint := ""
	if len(instance.Status.Children) > 0 && !o.withChildren {
		hint = "; its children may have some: add --tree"
	}
	return fmt.Errorf("no pods of Instance %s, or with label %s=%s, in namespace %s of managed cluster %s%s: see '%s'", text.Quote(o.name),
		kudo.LabelInstance, render.InstanceName(o.name), text.Quote(instance.TargetNamespace()), text.Quote(o.cluster), hint,
		text.Command("kubectl addon plan status %s --cluster %s", o.name, o.cluster))
}
