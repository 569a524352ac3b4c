package api

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

var _ = Describe("OperatorContent", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("is immutable, except for its metadata", func(ctx SpecContext) {
		version := &kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kafka-1.0.0", UID: "1"}}
		made := content.New(version, []byte(strings.Repeat("part", 1000)))
		Expect(server.Create(ctx, made)).To(Succeed())
		stored := &kudo.OperatorContent{}
		Expect(server.Get(ctx, client.ObjectKeyFromObject(made), stored)).To(Succeed())
		Expect(stored.Data).To(Equal(made.Data))

		stored.Labels = map[string]string{"backup": "true"}
		Expect(server.Update(ctx, stored)).To(Succeed())
		for _, change := range []func(*kudo.OperatorContent){
			func(c *kudo.OperatorContent) { c.Version = "kafka-1.0.1" },
			func(c *kudo.OperatorContent) { c.Digest = content.DigestOf(nil) },
			func(c *kudo.OperatorContent) { c.Data = content.New(version, []byte("another")).Data },
		} {
			changed := stored.DeepCopy()
			change(changed)
			Expect(server.Update(ctx, changed)).To(MatchError(ContainSubstring("an OperatorContent is immutable: push a new version instead")))
		}
	})

	DescribeTable("is refused with",
		func(ctx SpecContext, body, place string) {
			Expect(server.Create(ctx, kudoObject("OperatorContent", namespace, body))).To(MatchError(ContainSubstring(place)))
		},
		Entry("a digest that is none", `{version: a, digest: "md5:0", data: ""}`, "digest"),
		Entry("data that is no base64", `{version: a, digest: "`+content.DigestOf(nil)+`", data: "a?=="}`, "data"),
		Entry("data that lacks the end of base64", `{version: a, digest: "`+content.DigestOf(nil)+`", data: "abc"}`, "data"),
		Entry("data of more than a part", `{version: a, digest: "`+content.DigestOf(nil)+`", data: "`+strings.Repeat("A", 1_400_004)+`"}`, "data"),
	)
})
