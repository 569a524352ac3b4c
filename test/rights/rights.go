// Package rights finds out what somebody may do on a cluster, by asking for everything: with his own credentials, every verb on every
// resource that the API server serves, in every namespace, by the names of what is there and others. It changes nothing, for all
// that would is a dry run.
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

// sideBySide is how many requests are under way at once.
const sideBySide = 16

// anything is a name that nothing has: who may do something by that name may do it by any.
const anything = "no-such-name"

// Right is what somebody may do with a resource (RESOURCE.GROUP/SUBRESOURCE) in a namespace, or beyond namespaces if that is empty; with
// the object of that name alone, if it is one.
type Right struct{ Resource, Namespace, Name, Verb string }

// Of are the rights of whom subject stands for, in order. admin reads what there is. More names than those of what is there are tried.
func Of(ctx context.Context, admin, subject *rest.Config, names ...string) ([]Right, error) {
	requests, err := everything(ctx, admin, append(names, anything))
	if err != nil {
		return nil, fmt.Errorf("finding out what there is on the cluster: %w", err)
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
			allowed, err := r.allowed(ctx, by, subject.Host)
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

// inOrder sorts the rights, and drops those by a name that are there by any.
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

// Table has a row for each resource, as Markdown: `| RESOURCE | NAMESPACE | NAME | VERBS |`.
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

// heading is that of the table of an agent's rights in the manual.
const heading = "| resource on the hub | namespace | name | verbs |\n|---|---|---|---|\n"

// Documented are the rows that the manual, a file, has of an agent's rights on the hub, for that cluster.
func Documented(manual, cluster string) ([]string, error) {
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

// request asks for one right.
type request struct {
	Right
	method, path, query, body string
}

// allowed asks. What is not forbidden is allowed, whatever else is wrong with it.
func (r request) allowed(ctx context.Context, by *http.Client, host string) (bool, error) {
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
		_, err = io.Copy(io.Discard, answer.Body) // so that the connection serves the next one
		return false, err
	case http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false, fmt.Errorf("asking to %s %s: %s", r.Verb, r.path, answer.Status)
	}
	return true, nil
}

// everything is all that may be asked for.
func everything(ctx context.Context, admin *rest.Config, names []string) ([]request, error) {
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
			requests = append(requests, s.requests(namespace.Name, append(there[namespace.Name], names...))...)
		}
	}
	return requests, nil
}

// resource is one that the API server serves, or a subresource.
type resource struct {
	metav1.APIResource
	schema.GroupVersion
	// of is the resource that a subresource belongs to; itself otherwise.
	of string
	// kind is that of its objects.
	kind string
}

// resources are all that are served, in one version each, for rights know no versions.
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

// objects are the names of those that are there, by namespace.
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

// methods are those of HTTP, by verb.
var methods = map[string]string{
	"get": http.MethodGet, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete,
	"list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "deletecollection": http.MethodDelete,
}

// requests are those about the resource in a namespace. Beyond namespaces, one that has some can be listed and watched.
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

// request is one about all objects of the resource in a namespace.
func (r resource) request(verb, namespace string) request {
	asked := request{
		Right: Right{Resource: r.named(), Namespace: namespace, Verb: verb}, method: methods[verb], path: r.base(namespace),
	}
	if asked.method != http.MethodGet {
		asked.query, asked.body = "dryRun=All", "{}"
	}
	if verb == "watch" {
		asked.query = "watch=true&timeoutSeconds=1"
	}
	return asked
}

// base is the path of the resource in a namespace.
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

// named is RESOURCE.GROUP/SUBRESOURCE.
func (r resource) named() string {
	_, subresource, _ := strings.Cut(r.Name, "/")
	return strings.TrimSuffix(schema.GroupResource{Group: r.GroupVersion.Group, Resource: r.of}.String()+"/"+subresource, "/")
}
