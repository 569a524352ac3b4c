package environment

import (
	"log"
	"sync"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/klog/v2"
)

// quiet makes what libraries log by themselves a part of the spec's report, which is shown if the spec fails.
var quiet = sync.OnceFunc(func() {
	log.SetOutput(ginkgo.GinkgoWriter)
	klog.SetLogger(ginkgo.GinkgoLogr)
})
