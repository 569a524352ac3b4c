// Package rights determines the permissions of a user on a cluster by trying all requests: with the user's credentials, every verb on every
// resource that the API server serves, in every namespace, by the names of existing objects and others. It changes nothing, because all
// writes are dry runs.
package rights

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sideBySide is the number of concurrent requests.
const sideBySide = 16

// anything is a name that no object has: a permission for this name is a permission for any name.
const anything = "no-such-name"

// Right is a permission for a resource (RESOURCE.GROUP/SUBRESOURCE) in a namespace, or cluster-scoped if that is empty; for the object of
// that name only, if set.
type Right struct{ Resource, Namespace, Name, Verb string }

// Of returns the sorted permissions of subject outside of namespaces and in all namespaces. admin reads the existing objects. names are
// additional names to try.
func Of(ctx context.Context, admin, subject *rest.Config, names ...string) ([]Right, error) {
	return within(ctx, admin, subject, func(string) bool { return true }, names...)
}

// Within returns the sorted permissions of subject outside of namespaces and in the given ones.
func Within(ctx context.Context, admin, subject *rest.Config, namespaces ...string) ([]Right, error) {
	return within(ctx, admin, subject, func(namespace string) bool { return slices.Contains(namespaces, namespace) })
}

func within(ctx context.Context, admin, subject *rest.Config, counts func(namespace string) bool, names ...string) ([]Right, error) {
	requests, err := allRequests(ctx, admin, counts, append(names, anything))
	if err != nil {
		return nil, fmt.Errorf("discovering the kinds of the cluster: %w", err)
	}
	by, err := rest.HTTPClientFor(subject)
	if err != nil {
		return nil, fmt.Errorf("connecting as the subject: %w", err)
	}
	var (
		mutex   sync.Mutex
		granted []Right
	)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for _, r := range requests {
		group.Go(func() error {
			allowed, err := r.isAllowed(ctx, by, subject.Host)
			if allowed {
				mutex.Lock()
				granted = append(granted, r.Right)
				mutex.Unlock()
			}
			return err
		})
	}
	err = group.Wait()
	return inOrder(granted), err
}

// inOrder sorts the permissions, and removes permissions by name that are covered by one for any name.
func inOrder(granted []Right) []Right {
	var rights []Right
	for _, r := range granted {
		byAny := r
		byAny.Name = anything
		if r.Name == anything {
			r.Name = ""
		} else if r.Name != "" && slices.Contains(granted, byAny) {
			continue
		}
		rights = append(rights, r)
	}
	slices.SortFunc(rights, func(a, b Right) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Verb, b.Verb))
	})
	return slices.Compact(rights)
}

// Table returns a row for each resource, as Markdown: `| RESOURCE | NAMESPACE | NAME | VERBS |`.
func Table(rights []Right) []string {
	var (
		rows  []string
		verbs []string
	)
	cell := func(text string) string {
		if text == "" {
			return " |"
		}
		return " `" + text + "` |"
	}
	for i, r := range rights {
		verbs = append(verbs, r.Verb)
		same := r
		if i+1 < len(rights) {
			same.Verb = rights[i+1].Verb
		}
		if i+1 < len(rights) && same == rights[i+1] {
			continue
		}
		rows = append(rows, "|"+cell(r.Resource)+cell(r.Namespace)+cell(r.Name)+" "+strings.Join(verbs, ", ")+" |")
		verbs = nil
	}
	return rows
}

// heading is the heading of the table of an agent's permissions in the manual.
const heading = "| resource on the hub | namespace | name | verbs |\n|---|---|---|---|\n"

// DocumentedRows returns the rows of an agent's permissions on the hub from the manual, a file, for that cluster.
func DocumentedRows(manual, cluster string) ([]string, error) {
	text, err := os.ReadFile(manual)
	if err != nil {
		return nil, fmt.Errorf("reading what agents may do: %w", err)
	}
	_, below, found := strings.Cut(string(text), heading)
	if !found {
		return nil, fmt.Errorf("%s has no table of what agents may do", manual)
	}
	rows, _, _ := strings.Cut(below, "\n\n")
	return strings.Split(strings.ReplaceAll(rows, "CLUSTER", cluster), "\n"), nil
}

// request tests one permission.
type request struct {
	Right
	method, path, query, body string
}

