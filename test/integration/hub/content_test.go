package hub

import (
	"context"
	"net/http"
	"path"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

var _ = Describe("The content of an OperatorVersion", func() {
	var (
		f       fleet
		cluster string
		version *kudo.OperatorVersion
		text    []byte
		parts   []*kudo.OperatorContent
		reads   sync.Map // the number of live reads, by the name of the OperatorContent
	)
	BeforeEach(func(ctx SpecContext) {
		stopHub()
		reads.Clear()
		runHub(before(func(r *http.Request) {
			if dir, name := path.Split(r.URL.Path); strings.HasSuffix(dir, "/operatorcontents/") {
				count, _ := reads.LoadOrStore(name, 0)
				reads.Store(name, count.(int)+1)
			}
		}))
		f = newFleet()
		cluster = f.cluster(ctx, "cluster")
		version = f.pushPlans(ctx, "small", packages)
		text = []byte(strings.Repeat("# a long line.\n", 150_000)) // no two parts are equal
		version = &kudo.OperatorVersion{
			ObjectMeta: metav1.ObjectMeta{Namespace: packages, Name: f.nameOf("large")}, Spec: *version.Spec.DeepCopy(),
		}
		version.Spec.Tasks = append(version.Spec.Tasks, kudo.Task{Name: "large", Kind: kudo.TaskApply})
		version.Spec.Tasks[len(version.Spec.Tasks)-1].Spec.Resources = []string{"large.yaml"}
		content.Add(&version.Spec, "large.yaml", text)
		Expect(server.Create(ctx, version)).To(Succeed())
		parts = nil
		for _, part := range content.Split(text) {
			parts = append(parts, content.New(version, part))
		}
	})
	// run creates an Instance of the version.
	run := func(ctx context.Context, name string) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
		instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: packages, Name: version.Name}
		Expect(server.Create(ctx, instance)).To(Succeed())
		return instance
	}
	incomplete := func(messages ...string) OmegaMatcher {
		matchers := []OmegaMatcher{HaveField("Status", "False"), HaveField("Reason", kudo.ReasonContentIncomplete)}
		for _, message := range messages {
			matchers = append(matchers, HaveField("Message", ContainSubstring(message)))
		}
		return And(matchers...)
	}

	It("resolves an Instance once it is complete, and as long as it is unaltered", func(ctx SpecContext) {
		Expect(parts).To(HaveLen(3))
		instance := run(ctx, "mine")
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(incomplete(
			"the content of OperatorVersion addon-packages/" + version.Name + " is incomplete; push the same package again (kubectl addon package push DIR -n addon-packages): " +
				"part 1 of 3 (" + parts[0].Digest + ") of file \"large.yaml\" (" + content.DigestOf(text) + ") of the package is missing in namespace \"addon-packages\""))

		By("storing it, in any order")
		for _, at := range []int{2, 0} {
			Expect(server.Create(ctx, parts[at].DeepCopy())).To(Succeed())
		}
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(incomplete("-n addon-packages): part 2 of 3"))
		Expect(server.Create(ctx, parts[1].DeepCopy())).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))

		By("reading each part once for all Instances")
		Eventually(resolvedOf(run(ctx, "another"))).WithContext(ctx).Should(HaveField("Status", "True"))
		for _, part := range parts {
			count, _ := reads.Load(part.Name)
			Expect(count).To(Equal(1), part.Name)
		}

		By("altering it, also with data that unpacks to more than any part has")
		for what, data := range map[string][]byte{
			"it is " + content.DigestOf([]byte("another")): content.New(version, []byte("another")).Data,
			"unpacks to more than 917504 bytes":            content.New(version, make([]byte, 1<<28)).Data,
			"cannot be unpacked":                           []byte("plain"),
		} {
			Expect(server.Delete(ctx, parts[1].DeepCopy())).To(Succeed())
			altered := parts[1].DeepCopy()
			altered.Data = data
			Expect(server.Create(ctx, altered)).To(Succeed())
			Eventually(resolvedOf(instance)).WithContext(ctx).Should(incomplete("part 2 of 3 ("+parts[1].Digest+")", "is altered", what))
		}
		Expect(server.Delete(ctx, parts[1].DeepCopy())).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(incomplete("part 2 of 3 ("+parts[1].Digest+")", "is missing"))
		Expect(server.Create(ctx, parts[1].DeepCopy())).To(Succeed())
		Eventually(resolvedOf(instance)).WithContext(ctx).Should(HaveField("Status", "True"))
	})
})
