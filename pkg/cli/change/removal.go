package change

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/change"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/text"
)

// removal deletes the found objects on the hub.
type removal struct {
	hub     hubclient.Hub
	streams genericiooptions.IOStreams
	found   []installed
	// detached holds the clusters from which nothing is removed. released is set if the user wants objects to stay.
	detached sets.Set[string]
	released bool
	// forced is set if the objects are deleted although dependents protect them.
	forced bool
}

// run deletes the objects and, if requested, waits for their removal. It returns an error if objects stay on detached clusters.
func (r removal) run(ctx context.Context, wait terminal.WaitFlags) error {
	var going []installed
	var problems []error
	for _, i := range r.found {
		if err := r.remove(ctx, i); err != nil {
			problems = append(problems, err)
			continue
		}
		going = append(going, i)
		if !wait.Wait {
			problems = append(problems, r.print(i, "is being deleted"))
		}
	}
	if !wait.Wait || len(going) == 0 {
		return errors.Join(problems...)
	}
	w := goneWait{hub: r.hub, progress: r.hub.Progress(r.streams.ErrOut), going: going}
	problems = append(problems, w.await(ctx, r.hub, wait.Timeout))
	if ctx.Err() != nil {
		return errors.Join(problems...)
	}
	detached, err := read.DetachedClusters(ctx, r.hub, clustersOf(going)) // meanwhile
	r.detached, problems = r.detached.Union(detached), append(problems, err)
	for _, i := range going {
		if !slices.ContainsFunc(w.going, func(left installed) bool { return left.ObjectKey == i.ObjectKey }) {
			problems = append(problems, r.print(i, "deleted"))
		}
	}
	return errors.Join(problems...)
}

// print prints the result for one cluster. It returns an error if objects stay there although the user does not want that.
func (r removal) print(i installed, did string) error {
	stay := i.objects()
	if !r.detached.Has(i.Namespace) || r.released || len(stay) == 0 {
		return printers.WriteEscaped(r.streams.Out, fmt.Sprintf("%s %s from %s\n", i, did, i.Namespace))
	}
	err := printers.WriteEscaped(r.streams.Out, fmt.Sprintf("%s %s from the hub. Objects that are not removed yet stay on cluster %s:\n%s",
		i, did, text.Word(i.Namespace), objectLines(stay)))
	return errors.Join(err, fmt.Errorf("%s stay on cluster %s, because it is detached; "+
		"to remove them, attach the cluster again and re-create the Instance, or delete them there", objectCount(len(stay), i), text.Word(i.Namespace)))
}

// remove deletes the add-on, so that addon-manager deletes its Instance, or else the Instance.
func (r removal) remove(ctx context.Context, found installed) error {
	var object client.Object = found.Instance
	if found.AddOn != nil {
		object = found.AddOn
	}
	var options []client.DeleteOption
	if r.forced {
		options = append(options, change.ForceDeletion)
	}
	if err := change.Delete(ctx, r.hub, object, options...); err != nil {
		return fmt.Errorf("deleting %s: %w", found, err)
	}
	return nil
}

// losses states what the removal of the found objects deletes besides them, and what it keeps. Nothing is removed from detached clusters.
func losses(ctx context.Context, c client.Reader, found []installed, detached sets.Set[string]) ([]string, error) {
	going := slices.DeleteFunc(slices.Clone(found), func(i installed) bool { return detached.Has(i.Namespace) })
	if len(going) == 0 {
		return nil, nil
	}
	instances := map[string][]kudo.Instance{}
	for _, namespace := range read.NamespacesOf(clustersOf(going)) {
		var list kudo.InstanceList
		switch err := c.List(ctx, &list, client.InNamespace(namespace)); {
		case meta.IsNoMatchError(err): // no add-on is run by plans
			return nil, nil
		case apierrors.IsForbidden(err):
			return []string{"it is unknown what else is deleted: " + read.ListingProblem("Instances", namespace, err).Error()}, nil
		case err != nil:
			return nil, read.ListingProblem("Instances", namespace, err)
		}
		for _, instance := range list.Items {
			instances[instance.Namespace] = append(instances[instance.Namespace], instance)
		}
	}
	return lossTexts(going, instances), nil
}
