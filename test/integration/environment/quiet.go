package environment

import (
	"log"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/klog/v2"
)

// quiet redirects the logs of libraries to the spec's report, which is shown if the spec fails.
var quiet = sync.OnceFunc(func() {
	log.SetOutput(ginkgo.GinkgoWriter)
	klog.SetLogger(ginkgo.GinkgoLogr)
})
