package chart

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/wrap"
)

// Check returns what a chart is. A chart that cannot be loaded, or whose Chart.yaml is invalid, is an error.
func Check(ctx context.Context, archive []byte) (Identity, error) {
	return inspect[Identity](ctx, "check", Input{Archive: archive})
}

// Describe returns what a package around a chart needs to know of it. A chart that cannot be loaded, or that no package can deploy, is an error.
func Describe(ctx context.Context, archive []byte) (wrap.Chart, error) {
	return inspect[wrap.Chart](ctx, "describe", Input{Archive: archive})
}

// Missing returns the dependencies in Chart.yaml of a packed folder that are not in its folder charts: in the versions of Chart.lock, or without it in those
// of Chart.yaml, which must be exact then.
func Missing(ctx context.Context, archive []byte) ([]catalog.Reference, error) {
	if len(metadataOf(archive).Dependencies) == 0 {
		return nil, nil
	}
	return inspect[[]catalog.Reference](ctx, "missing", Input{Archive: archive})
}

// Violations returns the values of a chart that do not conform to its schema, or to that of a subchart. values is the YAML of those that override the
// chart's. It reaches no cluster, and executes no template.
func Violations(ctx context.Context, archive, values []byte) ([]Violation, error) {
	return inspect[[]Violation](ctx, "violations", Input{Archive: archive, Values: values})
}

// inspect does what one of the inspections does in a child process with the limits of a rendering.
func inspect[T any](ctx context.Context, what string, in Input) (result T, err error) {
	renderer, err := NewRenderer()
	if err != nil {
		return result, err
	}
	said, err := renderer.run(ctx, request{Input: in, Inspection: what}, nil)
	if err != nil {
		return result, err
	}
	if said.Error != "" {
		return result, &Error{Message: said.Error}
	}
	if err := json.Unmarshal(said.Result, &result); err != nil {
		return result, fmt.Errorf("reading what the process has found in the chart: %w", err)
	}
	return result, nil
}
