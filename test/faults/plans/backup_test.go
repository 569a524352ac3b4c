package plans

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/test/integration/environment"
)

// backup is the life of three Instances on a hub that is restored from a backup of its etcd: one was updated after the backup, one was
// removed, and one was created. The removed one has lost its objects, so its plan is started manually.
func backup() scenario {
	deploy := func(names ...func(*run) string) func(context.Context, *run) error {
		return func(ctx context.Context, r *run) error {
			for _, name := range names {
				i := r.instance("link-1.0.0")
				i.Name = name(r)
				if err := r.hub.Create(ctx, i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	all := func(checks ...error) error { return errors.Join(checks...) }
	return scenario{
		name:    "backup",
		open:    []string{"save", "restore"},
		prepare: func(ctx context.Context, w *world) error { return w.push(ctx, branch("link", "1.0.0")) },
		actions: []action{
			{"deploy", deploy((*run).itself, (*run).older), func(ctx context.Context, r *run) error {
				return all(ready(ctx, r), r.readyAs(ctx, r.older()))
			}},
			{"save", func(_ context.Context, r *run) error { return r.hubServer.Backup(r.backupFolder()) }, ready},
			{"change", func(ctx context.Context, r *run) error {
				old := r.instance("")
				old.Name = r.older()
				return all(set("VALUE", "two")(ctx, r), r.hub.Delete(ctx, old), deploy((*run).newer)(ctx, r))
			}, func(ctx context.Context, r *run) error {
				return all(r.expectApplied(ctx, r.name, "two"), r.absent(ctx, r.older()), r.readyAs(ctx, r.newer()))
			}},
			{"restore", rollBack, func(ctx context.Context, r *run) error {
				return all(r.expectApplied(ctx, r.name, "one"), r.expectMissing(ctx, r.older()), r.expectOrphaned(ctx, r.newer()))
			}},
			{"again", func(ctx context.Context, r *run) error {
				request := kudo.PlanExecution{PlanName: "deploy", UID: r.request("deploy")}
				old := r.instance("")
				old.Name = r.older()
				return all(deploy((*run).newer)(ctx, r),
					environment.Edit(ctx, r.hub, old, func(i *kudo.Instance) { i.Spec.PlanExecution = request }))
			}, func(ctx context.Context, r *run) error {
				return all(r.readyAs(ctx, r.newer()), r.readyAs(ctx, r.older()))
			}},
			{"remove", func(ctx context.Context, r *run) error {
				for _, name := range []string{r.name, r.older(), r.newer()} {
					i := r.instance("")
					i.Name = name
					if err := client.IgnoreNotFound(r.hub.Delete(ctx, i)); err != nil { // a shortened run does not create all
						return err
					}
				}
				return nil
			}, func(ctx context.Context, r *run) error {
				return all(expectGone(ctx, r), r.absent(ctx, r.older()), r.absent(ctx, r.newer()))
			}},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster[:3],
	}
}

func (r *run) itself() string { return r.name }

// older returns the name of the Instance that only the backup has, and newer that of the Instance created after the backup.
func (r *run) older() string { return r.name + "-older" }
func (r *run) newer() string { return r.name + "-newer" }

// backupFolder returns the folder of the backup.
func (w *world) backupFolder() string { return filepath.Join(w.folder, "backup") }

// rollBack restores the hub. A program with a stale view of it sees the backup, because later resource versions do not exist any more.
func rollBack(ctx context.Context, r *run) error {
	if err := r.hubServer.Restore(r.backupFolder()); err != nil {
		return err
	}
	version, err := versionOf(ctx, r.hub)
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	r.begin["hub"] = version
	return err
}

// expectMissing returns an error unless the hub shows that objects of an Instance are missing.
func (r *run) expectMissing(ctx context.Context, name string) error {
	i := &kudo.Instance{}
	if err := r.hub.Get(ctx, client.ObjectKey{Namespace: cluster, Name: name}, i); err != nil {
		return err
	}
	condition := meta.FindStatusCondition(i.Status.Conditions, kudo.ConditionReady)
	if condition == nil || condition.Status != metav1.ConditionFalse || !strings.HasSuffix(condition.Message, "is missing") {
		return fmt.Errorf("Instance %s is not shown as missing: %+v", name, condition)
	}
	return nil
}

// expectApplied returns an error unless an Instance of package branch has applied the value, and is ready.
func (r *run) expectApplied(ctx context.Context, name, value string) error {
	config := &corev1.ConfigMap{}
	if err := r.managed.Get(ctx, client.ObjectKey{Namespace: r.name, Name: name + "-config"}, config); err != nil {
		return err
	}
	if config.Data["value"] != value {
		return fmt.Errorf("the value of %s is %q, want %q", name, config.Data["value"], value)
	}
	return r.readyAs(ctx, name)
}
