package read

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/install"
	"github.com/tandem-addons/tandem/pkg/core/tree"
)

// Versions returns the versions of an operator in a namespace that are not being deleted. They belong to the cache and are read-only. The
// versions of children are in the namespace of their parent's version: 'package push' stores them together.
func Versions(ctx context.Context, c client.Reader, namespace, operator string) ([]kudo.OperatorVersion, error) {
	var found kudo.OperatorVersionList
	err := c.List(ctx, &found, client.InNamespace(namespace), client.MatchingFields{byOperator: operator}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the versions of operator %q in %q: %w", operator, namespace, err)
	}
	return FilterExisting(found.Items), nil
}

// FilterExisting returns the versions that are not being deleted.
func FilterExisting(versions []kudo.OperatorVersion) []kudo.OperatorVersion {
	var stay []kudo.OperatorVersion
	for _, version := range versions {
		if version.DeletionTimestamp.IsZero() {
			stay = append(stay, version)
		}
	}
	return stay
}

// treeOf returns the tree of the version and its child operators, or its problem. It reads the versions of the operators that tasks name,
// then those of their child operators, and so on.
func treeOf(ctx context.Context, c client.Reader, version *kudo.OperatorVersion) (*tree.Node, *tree.Error, error) {
	var candidates []kudo.OperatorVersion
	read := map[string]bool{}
	for operators := childKeys(version); len(operators) > 0; operators = operators[1:] {
		if read[operators[0]] {
			continue
		}
		read[operators[0]] = true
		versions, err := Versions(ctx, c, version.Namespace, operators[0])
		if err != nil {
			return nil, nil, err
		}
		for i := range versions {
			operators = append(operators, childKeys(&versions[i])...)
		}
		candidates = append(candidates, versions...)
	}
	node, err := tree.Resolve(version, candidates)
	var problem *tree.Error
	errors.As(err, &problem)
	return node, problem, nil
}

// InstancesRunning returns the Instances of a changed OperatorVersion, and those whose version has its operator as a descendant: another
// version may complete their trees, or close a cycle.
func InstancesRunning(ctx context.Context, c client.Reader, changed client.Object) ([]reconcile.Request, error) {
	version := changed.(*kudo.OperatorVersion)
	var requests []reconcile.Request
	names, err := withAncestors(ctx, c, version)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		found, err := InstanceRequests(ctx, c, client.MatchingFields{ByVersion: name.String()})
		if err != nil {
			return nil, err
		}
		requests = append(requests, found...)
	}
	return requests, nil
}

// withAncestors returns the names of the version and of all versions that have its operator as a direct or transitive child.
func withAncestors(ctx context.Context, c client.Reader, version *kudo.OperatorVersion) ([]types.NamespacedName, error) {
	names := []types.NamespacedName{client.ObjectKeyFromObject(version)}
	met := map[string]bool{version.Name: true}
	asked := map[string]bool{version.OperatorName(): true}
	for operators := []string{version.OperatorName()}; len(operators) > 0; operators = operators[1:] {
		var parents kudo.OperatorVersionList
		err := c.List(ctx, &parents, client.InNamespace(version.Namespace), client.MatchingFields{byChild: operators[0]},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the OperatorVersions with child operator %q: %w", operators[0], err)
		}
		for at := range parents.Items {
			parent := &parents.Items[at]
			if !met[parent.Name] {
				met[parent.Name] = true
				names = append(names, client.ObjectKeyFromObject(parent))
			}
			if operator := parent.OperatorName(); !asked[operator] {
				asked[operator] = true
				operators = append(operators, operator)
			}
		}
	}
	return names, nil
}

// Tree adds the tree of child operators to the state of an Instance.
func Tree(ctx context.Context, c client.Reader, state *install.Instance) (err error) {
	if state.Version != nil {
		state.Tree, state.TreeProblem, err = treeOf(ctx, c, state.Version)
	}
	return err
}
