package stacks

import (
	"context"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tandem-addons/tandem/pkg/cli/hubclient"
	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/console/read"
	"github.com/tandem-addons/tandem/pkg/core/stack"
	"github.com/tandem-addons/tandem/pkg/text"
)

// definitions reads all ClusterManagementAddOns.
func definitions(ctx context.Context, h hubclient.Hub) (stack.Definitions, error) {
	found, err := read.Definitions(ctx, h)
	if err != nil {
		return nil, err
	}
	all := stack.Definitions{}
	for name, definition := range found {
		all[name] = definition.Object
	}
	return all, nil
}

// objectName returns an object's name as kubectl prints it, also in the core group.
func objectName(group, kind, name string) string {
	if group == "" {
		return strings.ToLower(kind) + "/" + name
	}
	return text.ObjectName(group, kind, name)
}

// warn prints a warning once, even if the hub returns it too.
func warn(h hubclient.Hub, message string) {
	const warningCode = 299 // of HTTP
	h.Config.WarningHandler.HandleWarningHeader(warningCode, "", message)
}

// silent returns a client for the hub that prints no warnings.
func silent(h hubclient.Hub) (client.Client, error) {
	config := rest.CopyConfig(h.Config)
	config.WarningHandler = rest.NoWarnings{}
	c, err := client.New(config, client.Options{Scheme: h.Scheme(), Mapper: h.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	return c, nil
}

// isUndeclared reports whether the hub's ClusterManagementAddOns have no field for dependencies: its resource definitions are OCM's.
func isUndeclared(err error) bool {
	return err != nil && (strings.Contains(err.Error(), `unknown field "spec.dependencies"`) ||
		strings.Contains(err.Error(), ".spec.dependencies: field not declared in schema"))
}

// isAccepted reports whether the error of a dry run does not mean that the hub refuses the object: it may exist.
func isAccepted(err error) bool { return apierrors.IsAlreadyExists(err) }

// printObjects prints objects as they can be applied: in YAML one document for each of them, in other formats a list unless there is only one.
func printObjects(out io.Writer, format *terminal.Output, objects ...client.Object) error {
	if format.IsText() || format.Format == "yaml" {
		return printDocuments(out, objects)
	}
	if len(objects) == 1 {
		return format.Print(out, terminal.Shown{Data: objects[0]})
	}
	list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	items := make([]any, 0, len(objects))
	for _, object := range objects {
		items = append(items, object)
	}
	list.Object["items"] = items
	return format.Print(out, terminal.Shown{Data: list.Object})
}

func printDocuments(out io.Writer, objects []client.Object) error {
	for i, object := range objects {
		written, err := text.YAML(object)
		if err != nil {
			return fmt.Errorf("printing %s: %w", object.GetName(), err)
		}
		if i > 0 {
			written = append([]byte("---\n"), written...)
		}
		if _, err := out.Write(written); err != nil {
			return err
		}
	}
	return nil
}