// isAllowed sends the request. Any response other than forbidden means that it is allowed.
func (r request) isAllowed(ctx context.Context, by *http.Client, host string) (bool, error) {
	ctx, cancel := context.WithCancel(ctx) // ends a watch
	defer cancel()
	asked, err := http.NewRequestWithContext(ctx, r.method, strings.TrimSuffix(host, "/")+r.path+"?"+r.query, strings.NewReader(r.body))
	if err != nil {
		return false, fmt.Errorf("asking to %s %s: %w", r.Verb, r.path, err)
	}
	asked.Header.Set("Content-Type", "application/json")
	if r.method == http.MethodPatch {
		asked.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := by.Do(asked)
	if err != nil {
		return false, fmt.Errorf("asking to %s %s: %w", r.Verb, r.path, err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusForbidden:
		_, err = io.Copy(io.Discard, answer.Body) // to reuse the connection
		return false, err
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false, fmt.Errorf("asking to %s %s: %s", r.Verb, r.path, answer.Status)
	}
	return true, nil
}

// allRequests returns all possible requests outside of namespaces and in those that count.
func allRequests(ctx context.Context, admin *rest.Config, counts func(namespace string) bool, names []string) ([]request, error) {
	c, err := client.New(admin, client.Options{})
	if err != nil {
		return nil, err
	}
	served, err := resources(admin)
	if err != nil {
		return nil, err
	}
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		return nil, err
	}
	var requests []request
	for _, s := range served {
		there, err := s.objects(ctx, c)
		if err != nil {
			return nil, err
		}
		requests = append(requests, s.requests("", append(there[""], names...))...)
		if !s.Namespaced {
			continue
		}
		for _, namespace := range namespaces.Items {
			if !counts(namespace.Name) {
				continue
			}
			requests = append(requests, s.requests(namespace.Name, append(there[namespace.Name], names...))...)
		}
	}
	return requests, nil
}

// resource is a resource that the API server serves, or a subresource.
type resource struct {
	metav1.APIResource
	schema.GroupVersion
	// of is the resource that a subresource belongs to; otherwise the resource itself.
	of string
	// kind is the kind of its objects.
	kind string
}

// resources returns all served resources, each in one version, because permissions do not depend on versions.
func resources(config *rest.Config) ([]resource, error) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	_, lists, err := discoverer.ServerGroupsAndResources()
	if err != nil {
		return nil, err
	}
	var served []resource
	known := map[schema.GroupResource]bool{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		kinds := map[string]string{}
		for _, r := range list.APIResources {
			kinds[r.Name] = r.Kind
		}
		for _, r := range list.APIResources {
			if of, _, _ := strings.Cut(r.Name, "/"); !known[version.WithResource(r.Name).GroupResource()] {
				known[version.WithResource(r.Name).GroupResource()] = true
				served = append(served, resource{APIResource: r, GroupVersion: version, of: of, kind: kinds[of]})
			}
		}
	}
	if len(served) == 0 {
		return nil, errors.New("the API server serves nothing")
	}
	return served, nil
}

// objects returns the names of existing objects by namespace.
func (r resource) objects(ctx context.Context, c client.Client) (map[string][]string, error) {
	there := map[string][]string{}
	if r.kind == "" || r.of == r.Name && !slices.Contains(r.Verbs, "list") {
		return there, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.GroupVersion.WithKind(r.kind + "List"))
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing %s: %w", r.of, err)
	}
	for _, object := range list.Items {
		there[object.Namespace] = append(there[object.Namespace], object.Name)
	}
	return there, nil
}

// methods are the HTTP methods by verb.
var methods = map[string]string{
	"get": http.MethodGet, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
	"list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "deletecollection": http.MethodDelete,
}

// requests returns the requests for the resource in a namespace. A namespaced resource can also be listed and watched across all
// namespaces.
func (r resource) requests(namespace string, names []string) []request {
	_, subresource, _ := strings.Cut(r.Name, "/")
	var requests []request
	for _, verb := range r.Verbs {
		if r.Namespaced && namespace == "" && verb != "list" && verb != "watch" {
			continue
		}
		asked := r.request(verb, namespace)
		if slices.Contains([]string{"list", "watch", "deletecollection"}, verb) || verb == "create" && subresource == "" {
			requests = append(requests, asked)
			continue
		}
		for _, name := range names {
			one := asked
			one.Name, one.path = name, strings.TrimSuffix(asked.path+"/"+name+"/"+subresource, "/")
			requests = append(requests, one)
		}
	}
	return requests
}

// request returns a request for all objects of the resource in a namespace.
func (r resource) request(verb, namespace string) request {
	asked := request{
		Right: Right{Resource: r.qualifiedName(), Namespace: namespace, Verb: verb}, method: methods[verb], path: r.base(namespace),
	}
	if asked.method != http.MethodGet {
		asked.query, asked.body = "dryRun=All", "{}"
	}
	if verb == "watch" {
		asked.query = "watch=true&timeoutSeconds=1"
	}
	return asked
}

// base returns the path of the resource in a namespace.
func (r resource) base(namespace string) string {
	base := "/apis/" + r.GroupVersion.String() + "/"
	if r.GroupVersion.Group == "" {
		base = "/api/" + r.GroupVersion.Version + "/"
	}
	if namespace != "" {
		base += "namespaces/" + namespace + "/"
	}
	return base + r.of
}

// qualifiedName returns RESOURCE.GROUP/SUBRESOURCE.
func (r resource) qualifiedName() string {
	_, subresource, _ := strings.Cut(r.Name, "/")
	return strings.TrimSuffix(schema.GroupResource{Group: r.GroupVersion.Group, Resource: r.of}.String()+"/"+subresource, "/")
}
