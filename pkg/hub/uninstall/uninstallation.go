package uninstall

import (
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/manifests"
	addonv1alpha1 "github.com/tandem-addons/tandem/pkg/api/addon/v1alpha1"
	"github.com/tandem-addons/tandem/pkg/kube/apply"
)

type uninstallation struct {
	client      client.Client
	out         io.Writer
	concurrency int
	now         func() time.Time

	// instances are the existing Instances, and owners the uids of their owners.
	instances []string
	owners    sets.Set[types.UID]
	// versions are the API versions that remain in Tandem's definition of each kind; none if the hub has another definition.
	versions map[string]sets.Set[string]
}

// print prints progress to the user. Write errors are ignored.
func (u *uninstallation) print(format string, arguments ...any) {
	_, _ = fmt.Fprintf(u.out, format+"\n", arguments...)
}

// definitions returns Tandem's resource definitions.
func (u *uninstallation) definitions(ctx context.Context) ([]apiextensionsv1.CustomResourceDefinition, error) {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := u.client.List(ctx, &definitions, client.MatchingLabels{manifests.LabelPartOf: manifests.PartOf}); err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	return definitions.Items, nil
}

// pages returns all add-ons, page by page. A hub without the resource definition has none.
func (u *uninstallation) pages(ctx context.Context) iter.Seq2[[]addonv1alpha1.ManagedClusterAddOn, error] {
	return func(yield func([]addonv1alpha1.ManagedClusterAddOn, error) bool) {
		options := &client.ListOptions{Limit: releasePage}
		for {
			var page addonv1alpha1.ManagedClusterAddOnList
			err := u.client.List(ctx, &page, options)
			if meta.IsNoMatchError(err) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("listing ManagedClusterAddOns: %w", err))
				return
			}
			if options.Continue = page.Continue; !yield(page.Items, nil) || page.Continue == "" {
				return
			}
		}
	}
}

// isVerdict reports whether a condition is addon-manager's verdict on dependencies.
func isVerdict(condition metav1.Condition) bool {
	return condition.Type == addonv1alpha1.ConditionDegraded &&
		(condition.Reason == addonv1alpha1.ReasonDependencyNotSatisfied || condition.Reason == addonv1alpha1.ReasonRequiredDependencyNotSatisfied)
}

// withoutConversion returns operations that remove the versions that require conversion by a webhook; none if no webhook is configured.
// Setting served to false is not enough: with conversion None, managed fields of such a version break every later apply.
func withoutConversion(definition *apiextensionsv1.CustomResourceDefinition) []apply.Operation {
	conversion := definition.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter {
		return nil
	}
	none := apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	operations := []apply.Operation{{Op: "replace", Path: "/spec/conversion", Value: none}}
	for i, version := range slices.Backward(definition.Spec.Versions) {
		if path := fmt.Sprintf("/spec/versions/%d", i); !version.Storage {
			operations = append(operations,
				apply.Operation{Op: "test", Path: path + "/name", Value: version.Name},
				apply.Operation{Op: "remove", Path: path})
		}
	}
	return operations
}

// remainingVersions returns the API versions that a definition has without conversion by a webhook.
func remainingVersions(definition *apiextensionsv1.CustomResourceDefinition) sets.Set[string] {
	remaining := sets.New[string]()
	converted := len(withoutConversion(definition)) > 0
	for _, version := range definition.Spec.Versions {
		if version.Storage || !converted {
			remaining.Insert(definition.Spec.Group + "/" + version.Name)
		}
	}
	return remaining
}

// The page size of add-on reads, small enough that items are recent when they are processed. All pages are read again until nothing is left
// to release.
const (
	releasePage   = 100
	releasePasses = 5
)
