// Package e2e tests the whole system, on sandboxes that it starts or on given clusters.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tandem-addons/tandem/pkg/sandbox"
)

const (
	// timeout is the timeout for a simulated cluster on a busy machine.
	timeout  = 2 * time.Minute
	interval = 100 * time.Millisecond
)

// quick is the label of specs that need no OCM and take about a minute at most: `make test-e2e-quick` and CI run them.
const quick = "quick"

// root is the folder of the Makefile, relative to this package.
const root = "../.."

// programs is the folder of the programs built by `make build`.
const programs = root + "/bin"

const (
	// givenHub and givenClusters name kubeconfigs of clusters with Tandem, to run the specs there instead of on sandboxes: the hub's, and
	// the comma-separated ones of the managed clusters cluster1, cluster2, and so on.
	givenHub      = "TANDEM_HUB"
	givenClusters = "TANDEM_CLUSTERS"
	// sandboxOnly is the label of specs that are skipped on given clusters.
	sandboxOnly = "sandbox"
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(timeout)
	suite, reporter := GinkgoConfiguration()
	nodes, err := nodesOf(t.Context(), os.Getenv(givenClusters))
	if err != nil {
		t.Fatal(err)
	}
	for label, left := range map[string]bool{
		sandboxOnly: os.Getenv(givenHub) != "", restLabel: os.Getenv(restTime) == "",
		onNodes: nodes == 0, twoNodes: nodes < 2, nextAgentLabel: os.Getenv(nextAgent) == "", ofFolder: os.Getenv(packagesFolder) == "",
	} {
		if left {
			suite.LabelFilter = strings.TrimPrefix(fmt.Sprintf("(%s) && !%s", suite.LabelFilter, label), "() && ")
		}
	}
	ctrl.SetLogger(GinkgoLogr)
	RunSpecs(t, "End to end", suite, reporter)
}

// onSandbox returns the labels of specs that require a sandbox, with the reason.
func onSandbox(reason string) Labels { return Label(sandboxOnly, reason) }

// startSandbox starts a sandbox with that many managed clusters and Tandem, as modified by change; it is stopped after the specs.
func startSandbox(ctx context.Context, clusters int, change ...func(*sandbox.Options)) *sandbox.Sandbox {
	GinkgoHelper()
	options := sandbox.Options{
		Home: filepath.Join(GinkgoT().TempDir(), "home"), Clusters: clusters, Tandem: programs, AuditPolicy: orderPolicy,
		Progress: func(line string) { GinkgoWriter.Println(line) },
	}
	for _, c := range change {
		c(&options)
	}
	box, err := sandbox.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if box.State().Phase != sandbox.Stopped {
			box.Stop()
		}
		if _, err := os.Stat(options.Home); os.IsNotExist(err) {
			return // a spec that removes the sandbox has removed its audit logs
		}
		for i := range clusters {
			expectOrder(box, fmt.Sprintf("cluster%d", i+1))
		}
	})
	return box
}

// fleet is a hub and its managed clusters, with administrator clients.
type fleet struct {
	hub      *rest.Config
	clusters map[string]*rest.Config
	// files are the kubeconfigs of the hub and of the clusters, by name.
	files map[string]string
	// box is the sandbox of the fleet; nil for given clusters.
	box *sandbox.Sandbox
}

// newFleet returns a fleet with at least that many managed clusters: the given one, else a sandbox.
func newFleet(ctx context.Context, clusters int) *fleet {
	GinkgoHelper()
	f := &fleet{clusters: map[string]*rest.Config{}, files: map[string]string{}}
	if file := os.Getenv(givenHub); file != "" {
		f.hub, f.files["hub"] = readConfig(file), fromRoot(file)
		files := strings.Split(os.Getenv(givenClusters), ",")
		Expect(len(files)).To(BeNumerically(">=", clusters), "kubeconfigs in %s", givenClusters)
		for i, file := range files {
			name := fmt.Sprintf("cluster%d", i+1)
			f.clusters[name], f.files[name] = readConfig(file), fromRoot(file)
		}
		return f
	}
	f.box = startSandbox(ctx, clusters)
	f.hub, f.files["hub"] = f.box.Hub().Config(), f.box.Hub().Kubeconfig()
	for i := range clusters {
		name := fmt.Sprintf("cluster%d", i+1)
		f.clusters[name], f.files[name] = f.box.Cluster(name).Config(), f.box.Cluster(name).Kubeconfig()
	}
	return f
}

// addon runs kubectl addon on the hub and returns its output.
func (f *fleet) addon(ctx context.Context, arguments ...string) (string, error) {
	return output(ctx, filepath.Join(programs, "kubectl-addon"), append(arguments, "--kubeconfig", f.files["hub"])...)
}

// kubectl runs kubectl on the hub or a cluster and returns its output. Only an error contains its log, which may have lines of client-go.
func (f *fleet) kubectl(ctx context.Context, on string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", f.files[on]}, arguments...)...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments, " "), err, failed.Stderr)
	}
	return string(out), err
}

// must returns the output of a command, which must succeed.
func must(output string, err error) string {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return output
}

// output runs a program and returns its output, also as the error if it fails.
func output(ctx context.Context, program string, arguments ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(arguments, " "), err, out)
	}
	return string(out), err
}

// fromRoot resolves a path that is relative to the root.
func fromRoot(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(root, file)
}

// readConfig reads a kubeconfig; its path is relative to the root.
func readConfig(file string) *rest.Config {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", fromRoot(file))
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 200, 400
	return config
}
