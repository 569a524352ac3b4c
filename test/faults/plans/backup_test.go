package plans

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

// backup is the life of three Instances on a hub that is restored from a backup of its etcd: one was updated after the backup, one was
// removed, and one was created.
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
			{"save", func(_ context.Context, r *run) error { return r.hubServer.Backup(r.saved()) }, ready},
			{"change", func(ctx context.Context, r *run) error {
				old := r.instance("")
				old.Name = r.older()
				return all(set("VALUE", "two")(ctx, r), r.hub.Delete(ctx, old), deploy((*run).newer)(ctx, r))
			}, func(ctx context.Context, r *run) error {
				return all(r.applied(ctx, r.name, "two"), r.absent(ctx, r.older()), r.readyAs(ctx, r.newer()))
			}},
			{"restore", rollBack, func(ctx context.Context, r *run) error {
				return all(r.applied(ctx, r.name, "one"), r.readyAs(ctx, r.older()), r.kept(ctx, r.newer()))
			}},
			{"again", deploy((*run).newer), func(ctx context.Context, r *run) error { return r.readyAs(ctx, r.newer()) }},
			{"remove", func(ctx context.Context, r *run) error {
				for _, name := range []string{r.name, r.older(), r.newer()} {
					i := r.instance("")
					i.Name = name
					if err := r.hub.Delete(ctx, i); err != nil {
						return err
					}
				}
				return nil
			}, func(ctx context.Context, r *run) error {
				return all(gone(ctx, r), r.absent(ctx, r.older()), r.absent(ctx, r.newer()))
			}},
		},
		onHub:     []kind{kudo.GroupVersion.WithKind("Instance")},
		onCluster: onCluster[:3],
	}
}

func (r *run) itself() string { return r.name }

// older and newer return the names of the Instances of which only the backup, or only the hub after it, has one.
func (r *run) older() string { return r.name + "-older" }
func (r *run) newer() string { return r.name + "-newer" }

// saved returns the folder of the backup.
func (w *world) saved() string { return filepath.Join(w.folder, "backup") }

// rollBack restores the hub. Programs with an outdated view of it see the backup, because later resource versions do not exist any more.
func rollBack(ctx context.Context, r *run) error {
	if err := r.hubServer.Restore(r.saved()); err != nil {
		return err
	}
	version, err := versionOf(ctx, r.hub)
	r.world.mutex.Lock()
	defer r.world.mutex.Unlock()
	r.begin["hub"] = version
	return err
}

// applied returns an error unless an Instance of package branch has applied the value, and is ready.
func (r *run) applied(ctx context.Context, name, value string) error {
	config := &corev1.ConfigMap{}
	if err := r.managed.Get(ctx, client.ObjectKey{Namespace: r.name, Name: name + "-config"}, config); err != nil {
		return err
	}
	if config.Data["value"] != value {
		return fmt.Errorf("the value of %s is %q, want %q", name, config.Data["value"], value)
	}
	return r.readyAs(ctx, name)
}
