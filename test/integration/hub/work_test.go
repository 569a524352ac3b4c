package hub

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

var _ = Describe("A parameter file that takes much work to check", func() {
	It("fails its task, and names the file", func(ctx SpecContext) {
		f := newFleet()
		cluster := f.cluster(ctx, "cluster")
		user, _ := newUser()
		awaitWebhooks(ctx)
		child := f.push(ctx, "child", cluster)
		parent := parentOf(child)
		parent.Spec.Tasks[0].Spec.ParameterFile = "file.yaml"
		mine := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "mine"}}
		mine.Spec.OperatorVersion = corev1.ObjectReference{Namespace: parent.Namespace, Name: parent.Name}
		mine.Spec.Parameters = map[string]string{}
		var file strings.Builder
		for i := range 200 {
			name := fmt.Sprint("P", i)
			fmt.Fprintf(&file, "P%d: {{ .Params.%s }}\n", i, name)
			parent.Spec.Parameters = append(parent.Spec.Parameters, kudo.Parameter{Name: name, Default: ptrTo("a # b")})
			mine.Spec.Parameters[name] = "c # d"
		}
		parent.Spec.Templates = map[string]string{"file.yaml": file.String() + "REST: [{{ repeat 2000 \"{a: b},\" }}]\n"}
		Expect(user.Create(ctx, parent)).To(Succeed())
		Expect(user.Create(ctx, mine)).To(Succeed())
		Eventually(resolvedOf(mine)).WithContext(ctx).Should(HaveField("Status", "True"))
		deploys(ctx, mine, parent)
		Eventually(func(g Gomega) []kudo.ChildStatus {
			g.Expect(server.Get(ctx, client.ObjectKeyFromObject(mine), mine)).To(Succeed())
			return mine.Status.Children
		}).WithContext(ctx).Should(ConsistOf(And(HaveField("State", kudo.ChildFailed),
			HaveField("Message", ContainSubstring(`template "file.yaml": rendering takes more than 2000000 steps`)))))
	})
})
