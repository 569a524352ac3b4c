package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	upstream "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// placementDecisions defines the parts of OCM's kind that the specs use.
const placementDecisions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: placementdecisions.cluster.open-cluster-management.io
  annotations: {api-approved.kubernetes.io: "https://github.com/open-cluster-management-io/api"}
spec:
  group: cluster.open-cluster-management.io
  names: {kind: PlacementDecision, listKind: PlacementDecisionList, plural: placementdecisions, singular: placementdecision}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// The specs act as addon-manager and the agents.
// forbidden is the warning of a dry run to a user who may only read.
const forbidden = "  warning: you do not have the permission to make this change\n"

var _ = Describe("changes", func() {
	// reader is a user with read-only permissions.
	const reader = "reader-of-all"

	BeforeEach(func(ctx SpecContext) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kudo.DefaultPackagesNamespace}}
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, namespace))).To(Succeed())
		DeferCleanup(func(ctx context.Context) { // no controller deletes it here, and another spec requires that none exists
			Expect(hub.Delete(ctx, namespace)).To(Succeed())
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
			namespace.Spec.Finalizers = nil
			Expect(hub.SubResource("finalize").Update(ctx, namespace)).To(Succeed())
		})
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: reader}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		}}
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, role))).To(Succeed())
		Expect(client.IgnoreAlreadyExists(hub.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: reader},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: reader}},
		}))).To(Succeed())
	})

	// push stores a package with a Deployment, a Secret and an object enabled by EXTRA, in that version of its own operator.
	push := func(ctx context.Context, operator, version string) {
		GinkgoHelper()
		dir := GinkgoT().TempDir()
		Expect(os.Mkdir(filepath.Join(dir, "templates"), 0o755)).To(Succeed())
		for name, text := range map[string]string{
			"operator.yaml": "name: " + operator + "\noperatorVersion: " + version + `
tasks:
  - {name: app, kind: Apply, spec: {resources: [app.yaml, key.yaml]}}
  - {name: extra, kind: Toggle, spec: {parameter: EXTRA, resources: [extra.yaml]}}
plans:
  deploy: {phases: [{name: main, steps: [{name: app, tasks: [app, extra]}]}]}
  resize: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}
`,
			"params.yaml": `parameters:
  - {name: SIZE, type: integer, default: "1", trigger: resize, forcePodRestart: "false"}
  - {name: EXTRA, type: boolean, default: "false"}
  - {name: KEY, default: old}
`,
			"templates/app.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec:\n  replicas: {{ .Params.SIZE }}\n" +
				"  selector: {matchLabels: {app: app}}\n  template:\n    metadata: {labels: {app: app}}\n" +
				"    spec: {containers: [{name: app, image: 'app:" + version + "'}]}\n",
			"templates/key.yaml":   "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {key: '{{ .Params.KEY }}'}\n",
			"templates/extra.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n",
		} {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
		}
		Expect(run(ctx, "package", "push", dir).err).NotTo(HaveOccurred())
	}
	at := func(ctx context.Context, cluster, name string) *kudo.Instance {
		GinkgoHelper()
		instance := &kudo.Instance{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, instance)).To(Succeed())
		return instance
	}
	// settle reports that the Instance has executed its spec, with the objects of the push package.
	settle := func(ctx context.Context, cluster, name, plan string) {
		GinkgoHelper()
		Expect(environment.EditStatus(ctx, hub, at(ctx, cluster, name), func(instance *kudo.Instance) {
			var version kudo.OperatorVersion
			ref := instance.Spec.OperatorVersion
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &version)).To(Succeed())
			instance.Status.Execution = &kudo.Execution{
				UID: types.UID("run-" + instance.ResourceVersion), Plan: plan, Generation: instance.Generation, Parameters: instance.Spec.Parameters,
				OperatorVersion: corev1.ObjectReference{Namespace: version.Namespace, Name: version.Name, UID: version.UID},
			}
			instance.Status.Whole = &kudo.WholeVersion{OperatorVersion: instance.Status.Execution.OperatorVersion}
			instance.Status.ObservedGeneration = instance.Generation
			instance.Status.PlanStatus = map[string]kudo.PlanStatus{plan: {Name: plan, UID: instance.Status.Execution.UID, Status: kudo.Complete}}
			instance.Status.Inventory = []kudo.InventoryEntry{
				{Group: "apps", Kind: "Deployment", Namespace: instance.TargetNamespace(), Name: "app", Task: "app"},
				{Kind: "Secret", Namespace: instance.TargetNamespace(), Name: "key", Task: "app"},
			}
			meta.SetStatusCondition(&instance.Status.Conditions, metav1.Condition{
				Type: kudo.ConditionResolved, Status: metav1.ConditionTrue, Reason: kudo.ReasonResolved, ObservedGeneration: instance.Generation,
			})
		})).To(Succeed())
	}
	// three creates managed clusters, sorted by name.
	three := func(ctx context.Context) []string {
		GinkgoHelper()
		clusters := []string{newCluster(ctx, nil), newCluster(ctx, nil), newCluster(ctx, nil)}
		for i := range clusters {
			for j := range i {
				if clusters[i] < clusters[j] {
					clusters[i], clusters[j] = clusters[j], clusters[i]
				}
			}
		}
		return clusters
	}

	It("install --dry-run on three clusters with different parameters shows three true plans, and writes nothing", func(ctx SpecContext) {
		push(ctx, "mill", "1.0.0")
		clusters := three(ctx)
		got := run(ctx, "install", "mill", "--cluster", strings.Join(clusters, ","), "-n", "grain", "--dry-run", "-o", "wide", "--as", reader,
			"-p", "SIZE=2", "-p", clusters[1]+"/SIZE=3", "-p", clusters[2]+"/EXTRA=true")
		Expect(got.err).NotTo(HaveOccurred())
		for i, cluster := range clusters {
			Expect(got.out).To(ContainSubstring("cluster " + cluster + ": Instance mill would be created, mill-1.0.0\n" +
				"  writes on the hub: instance.kudo.dev/mill\n" + forbidden +
				"  plan deploy runs: no plan has run yet\n" +
				"    main, app: task app (Apply)\n      create     Deployment app\n      create     Secret key\n" +
				[]string{
					"    main, app: task extra (Toggle: delete): no objects\n",
					"    main, app: task extra (Toggle: delete): no objects\n",
					"    main, app: task extra (Toggle: apply)\n      create     ConfigMap extra\n",
				}[i]))
		}
		Expect(got.out).To(And(ContainSubstring("+  replicas: 2\n"), ContainSubstring("+  replicas: 3\n"), ContainSubstring("+  key: '***'\n")))
		for _, cluster := range clusters {
			err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "mill"}, &kudo.Instance{})
			Expect(apierrors.IsNotFound(err)).To(BeTrue())
		}
		alike := run(ctx, "install", "mill", "--cluster", strings.Join(clusters, ","), "--dry-run", "--as", reader)
		Expect(alike.out).To(HavePrefix("3 clusters (" + strings.Join(clusters, ", ") + "): Instance mill would be created"))
		wrong := run(ctx, "install", "mill", "--cluster", strings.Join(clusters, ","), "--dry-run", "--as", reader, "-p", clusters[0]+"/SIZE=many")
		Expect(wrong.code).To(Equal(cli.ExitFailure))
		Expect(wrong.out).To(And(HavePrefix("2 clusters ("), ContainSubstring(
			"cluster "+clusters[0]+": refused: Instance "+clusters[0]+"/mill: parameter \"SIZE\": value \"many\": must be an integer, such as 3\n")))
		Expect(wrong.err).To(MatchError("the change would fail on cluster " + clusters[0] + "; nothing was written"))
	})

	It("update --dry-run shows the effect on existing Instances", func(ctx SpecContext) {
		push(ctx, "oven", "1.0.0")
		clusters := three(ctx)
		all := strings.Join(clusters, ",")
		made := run(ctx, "install", "oven", "--cluster", all, "-p", clusters[1]+"/SIZE=5")
		Expect(made.err).NotTo(HaveOccurred())
		Expect(made.out).To(ContainSubstring("instance.kudo.dev/oven created on " + clusters[0] + "\n  plan deploy runs: no plan has run yet\n"))
		for _, cluster := range clusters[:2] {
			settle(ctx, cluster, "oven", "deploy")
		}
		before := at(ctx, clusters[0], "oven").ResourceVersion

		got := run(ctx, "update", "oven", "--cluster", all, "-p", "SIZE=5", "-p", clusters[0]+"/KEY=new", "--dry-run", "--as", reader)
		Expect(got.err).NotTo(HaveOccurred())
		Expect(got.out).To(And(
			ContainSubstring("cluster "+clusters[0]+": Instance oven would be changed, oven-1.0.0\n  writes on the hub: instance.kudo.dev/oven\n"+forbidden+
				"  plan resize runs: change of parameter SIZE\n    pods restart only where they change (forcePodRestart is false)\n"+
				"    main, app: task app (Apply)\n      change     Deployment "+clusters[0]+"/app\n      unchanged  Secret "+clusters[0]+"/key\n"+
				"  plan deploy runs: change of parameter KEY\n    all pods of the applied objects restart\n"+
				"    main, app: task app (Apply)\n      restart    Deployment "+clusters[0]+"/app\n      change     Secret "+clusters[0]+"/key\n"),
			ContainSubstring("-  replicas: 1\n+  replicas: 5\n"), ContainSubstring("-  key: '*** (before)'\n+  key: '*** (after)'\n"),
			ContainSubstring("cluster "+clusters[1]+": Instance oven would not change, oven-1.0.0\n  no plan runs\n"),
			ContainSubstring("cluster "+clusters[2]+": Instance oven would be changed, oven-1.0.0\n  writes on the hub: instance.kudo.dev/oven\n"+forbidden+
				"  plan deploy runs: no plan has run yet\n"),
			Not(ContainSubstring("new")), Not(ContainSubstring("old")),
		))
		Expect(at(ctx, clusters[0], "oven").ResourceVersion).To(Equal(before))

		names := run(ctx, "update", "oven", "--cluster", all, "-p", "SIZE=5", "--dry-run", "-o", "jsonpath={range .changes[*]}{.write} {.plans[*].plan}\n{end}")
		Expect(names.out).To(Equal("changed resize\nunchanged \nchanged deploy\n"))
		Expect(run(ctx, "update", "oven", "--cluster", all, "-p", "SIZE=5", "-o", "json").code).To(Equal(cli.ExitUsage))
	})

	It("update --dry-run works whatever OperatorVersion the agent reports", func(ctx SpecContext) {
		push(ctx, "kettle", "1.0.0")
		cluster, private := newCluster(ctx, nil), newNamespace(ctx)
		user := "user-of-" + cluster
		Expect(run(ctx, "install", "kettle", "--cluster", cluster).err).NotTo(HaveOccurred())
		definitions := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"clustermanagementaddons", "managedclusters"}, Verbs: []string{"get", "list"}},
		}}
		Expect(hub.Create(ctx, definitions)).To(Succeed())
		Expect(hub.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})).To(Succeed())
		for _, namespace := range []string{cluster, kudo.DefaultPackagesNamespace} {
			allow(ctx, namespace, user, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
		}
		settle(ctx, cluster, "kettle", "deploy")
		for _, forged := range []corev1.ObjectReference{{Namespace: private, Name: "kettle"}, {Namespace: "a/b", Name: "kettle"}, {Name: ".."}, {}} {
			Expect(environment.EditStatus(ctx, hub, at(ctx, cluster, "kettle"), func(instance *kudo.Instance) {
				instance.Status.Execution.OperatorVersion = forged
			})).To(Succeed())
			got := run(ctx, "update", "kettle", "--cluster", cluster, "-p", "SIZE=5", "--dry-run", "--as", user)
			Expect(got.err).NotTo(HaveOccurred(), "%v", forged)
			Expect(got.out).To(ContainSubstring("cluster "+cluster+": Instance kettle would be changed"), "%v", forged)
		}
	})

	It("update and upgrade change Instances, wait for their plans, and report failures at the end", func(ctx SpecContext) {
		push(ctx, "loom", "1.0.0")
		push(ctx, "loom", "2.0.0")
		clusters := three(ctx)
		some := strings.Join(clusters[:2], ",")
		Expect(run(ctx, "install", "loom", "weaver", "--cluster", some, "--operator-version", "1.0.0").err).NotTo(HaveOccurred())
		Expect(at(ctx, clusters[0], "weaver").Spec.OperatorVersion.Name).To(Equal("loom-1.0.0"))
		for _, cluster := range clusters[:2] {
			settle(ctx, cluster, "weaver", "deploy")
		}
		done := begin(ctx, "update", "weaver", "--cluster", strings.Join(clusters, ","), "-p", "SIZE=2", "--wait")
		for _, cluster := range clusters[:2] {
			Eventually(func() map[string]string { return at(ctx, cluster, "weaver").Spec.Parameters }).Should(Equal(map[string]string{"SIZE": "2"}))
		}
		Consistently(done).ShouldNot(Receive())
		for _, cluster := range clusters[:2] {
			settle(ctx, cluster, "weaver", "resize")
		}
		var updated result
		Eventually(done).Should(Receive(&updated))
		Expect(updated.code).To(Equal(cli.ExitFailure))
		Expect(updated.err).To(MatchError("cluster \"" + clusters[2] + "\" has no Instance or add-on \"weaver\"; Instances: none; add-ons: none"))
		Expect(updated.out).To(And(
			ContainSubstring("instance.kudo.dev/weaver configured on "+clusters[1]+"\n  plan resize runs: change of parameter SIZE\n"),
			HaveSuffix("instance.kudo.dev/weaver plan resize is complete on "+clusters[0]+"\ninstance.kudo.dev/weaver plan resize is complete on "+clusters[1]+"\n")))

		Expect(run(ctx, "upgrade", "weaver", "--cluster", clusters[0], "--version", "3.0.0").err).To(MatchError(
			ContainSubstring("OperatorVersion loom-3.0.0 does not exist: push its package first (kubectl addon package push DIR), or use an existing version: loom-2.0.0, loom-1.0.0")))
		preview := run(ctx, "upgrade", "weaver", "--cluster", some, "--dry-run", "--as", reader)
		Expect(preview.err).NotTo(HaveOccurred())
		Expect(preview.out).To(And(HavePrefix("2 clusters ("), ContainSubstring("): Instance weaver would be changed, loom-1.0.0 -> loom-2.0.0\n"),
			ContainSubstring("  plan deploy runs: change of OperatorVersion\n"), ContainSubstring("+      - image: app:2.0.0\n")))
		Expect(run(ctx, "update", "weaver", "--cluster", clusters[1], "--unset", "SISE").err).To(MatchError(
			ContainSubstring(`Instance "weaver": parameter "SISE": not defined: did you mean SIZE?`)))
		upgraded := run(ctx, "upgrade", "weaver", "--all-clusters", "--unset", "SIZE")
		Expect(upgraded.err).NotTo(HaveOccurred())
		Expect(at(ctx, clusters[1], "weaver").Spec.OperatorVersion.Name).To(Equal("loom-2.0.0"))
		Expect(at(ctx, clusters[1], "weaver").Spec.Parameters).To(BeEmpty())
		Expect(run(ctx, "update", "weaver", "--cluster", clusters[1], "-p", "SIZE=2", "--wait", "--timeout", "3s").code).To(Equal(cli.ExitTimeout))
		Expect(run(ctx, "install", "loom", "weaver", "--cluster", clusters[0]).out).To(HavePrefix("instance.kudo.dev/weaver unchanged on " + clusters[0] + "\n"))
		Expect(run(ctx, "install", "loom", "weaver", "--cluster", clusters[0], "-p", "SIZE=9").err).To(MatchError(ContainSubstring("cluster " + clusters[0] + ": Instance \"weaver\" already exists")))
	})

	It("of references to Secrets keep those that another user has changed meanwhile", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		from := func(name, secret string) kudo.ParameterFrom {
			return kudo.ParameterFrom{Name: name, SecretKeyRef: kudo.SecretKeyRef{Name: secret, Key: "k"}}
		}
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "safe"}}
		instance.Spec.OperatorVersion.Name = "safe-1.0.0"
		instance.Spec.ParametersFrom = []kudo.ParameterFrom{from("A", "old"), from("B", "old"), from("C", "old")}
		Expect(hub.Create(ctx, instance)).To(Succeed())
		wanted := instance.DeepCopy().Spec
		wanted.ParametersFrom = []kudo.ParameterFrom{from("A", "mine"), from("C", "old"), from("D", "mine")}
		Expect(environment.Edit(ctx, hub, at(ctx, cluster, "safe"), func(i *kudo.Instance) {
			i.Spec.ParametersFrom = []kudo.ParameterFrom{from("A", "old"), from("B", "old"), from("C", "theirs"), from("E", "theirs")}
		})).To(Succeed())
		Expect(change.Request(ctx, hub, instance, wanted)).To(Succeed())
		Expect(at(ctx, cluster, "safe").Spec.ParametersFrom).To(ConsistOf(
			from("A", "mine"), from("C", "theirs"), from("D", "mine"), from("E", "theirs")))

		By("changing no Instance that was created since under the same name")
		instance.UID = "another"
		Expect(change.Request(ctx, hub, instance, wanted)).To(MatchError(ContainSubstring("uid")))
	})

	It("are made if only a status was written since the object was read, and are conflicts if more has changed", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "busy"}}
		Expect(hub.Create(ctx, addOn)).To(Succeed())
		config := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "busy"}}
		Expect(hub.Create(ctx, config)).To(Succeed())
		instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "busy"}}
		instance.Spec.OperatorVersion.Name = "busy-1.0.0"
		Expect(hub.Create(ctx, instance)).To(Succeed())

		step := change.Step{Current: addOn.DeepCopy(), Wanted: addOn.DeepCopy(), CurrentConfig: config.DeepCopy(), Config: config.DeepCopy()}
		step.Wanted.Spec.InstallNamespace = "first"
		step.Config.Spec.CustomizedVariables = []upstream.CustomizedVariable{{Name: "SIZE", Value: "1"}}
		stale := step
		stale.Wanted, stale.Config = step.Wanted.DeepCopy(), config.DeepCopy()
		stale.Wanted.Spec.InstallNamespace = "second"
		Expect(environment.EditStatus(ctx, hub, addOn.DeepCopy(), func(a *addonv1alpha1.ManagedClusterAddOn) {
			a.Status.Namespace = "reported"
		})).To(Succeed())
		Expect(step.Write(ctx, hub)).To(HaveLen(2))
		Expect(step.Wanted.Status.Namespace).To(Equal("reported"))
		_, err := stale.Write(ctx, hub)
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)).To(Succeed())
		Expect(addOn.Spec.InstallNamespace).To(Equal("first"))

		By("changing an Instance that the agent reports at the same time")
		read := instance.DeepCopy()
		Expect(environment.EditStatus(ctx, hub, instance, func(i *kudo.Instance) { i.Status.ObservedGeneration = 1 })).To(Succeed())
		wanted := read.Spec
		wanted.Parameters = map[string]string{"SIZE": "2"}
		Expect(change.RequestUnchanged(ctx, hub, read.DeepCopy(), wanted)).To(Succeed())
		err = change.RequestUnchanged(ctx, hub, read.DeepCopy(), wanted)
		Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	})

	It("are refused where a plan would fail, unless they are forced", func(ctx SpecContext) {
		push(ctx, "sluice", "1.0.0")
		cluster, other := newCluster(ctx, nil), newCluster(ctx, nil)
		const wrong = "KEY=a', more: 'b"
		refusal := "cluster " + cluster + `: a plan of Instance "sluice" would fail: task "app": template "key.yaml", line 4: the value of parameter "KEY" ` +
			`changes the structure of the rendered YAML: use a value without YAML syntax and line breaks, or quote it in the template (quote, toYaml); ` +
			`fix the cause, or use --force to make the change anyway`
		refused := run(ctx, "install", "sluice", "--cluster", cluster+","+other, "-p", cluster+"/"+wrong)
		Expect(refused.code).To(Equal(cli.ExitFailure))
		Expect(refused.err).To(MatchError(refusal))
		Expect(refused.out).To(HavePrefix("instance.kudo.dev/sluice created on " + other + "\n"))
		err := hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "sluice"}, &kudo.Instance{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue())

		forced := run(ctx, "install", "sluice", "--cluster", cluster, "-p", wrong, "--force")
		Expect(forced.err).NotTo(HaveOccurred())
		Expect(forced.out).To(And(HavePrefix("instance.kudo.dev/sluice created on "+cluster+"\n"), ContainSubstring(`would fail: task "app"`)))
		Expect(run(ctx, "install", "sluice", "--cluster", cluster, "-p", wrong).err).NotTo(HaveOccurred(), "nothing is written")
		Expect(run(ctx, "update", "sluice", "--cluster", other, "-p", wrong).err).To(MatchError(ContainSubstring("would fail")))
		Expect(at(ctx, other, "sluice").Spec.Parameters).To(BeEmpty())
		Expect(run(ctx, "update", "sluice", "--cluster", cluster, "-p", "KEY=right").err).NotTo(HaveOccurred())
		Expect(at(ctx, cluster, "sluice").Spec.Parameters).To(Equal(map[string]string{"KEY": "right"}))
	})

	It("are refused where an object has a field that its kind lacks, unless --validate accepts it", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		dir := packageDir("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec: {replica: {{ .Params.SIZE }}}\n")
		Expect(os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte("name: gauge\noperatorVersion: 1.0.0\n"+
			"tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]\n"+
			"plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}, backup: {}}\n"), 0o600)).To(Succeed())
		Expect(run(ctx, "package", "push", dir).err).NotTo(HaveOccurred())
		const failure = `Deployment app: unknown field "spec.replica": did you mean replicas?`
		install := func(flags ...string) result {
			return run(ctx, append([]string{"install", "gauge", "--cluster", cluster}, flags...)...)
		}
		refused := install()
		Expect(refused.code).To(Equal(cli.ExitFailure))
		Expect(refused.err).To(MatchError("cluster " + cluster + `: a plan of Instance "gauge" would fail: task "app": ` + failure +
			"; fix the cause, or use --force to make the change anyway"))
		Expect(refused.out).To(BeEmpty())
		Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "gauge"}, &kudo.Instance{}))).To(BeTrue())
		Expect(install("--validate=loose").err).To(MatchError(ContainSubstring(`invalid argument "loose" for "--validate" flag: must be one of strict, warn, ignore`)))
		shown := install("--dry-run")
		Expect(shown.out).To(ContainSubstring("      fails: " + failure))
		Expect(shown.err).To(MatchError("the change would fail on cluster " + cluster + "; nothing was written"))
		shown = install("--dry-run", "--validate=warn")
		Expect(shown.err).NotTo(HaveOccurred())
		Expect(shown.out).To(ContainSubstring("      warning: " + failure))

		warned := install("--validate=warn")
		Expect(warned.err).NotTo(HaveOccurred())
		Expect(warned.out).To(Equal("instance.kudo.dev/gauge created on " + cluster + "\n  plan deploy runs: no plan has run yet\n" +
			`  warning: task "app": ` + failure + "\n"))
		Expect(run(ctx, "update", "gauge", "--cluster", cluster, "-p", "SIZE=4").err).To(MatchError(ContainSubstring(failure)))
		Expect(at(ctx, cluster, "gauge").Spec.Parameters).To(BeEmpty())
		Expect(run(ctx, "update", "gauge", "--cluster", cluster, "-p", "SIZE=4", "--validate=ignore").out).NotTo(ContainSubstring("spec.replica"))
		Expect(at(ctx, cluster, "gauge").Spec.Parameters).To(Equal(map[string]string{"SIZE": "4"}))
	})

	It("are refused before they fail on the cluster, and name what only the cluster knows", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		// pushed stores a package of operator "press" whose only template is the text.
		pushed := func(version, template string) {
			GinkgoHelper()
			dir := packageDir(template)
			Expect(os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte("name: press\noperatorVersion: "+version+"\n"+
				"tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]\n"+
				"plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}, backup: {}}\n"), 0o600)).To(Succeed())
			Expect(run(ctx, "package", "push", dir).err).NotTo(HaveOccurred())
		}
		deployment := func(namespace, label, cpu string) string {
			return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app, namespace: " + namespace + "}\nspec:\n" +
				"  selector: {matchLabels: {app: " + label + "}}\n  template:\n    metadata: {labels: {app: " + label + "}}\n" +
				"    spec: {containers: [{name: app, image: 'app:1', resources: {requests: {cpu: " + cpu + "}}}]}\n"
		}
		const monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: app}\n"
		pushed("1.0.0", deployment("'{{ .Namespace }}'", "app", "100m")+"---\n"+monitor)
		pushed("2.0.0", deployment("'{{ .Namespace }}'", "other", "100m"))
		pushed("3.0.0", deployment("'{{ .Namespace }}'", "app", "lots"))
		pushed("4.0.0", deployment("kube-system", "app", "100m"))
		pushed("5.0.0", strings.Replace(deployment("'{{ .Namespace }}'", "app", "100m"), "kind: Deployment", "kind: Deploymnt", 1))

		By("naming what only the cluster knows")
		shown := run(ctx, "install", "press", "--cluster", cluster, "--version", "1.0.0", "--dry-run", "--as", reader)
		Expect(shown.err).NotTo(HaveOccurred())
		Expect(shown.out).To(HaveSuffix("\n\nNot checked, because only " + cluster + " knows: whether the objects to create already exist, and who owns them; " +
			"whether these kinds exist: ServiceMonitor.monitoring.coreos.com; permissions, quotas, admission webhooks and policies.\n"))
		Expect(shown.out).To(ContainSubstring("\n      create     Deployment " + cluster + "/app\n      create     ServiceMonitor app\n"))
		fields := run(ctx, "install", "press", "--cluster", cluster, "--version", "1.0.0", "--dry-run", "-o",
			"jsonpath={.changes[*].unknownKinds[*]}{range .notChecked[*]}|{@}{end}")
		Expect(fields.out).To(Equal("ServiceMonitor.monitoring.coreos.com|whether the objects to create already exist, and who owns them|" +
			`whether these kinds exist: ServiceMonitor.monitoring.coreos.com|permissions, quotas, admission webhooks and policies`))

		By("refusing what fails on every cluster, as the dry run says")
		Expect(run(ctx, "install", "press", "--cluster", cluster, "--version", "1.0.0").err).NotTo(HaveOccurred())
		settle(ctx, cluster, "press", "deploy")
		for version, failure := range map[string]string{
			"2.0.0": `task "app": Deployment ` + cluster + "/app: spec.selector cannot be changed while the object exists: " +
				"delete the object and run the plan again, or give it another name in the package",
			"3.0.0": `task "app": Deployment ` + cluster + "/app: spec.template.spec.containers[0].resources.requests.cpu: \"lots\" is not a quantity",
			"4.0.0": `Deployment kube-system/app: nothing is applied to namespace "kube-system": use another one (the agent's flag to allow it is --allow-namespaces)`,
			"5.0.0": `task "app": Deploymnt ` + cluster + `/app: Kubernetes has no kind "Deploymnt" in apps/v1 (did you mean Deployment?)`,
		} {
			shown := run(ctx, "upgrade", "press", "--cluster", cluster, "--version", version, "--dry-run", "--as", reader)
			Expect(shown.err).To(MatchError("the change would fail on cluster "+cluster+"; nothing was written"), version)
			Expect(shown.out).To(ContainSubstring("fails: "+strings.TrimPrefix(failure, `task "app": `)), version)
			Expect(shown.out).To(ContainSubstring("Not checked, because only "+cluster+" knows: "), version)
			refused := run(ctx, "upgrade", "press", "--cluster", cluster, "--version", version)
			Expect(refused.err).To(MatchError(HavePrefix("cluster "+cluster+`: a plan of Instance "press" would fail: `+failure)), version)
			Expect(at(ctx, cluster, "press").Spec.OperatorVersion.Name).To(Equal("press-1.0.0"), version)
		}
	})

	It("say that plans wait for another version of Kubernetes, if the hub knows that of the cluster", func(ctx SpecContext) {
		cluster := newCluster(ctx, nil)
		dir := packageDir(configMap)
		Expect(os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte("name: spindle\noperatorVersion: 1.0.0\nkubernetesVersion: '>=1.99.0'\n"+
			"tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]\n"+
			"plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}, backup: {}}\n"), 0o600)).To(Succeed())
		Expect(run(ctx, "package", "push", dir).err).NotTo(HaveOccurred())
		install := func(flags ...string) result {
			return run(ctx, append([]string{"install", "spindle", "--cluster", cluster}, flags...)...)
		}
		const waits = `warning: plan "deploy" waits: the package requires Kubernetes >=1.99.0, and the cluster has v1.37.2: upgrade the cluster`
		Expect(install("--dry-run").out).NotTo(ContainSubstring("requires Kubernetes"))

		known := managedCluster(cluster)
		Expect(hub.Status().Patch(ctx, known, client.RawPatch(types.MergePatchType, []byte(`{"status":{"version":{"kubernetes":"v1.37.2"}}}`)))).To(Succeed())
		Expect(install("--dry-run").out).To(ContainSubstring(waits))
		installed := install()
		Expect(installed.err).NotTo(HaveOccurred())
		Expect(installed.out).To(ContainSubstring(waits))
		Expect(at(ctx, cluster, "spindle").Spec.OperatorVersion.Name).To(Equal("spindle-1.0.0"), "it starts once the cluster is upgraded")
	})

	It("are previewed with the labels, claims and version of the cluster, as far as the user may get them", func(ctx SpecContext) {
		eu, us := newCluster(ctx, map[string]string{"region": "eu"}), newCluster(ctx, map[string]string{"region": "us"})
		for _, cluster := range []string{eu, us} {
			Expect(hub.Status().Patch(ctx, managedCluster(cluster), client.RawPatch(types.MergePatchType, []byte(
				`{"status":{"version":{"kubernetes":"v1.37.2"},"clusterClaims":[{"name":"id","value":"c-7"}]}}`)))).To(Succeed())
		}
		dir := packageDir("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\n" +
			`data: {at: {{ printf "%s %s %s" (index .Cluster.Labels "region") (index .Cluster.Claims "id") .Capabilities.KubeVersion.Minor | quote }}}` + "\n" +
			"{{ if eq (index .Cluster.Labels \"region\") \"us\" }}{{ fail \"not offered in this region\" }}{{ end }}\n")
		Expect(os.WriteFile(filepath.Join(dir, "operator.yaml"), []byte("name: atlas\noperatorVersion: 1.0.0\n"+
			"tasks: [{name: app, kind: Apply, spec: {resources: [app.yaml]}}]\n"+
			"plans: {deploy: {phases: [{name: main, steps: [{name: app, tasks: [app]}]}]}, backup: {}}\n"), 0o600)).To(Succeed())
		Expect(run(ctx, "package", "push", dir).err).NotTo(HaveOccurred())
		shown := run(ctx, "install", "atlas", "--cluster", eu, "--dry-run", "-o", "wide")
		Expect(shown.err).NotTo(HaveOccurred())
		Expect(shown.out).To(ContainSubstring("at: eu c-7 37"), shown.out)
		Expect(shown.out).NotTo(Or(ContainSubstring("not known here"), ContainSubstring("not allowed to get")))
		Expect(run(ctx, "install", "atlas", "--cluster", us).err).To(MatchError(ContainSubstring("not offered in this region")))
		Expect(run(ctx, "install", "atlas", "--cluster", eu).err).NotTo(HaveOccurred())
		Expect(at(ctx, eu, "atlas").Spec.Cluster).To(BeNil(), "addon-manager records the facts")

		By("a user who may get everything but ManagedClusters")
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"kudo.dev", "addon.open-cluster-management.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
		}}
		Expect(hub.Create(ctx, role)).To(Succeed())
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "tenant"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenant"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "tenant"}},
		}
		Expect(hub.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(hub.Delete(ctx, binding)).To(Succeed())
			Expect(hub.Delete(ctx, role)).To(Succeed())
		})
		Eventually(func(g Gomega) {
			shown := run(ctx, "install", "atlas", "other", "--cluster", us, "-n", "other", "--dry-run", "--as", "tenant")
			g.Expect(shown.err).NotTo(HaveOccurred())
			g.Expect(shown.out).To(And(
				ContainSubstring(fmt.Sprintf(`warning: you are not allowed to get ManagedCluster %q: templates use its labels, claims or version, so the preview is incomplete`, us)),
				ContainSubstring("its objects depend on the cluster's labels, claims and version, which are not known here")))
		}).Should(Succeed())
	})

	It("warn of a namespace in which nothing is installed", func(ctx SpecContext) {
		push(ctx, "crypt", "1.0.0")
		cluster := newCluster(ctx, nil)
		const warning = "addon-manager and addon-agent refuse namespace \"kube-system\" unless their flags --allow-namespaces list it: use another namespace\n"
		Expect(run(ctx, "install", "crypt", "--cluster", cluster, "-n", "kube-system", "--dry-run").out).To(ContainSubstring("  warning: " + warning))
		made := run(ctx, "install", "crypt", "--cluster", cluster, "-n", "kube-system")
		Expect(made.err).NotTo(HaveOccurred())
		Expect(made.errOut).To(Equal("Warning: on cluster " + cluster + ": " + warning))
		Expect(run(ctx, "update", "crypt", "--cluster", cluster, "-p", "SIZE=2").errOut).To(BeEmpty(), "it is there")
	})

	It("are made on the clusters that a Placement selects", func(ctx SpecContext) {
		push(ctx, "forge", "1.0.0")
		cluster, other := newCluster(ctx, nil), newCluster(ctx, nil)
		Expect(run(ctx, "install", "forge", "--placement", "hot/few").err).To(MatchError(ContainSubstring("the hub does not serve Placements")))
		definition := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(placementDecisions), &definition.Object)).To(Succeed())
		Expect(hub.Create(ctx, definition)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
		namespace := newNamespace(ctx)
		decision := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
			"metadata": map[string]any{
				"namespace": namespace, "name": "few-decision-1", "labels": map[string]any{"cluster.open-cluster-management.io/placement": "few"},
			},
		}}
		Eventually(func() error { return hub.Create(ctx, decision) }).Should(Succeed())
		Expect(run(ctx, "install", "forge", "--placement", namespace+"/few").err).To(MatchError(ContainSubstring("no managed cluster is selected by Placement " + namespace + "/few")))
		decision.Object["status"] = map[string]any{"decisions": []any{map[string]any{"clusterName": cluster, "reason": "it is hot"}}}
		Expect(hub.Status().Update(ctx, decision)).To(Succeed())
		Expect(run(ctx, "install", "forge", "--placement", namespace+"/few").out).To(HavePrefix("instance.kudo.dev/forge created on " + cluster + "\n"))
		Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKey{Namespace: other, Name: "forge"}, &kudo.Instance{}))).To(BeTrue())
	})

	It("uninstall removes it from all clusters that have it, after confirmation, and lists the objects before", func(ctx SpecContext) {
		push(ctx, "kiln", "1.0.0")
		clusters := three(ctx)
		some := strings.Join(clusters[:2], ",")
		Expect(run(ctx, "install", "kiln", "--cluster", some).err).NotTo(HaveOccurred())
		settle(ctx, clusters[0], "kiln", "deploy")
		shown := run(ctx, "uninstall", "kiln", "--all-clusters", "--dry-run", "--as", reader)
		Expect(shown.err).NotTo(HaveOccurred())
		Expect(shown.out).To(ContainSubstring("cluster " + clusters[0] + ": Instance kiln would be removed, kiln-1.0.0\n  writes on the hub: instance.kudo.dev/kiln\n" +
			"  no plan runs\n  remove     Deployment " + clusters[0] + "/app\n  remove     Secret " + clusters[0] + "/key\n"))
		Expect(run(ctx, "uninstall", "kiln", "--all-clusters").err).To(MatchError(ContainSubstring("cannot prompt for confirmation without a terminal; use --yes")))
		Expect(at(ctx, clusters[0], "kiln").DeletionTimestamp).To(BeNil())
		gone := run(ctx, "uninstall", "kiln", "--all-clusters", "--yes")
		Expect(gone.err).NotTo(HaveOccurred())
		Expect(gone.out).To(Equal("instance.kudo.dev/kiln deleted from " + clusters[0] + "\ninstance.kudo.dev/kiln deleted from " + clusters[1] + "\n"))
		Expect(run(ctx, "uninstall", "kiln", "--all-clusters", "--yes").err).To(MatchError(ContainSubstring(`has an Instance or add-on "kiln"`)))
	})

	Describe("of an add-on", func() {
		define := func(ctx context.Context, name, version string, placements ...upstream.PlacementStrategy) {
			GinkgoHelper()
			definition := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: name}}
			definition.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			if len(placements) > 0 {
				definition.Spec.InstallStrategy.Type, definition.Spec.InstallStrategy.Placements = upstream.AddonInstallStrategyPlacements, placements
			}
			definition.Spec.SupportedConfigs = []upstream.ConfigMeta{
				{
					ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
					DefaultConfig:       &upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: version},
				},
				{ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupVersion.Group, Resource: addonv1alpha1.ResourceAddOnDeploymentConfigs}},
			}
			Expect(hub.Create(ctx, definition)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, definition)).To(Succeed()) })
		}
		// follow creates the Instance of an add-on, as addon-manager does.
		follow := func(ctx context.Context, cluster, name, version string, parameters map[string]string) *addonv1alpha1.ManagedClusterAddOn {
			GinkgoHelper()
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, addOn)).To(Succeed())
			instance := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster, Name: name,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(addOn, addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"))},
			}}
			instance.Spec.OperatorVersion = corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: version}
			instance.Spec.Parameters = parameters
			Expect(hub.Create(ctx, instance)).To(Succeed())
			settle(ctx, cluster, name, "deploy")
			return addOn
		}

		It("are made in the source of the Instance: its parameters, and its OperatorVersion", func(ctx SpecContext) {
			push(ctx, "dock", "1.0.0")
			push(ctx, "dock", "2.0.0")
			define(ctx, "dock", "dock-1.0.0")
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "enable", "dock", "--cluster", cluster, "-p", "SIZE=2").err).NotTo(HaveOccurred())
			follow(ctx, cluster, "dock", "dock-1.0.0", map[string]string{"SIZE": "2"})

			Expect(run(ctx, "update", "dock", "--cluster", cluster, "--unset", "SISE").err).To(MatchError(
				ContainSubstring(`add-on "dock" on cluster ` + cluster + `: parameter "SISE": not defined: did you mean SIZE?`)))
			bare := newCluster(ctx, nil)
			Expect(run(ctx, "enable", "dock", "--cluster", bare).err).NotTo(HaveOccurred())
			follow(ctx, bare, "dock", "dock-1.0.0", nil)
			Expect(run(ctx, "update", "dock", "--cluster", bare, "--unset", "SIZE").out).To(Equal(
				"managedclusteraddon.addon.open-cluster-management.io/dock unchanged on " + bare + "\n"))
			shown := run(ctx, "update", "dock", "--cluster", cluster, "-p", "SIZE=4", "--dry-run", "--as", reader)
			Expect(shown.err).NotTo(HaveOccurred())
			Expect(shown.out).To(And(HavePrefix("cluster "+cluster+": Instance dock would be changed, dock-1.0.0\n"+
				"  writes on the hub: addondeploymentconfig.addon.open-cluster-management.io/dock-parameters\n"+forbidden+
				"  plan resize runs: change of parameter SIZE\n"), ContainSubstring("-  replicas: 2\n+  replicas: 4\n")))

			done := begin(ctx, "update", "dock", "--cluster", cluster, "-p", "SIZE=4", "--wait")
			config := &addonv1alpha1.AddOnDeploymentConfig{}
			Eventually(func() []upstream.CustomizedVariable {
				Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "dock-parameters"}, config)).To(Succeed())
				return config.Spec.CustomizedVariables
			}).Should(Equal([]upstream.CustomizedVariable{{Name: "SIZE", Value: "4"}}))
			Consistently(done).ShouldNot(Receive())
			Expect(environment.Edit(ctx, hub, at(ctx, cluster, "dock"), func(i *kudo.Instance) { i.Spec.Parameters["SIZE"] = "4" })).To(Succeed())
			settle(ctx, cluster, "dock", "resize")
			var updated result
			Eventually(done).Should(Receive(&updated))
			Expect(updated.err).NotTo(HaveOccurred())
			Expect(updated.out).To(HaveSuffix("instance.kudo.dev/dock plan resize is complete\n"))

			Expect(run(ctx, "upgrade", "dock", "--cluster", cluster).err).NotTo(HaveOccurred())
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "dock"}, addOn)).To(Succeed())
			Expect(addOn.Spec.Configs).To(ContainElement(HaveField("ConfigReferent", upstream.ConfigReferent{
				Namespace: kudo.DefaultPackagesNamespace, Name: "dock-2.0.0",
			})))
			Expect(run(ctx, "upgrade", "dock", "--cluster", cluster, "--operator-version", "dock-1.0.0").err).NotTo(HaveOccurred())
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "dock"}, addOn)).To(Succeed())
			Expect(addOn.Spec.Configs).NotTo(ContainElement(HaveField("Resource", addonv1alpha1.ResourceOperatorVersions)))
			Expect(run(ctx, "install", "dock", "--cluster", cluster).err).To(MatchError(ContainSubstring(`add-on "dock" is enabled on cluster ` + cluster)))
		})

		It("say that a version does not start while a dependent excludes it", func(ctx SpecContext) {
			push(ctx, "mill", "1.0.0")
			push(ctx, "mill", "2.0.0")
			define(ctx, "mill", "mill-1.0.0")
			bakery := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "bakery"}}
			bakery.Spec.InstallStrategy.Type = upstream.AddonInstallStrategyManual
			bakery.Spec.Dependencies = []addonv1alpha1.AddonDependency{{Name: "mill", Version: "<2"}}
			Expect(hub.Create(ctx, bakery)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(hub.Delete(ctx, bakery)).To(Succeed()) })
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "enable", "mill", "--cluster", cluster).err).NotTo(HaveOccurred())
			follow(ctx, cluster, "mill", "mill-1.0.0", nil)
			Expect(environment.EditStatus(ctx, hub, at(ctx, cluster, "mill"), func(i *kudo.Instance) {
				i.Status.Whole = &kudo.WholeVersion{OperatorVersion: i.Status.Execution.OperatorVersion, Version: "1.0.0"}
			})).To(Succeed())
			waits := func(text string) {
				GinkgoHelper()
				for _, arguments := range [][]string{{"upgrade", "mill", "--cluster", cluster}, {"set-version", "mill", "2.0.0"}} {
					shown := run(ctx, append(arguments, "--dry-run", "--as", reader)...)
					Expect(shown.err).NotTo(HaveOccurred())
					if text == "" {
						Expect(shown.out).NotTo(ContainSubstring("does not start yet"))
						continue
					}
					Expect(shown.out).To(ContainSubstring("the version does not start yet, and the one before keeps running: waiting to change to mill-2.0.0: " + text))
				}
			}
			waits("")
			Expect(hub.Create(ctx, &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "bakery"}})).To(Succeed())
			waits("bakery runs, ClusterManagementAddOn bakery requires mill <2, and mill-2.0.0 has version 2.0.0; change bakery to a version that accepts mill 2.0.0, or disable it")
		})

		It("show which config sets each parameter, and roll back", func(ctx SpecContext) {
			push(ctx, "pontoon", "1.0.0")
			push(ctx, "pontoon", "2.0.0")
			define(ctx, "pontoon", "pontoon-1.0.0")
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "enable", "pontoon", "--cluster", cluster, "-p", "SIZE=2").err).NotTo(HaveOccurred())
			follow(ctx, cluster, "pontoon", "pontoon-1.0.0", map[string]string{"SIZE": "2"})
			golden("values-addon", run(ctx, "values", "pontoon", "--cluster", cluster), cluster, "$CLUSTER")
			Expect(run(ctx, "update", "pontoon", "--cluster", cluster, "-p", "SIZE=4", "-p", "KEY=new").err).NotTo(HaveOccurred())
			file := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "wide", Labels: map[string]string{kudo.LabelConfiguration: "true"}}}
			file.Data = map[string]string{"EXTRA": "true"}
			Expect(hub.Create(ctx, file)).To(Succeed())
			addOn := &addonv1alpha1.ManagedClusterAddOn{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "pontoon"}, addOn)).To(Succeed())
			Expect(environment.Edit(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
				a.Spec.Configs = append(a.Spec.Configs, upstream.AddOnConfig{
					ConfigGroupResource: upstream.ConfigGroupResource{Resource: addonv1alpha1.ResourceConfigMaps},
					ConfigReferent:      upstream.ConfigReferent{Namespace: cluster, Name: file.Name},
				})
			})).To(Succeed())
			Expect(environment.Edit(ctx, hub, at(ctx, cluster, "pontoon"), func(i *kudo.Instance) { i.Spec.Parameters["EXTRA"] = "true" })).To(Succeed())
			golden("values-pending", run(ctx, "values", "pontoon", "--cluster", cluster), cluster, "$CLUSTER")

			Expect(run(ctx, "upgrade", "pontoon", "--cluster", cluster).err).NotTo(HaveOccurred())
			ofVersion := HaveField("Resource", addonv1alpha1.ResourceOperatorVersions)
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "pontoon"}, addOn)).To(Succeed())
			Expect(addOn.Spec.Configs).To(ContainElement(ofVersion))
			Expect(environment.Edit(ctx, hub, at(ctx, cluster, "pontoon"), func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "pontoon-2.0.0" })).To(Succeed())
			Expect(environment.EditStatus(ctx, hub, at(ctx, cluster, "pontoon"), func(i *kudo.Instance) {
				entry := kudo.HistoryEntry{
					Revision: 1, UID: "1", Plan: "deploy", Cause: kudo.CauseInstall, Outcome: kudo.HistoryComplete, OperatorVersion: i.Status.Execution.OperatorVersion,
				}
				i.Status.History = []kudo.HistoryEntry{entry}
			})).To(Succeed())
			settle(ctx, cluster, "pontoon", "deploy")
			Expect(run(ctx, "rollback", "pontoon", "--cluster", cluster).err).NotTo(HaveOccurred())
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "pontoon"}, addOn)).To(Succeed())
			Expect(addOn.Spec.Configs).NotTo(ContainElement(ofVersion), "the version is the default one")

			By("giving up a version that waits")
			Expect(environment.Edit(ctx, hub, at(ctx, cluster, "pontoon"), func(i *kudo.Instance) { i.Spec.OperatorVersion.Name = "pontoon-1.0.0" })).To(Succeed())
			Expect(run(ctx, "upgrade", "pontoon", "--cluster", cluster).err).NotTo(HaveOccurred())
			Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
				meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
					Type: addonv1alpha1.ConditionResolved, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonWaitingForDependencies,
					Message: "waiting to change to pontoon-2.0.0: raft runs, and excludes it",
				})
			})).To(Succeed())
			Expect(run(ctx, "rollback", "pontoon", "--cluster", cluster).err).NotTo(HaveOccurred())
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "pontoon"}, addOn)).To(Succeed())
			Expect(addOn.Spec.Configs).NotTo(ContainElement(ofVersion), "the version that runs is the default one")
		})

		It("set the default version, which clusters follow unless they have their own", func(ctx SpecContext) {
			push(ctx, "wharf", "1.0.0")
			push(ctx, "wharf", "2.0.0")
			push(ctx, "canal", "1.0.0")
			define(ctx, "wharf", "wharf-1.0.0")
			clusters := three(ctx)
			Expect(run(ctx, "enable", "wharf", "--cluster", strings.Join(clusters, ","), "-p", "SIZE=2", "-p", clusters[1]+"/SIZE=3").err).NotTo(HaveOccurred())
			follow(ctx, clusters[0], "wharf", "wharf-1.0.0", map[string]string{"SIZE": "2"})
			follow(ctx, clusters[1], "wharf", "wharf-1.0.0", map[string]string{"SIZE": "3"})
			config := &addonv1alpha1.AddOnDeploymentConfig{}
			Expect(hub.Get(ctx, client.ObjectKey{Namespace: clusters[1], Name: "wharf-parameters"}, config)).To(Succeed())
			Expect(config.Spec.CustomizedVariables).To(Equal([]upstream.CustomizedVariable{{Name: "SIZE", Value: "3"}}))
			Expect(run(ctx, "upgrade", "wharf", "--cluster", clusters[2]).err).NotTo(HaveOccurred())
			defaultOf := func() string {
				definition := &addonv1alpha1.ClusterManagementAddOn{}
				Expect(hub.Get(ctx, client.ObjectKey{Name: "wharf"}, definition)).To(Succeed())
				return change.DefaultVersion(definition).Name
			}

			shown := run(ctx, "set-version", "wharf", "2.0.0", "--dry-run", "--as", reader)
			golden("set-version-dry-run", shown, clusters[0], "$CLUSTER0", clusters[1], "$CLUSTER1", clusters[2], "$CLUSTER2")
			data := run(ctx, "set-version", "wharf", "2.0.0", "--dry-run", "-o", "jsonpath={.from} {.to} {.following} {.keeping} {.changes[*].plans[*].plan}")
			Expect(data.out).To(Equal(`wharf-1.0.0 wharf-2.0.0 ["` + clusters[0] + `","` + clusters[1] + `"] [{"cluster":"` + clusters[2] +
				`","operatorVersion":"wharf-2.0.0"}] deploy`))
			Expect(run(ctx, "set-version", "wharf", "2.0.0").err).To(MatchError(`the version of add-on "wharf" was not changed on 2 clusters (` +
				clusters[0] + `, ` + clusters[1] + `): cannot prompt for confirmation without a terminal; use --yes`))
			Expect(run(ctx, "set-version", "wharf", "3.0.0", "--yes").err).To(MatchError(ContainSubstring(`add-on "wharf": `)))
			Expect(run(ctx, "set-version", "wharf", "canal-1.0.0", "--yes").err).To(HaveOccurred())
			Expect(run(ctx, "set-version", "warf", "2.0.0").err).To(MatchError(ContainSubstring("(did you mean wharf?)")))
			Expect(defaultOf()).To(Equal("wharf-1.0.0"))
			Expect(completions(ctx, "set-version", "wharf", "")).To(Equal([]string{"1.0.0", "2.0.0"}))
			Expect(completions(ctx, "upgrade", "wharf", "--cluster", clusters[0], "--version", "2")).To(Equal([]string{"2.0.0"}))
			Expect(completions(ctx, "enable", "wharf", "-p", "S")).To(Equal([]string{"SIZE="}))
			Expect(completions(ctx, "update", "wharf", "--cluster", clusters[0], "-p", clusters[0]+"/")).To(ConsistOf(
				clusters[0]+"/EXTRA=", clusters[0]+"/KEY=", clusters[0]+"/SIZE="))
			Expect(completions(ctx, "install", "wharf", "-p", "SIZE=")).To(BeEmpty())

			set := run(ctx, "set-version", "wharf", "wharf-2.0.0", "--yes")
			Expect(set.err).NotTo(HaveOccurred())
			Expect(set.out).To(HavePrefix("clustermanagementaddon.addon.open-cluster-management.io/wharf configured\n" +
				"add-on wharf: default version wharf-1.0.0 -> wharf-2.0.0\n  follow: 2 clusters ("))
			Expect(defaultOf()).To(Equal("wharf-2.0.0"))
			Expect(run(ctx, "set-version", "wharf", "2.0.0").out).To(Equal("clustermanagementaddon.addon.open-cluster-management.io/wharf unchanged\n"))
		})

		It("are waited for until addon-manager does not report the problem any more that they solve", func(ctx SpecContext) {
			push(ctx, "jetty", "1.0.0")
			define(ctx, "jetty", "jetty-1.0.0")
			cluster := newCluster(ctx, nil)
			Expect(run(ctx, "enable", "jetty", "--cluster", cluster, "-p", "SIZE=2").err).NotTo(HaveOccurred())
			addOn := follow(ctx, cluster, "jetty", "jetty-1.0.0", map[string]string{"SIZE": "2"})
			resolved := func(status metav1.ConditionStatus, reason, message string) {
				GinkgoHelper()
				Expect(environment.EditStatus(ctx, hub, addOn, func(a *addonv1alpha1.ManagedClusterAddOn) {
					meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{
						Type: addonv1alpha1.ConditionResolved, Status: status, Reason: reason, Message: message, ObservedGeneration: a.Generation,
					})
				})).To(Succeed())
			}
			resolved(metav1.ConditionFalse, kudo.ReasonParametersInvalid, `parameter "SIZE": value "x": must be an integer, such as 3`)
			done := begin(ctx, "update", "jetty", "--cluster", cluster, "-p", "SIZE=4", "--wait")
			Eventually(func() string {
				config := &addonv1alpha1.AddOnDeploymentConfig{}
				Expect(hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "jetty-parameters"}, config)).To(Succeed())
				return config.Spec.CustomizedVariables[0].Value
			}).Should(Equal("4"))
			Expect(environment.Edit(ctx, hub, at(ctx, cluster, "jetty"), func(i *kudo.Instance) { i.Spec.Parameters["SIZE"] = "4" })).To(Succeed())
			settle(ctx, cluster, "jetty", "resize")
			Consistently(done, "2s").ShouldNot(Receive())
			Expect(run(ctx, "why", "jetty", "--cluster", cluster).out).To(ContainSubstring("is blocked"))

			resolved(metav1.ConditionTrue, kudo.ReasonResolved, "")
			var updated result
			Eventually(done).Should(Receive(&updated))
			Expect(updated.err).NotTo(HaveOccurred())
			Expect(run(ctx, "why", "jetty", "--cluster", cluster).out).NotTo(ContainSubstring("blocked"))
		})

		It("are refused before its operator has a ClusterManagementAddOn, which enable says", func(ctx SpecContext) {
			push(ctx, "quay", "1.0.0")
			Expect(run(ctx, "enable", "quay", "--cluster", newCluster(ctx, nil)).err).To(MatchError(And(
				HavePrefix(`ClusterManagementAddOn "quay" not found`), HaveSuffix(`; operator "quay" is pushed, but is no add-on: `+
					`create one ('kubectl addon create quay --package quay'), or install it without one ('kubectl addon install quay')`))))
		})

		It("are refused if a Placement or a parent determines the Instance", func(ctx SpecContext) {
			push(ctx, "pier", "1.0.0")
			push(ctx, "pier", "2.0.0")
			rolled := upstream.AddOnConfig{
				ConfigGroupResource: upstream.ConfigGroupResource{Group: addonv1alpha1.GroupKudo, Resource: addonv1alpha1.ResourceOperatorVersions},
				ConfigReferent:      upstream.ConfigReferent{Namespace: kudo.DefaultPackagesNamespace, Name: "pier-1.0.0"},
			}
			define(ctx, "pier", "pier-1.0.0", upstream.PlacementStrategy{
				PlacementRef: upstream.PlacementRef{Namespace: "default", Name: "global"}, Configs: []upstream.AddOnConfig{rolled},
			})
			cluster := newCluster(ctx, nil)
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "pier"}}
			Expect(hub.Create(ctx, addOn)).To(Succeed())
			addOn.Status.ConfigReferences = []upstream.ConfigReference{{
				ConfigGroupResource: rolled.ConfigGroupResource, ConfigReferent: rolled.ConfigReferent, DesiredConfig: &upstream.ConfigSpecHash{ConfigReferent: rolled.ConfigReferent},
			}}
			meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue, Reason: "Configured"})
			Expect(hub.Status().Update(ctx, addOn)).To(Succeed())
			follow(ctx, cluster, "pier", "pier-1.0.0", nil)
			Expect(run(ctx, "upgrade", "pier", "--cluster", cluster).err).To(MatchError(ContainSubstring("takes its OperatorVersion from operatorversions " +
				kudo.DefaultPackagesNamespace + "/pier-1.0.0, which OCM applies to all clusters that Placement default/global selects")))
			foreseen := run(ctx, "what-if", "upgrade", "pier", "2.0.0", "--cluster", cluster, "--as", reader)
			Expect(foreseen.err).NotTo(HaveOccurred())
			Expect(foreseen.out).To(And(HavePrefix("Cluster "+cluster+": pier starts (pier-1.0.0 -> pier-2.0.0)\n  warning: "),
				ContainSubstring("which OCM applies to all clusters that Placement default/global selects; change that object")))
			shown := run(ctx, "update", "pier", "--cluster", cluster, "-p", "SIZE=3", "--dry-run", "--as", reader)
			Expect(shown.err).NotTo(HaveOccurred())
			Expect(shown.out).To(ContainSubstring("  plan resize runs: change of parameter SIZE\n"))

			child := &kudo.Instance{ObjectMeta: metav1.ObjectMeta{
				Namespace: cluster, Name: "pier.crane",
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(at(ctx, cluster, "pier"), kudo.GroupVersion.WithKind("Instance"))},
			}}
			child.Spec.OperatorVersion = corev1.ObjectReference{Namespace: kudo.DefaultPackagesNamespace, Name: "pier-1.0.0"}
			Expect(hub.Create(ctx, child)).To(Succeed())
			Expect(run(ctx, "update", "pier.crane", "--cluster", cluster, "-p", "SIZE=3").err).To(MatchError(
				`cluster ` + cluster + `: Instance "pier.crane" is a child of Instance "pier", which determines its version and parameters; change the parent instead`))
		})
	})
})
