// Package e2e tests the whole system, on sandboxes that it starts or on clusters that it is given.
package e2e

import (
	"context"
	"fmt"
	"os"
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
	// patience is how long a simulated cluster may take for anything.
	patience = 30 * time.Second
	interval = 100 * time.Millisecond
)

// quick is the label of specs that need no OCM and take about a minute at most: `make test-e2e-quick` and CI run them.
const quick = "quick"

// root is the folder of the Makefile, as seen from this package.
const root = "../.."

// programs is where `make build` puts Tandem's programs.
const programs = root + "/bin"

const (
	// givenHub and givenClusters name kubeconfigs of clusters with Tandem on them, to test there and not on sandboxes: that of the hub,
	// and those of the managed clusters cluster1, cluster2, and so on, separated by commas.
	givenHub      = "TANDEM_HUB"
	givenClusters = "TANDEM_CLUSTERS"
	// sandboxOnly is the label of specs that are left out there.
	sandboxOnly = "sandbox"
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	for label, left := range map[string]bool{sandboxOnly: os.Getenv(givenHub) != "", restLabel: os.Getenv(restTime) == ""} {
		if left {
			suite.LabelFilter = strings.TrimPrefix(fmt.Sprintf("(%s) && !%s", suite.LabelFilter, label), "() && ")
		}
	}
	ctrl.SetLogger(GinkgoLogr)
	RunSpecs(t, "End to end", suite, reporter)
}

// onSandbox are the labels of specs that need a sandbox, with the reason why.
func onSandbox(reason string) Labels { return Label(sandboxOnly, reason) }

// startSandbox starts one with so many managed clusters, on which Tandem runs, unless that is changed; it ends with the specs.
func startSandbox(ctx context.Context, clusters int, change ...func(*sandbox.Options)) *sandbox.Sandbox {
	GinkgoHelper()
	options := sandbox.Options{
		Home: filepath.Join(GinkgoT().TempDir(), "home"), Clusters: clusters, Tandem: programs,
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
	})
	return box
}

// fleet is a hub and its managed clusters, as an administrator reaches them.
type fleet struct {
	hub      *rest.Config
	clusters map[string]*rest.Config
	// box is the sandbox that they belong to; nil where they are given.
	box *sandbox.Sandbox
}

// newFleet is a fleet with at least so many managed clusters: the given one, else a sandbox.
func newFleet(ctx context.Context, clusters int) *fleet {
	GinkgoHelper()
	f := &fleet{clusters: map[string]*rest.Config{}}
	if file := os.Getenv(givenHub); file != "" {
		f.hub = given(file)
		files := strings.Split(os.Getenv(givenClusters), ",")
		Expect(len(files)).To(BeNumerically(">=", clusters), "kubeconfigs in %s", givenClusters)
		for i, file := range files {
			f.clusters[fmt.Sprintf("cluster%d", i+1)] = given(file)
		}
		return f
	}
	f.box = startSandbox(ctx, clusters)
	f.hub = f.box.Hub().Config()
	for i := range clusters {
		name := fmt.Sprintf("cluster%d", i+1)
		f.clusters[name] = f.box.Cluster(name).Config()
	}
	return f
}

// given reads a kubeconfig; its path is seen from the root.
func given(file string) *rest.Config {
	GinkgoHelper()
	if !filepath.IsAbs(file) {
		file = filepath.Join(root, file)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 200, 400
	return config
}
