package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/chart"
	core "github.com/tandem-addons/tandem/pkg/core/release"
)

// variants are values of the chart, with the number of images that each runs, hooks and the image of the delivered agent included.
var variants = []struct {
	values string
	images int
}{
	{"ui: {enabled: true}", 3},
	{"ocm: {enabled: true}", 3},
	{"{hub: {enabled: false}, agent: {enabled: true}}", 1},
}

// checkChart renders the chart, whose pods have to run the images of the release.
func checkChart(ctx context.Context, p published) error {
	name := "tandem-" + strings.TrimPrefix(p.version, "v") + ".tgz"
	archive := p.files[name]
	if archive == nil {
		return fmt.Errorf("%s is missing", name)
	}
	if version := chart.VersionOf(archive); "v"+version != p.version {
		return fmt.Errorf("%s has version %q", name, version)
	}
	renderer, err := chart.NewRenderer()
	if err != nil {
		return err
	}
	var problems []error
	for _, variant := range variants {
		rendered, err := renderer.Render(ctx, chart.Input{
			Archive: archive, Values: []byte(variant.values), Release: chart.Release{Name: "tandem", Namespace: "tandem-system", Revision: 1},
			Capabilities: chart.Capabilities{KubeVersion: "v1.37.0"},
		}, func(context.Context, string, string, string, string) (map[string]any, error) { return nil, nil })
		if err != nil {
			return fmt.Errorf("rendering it with %s: %w", variant.values, err)
		}
		if err := p.checkRendered(rendered, variant.images); err != nil {
			problems = append(problems, fmt.Errorf("with %s: %w", variant.values, err))
		}
	}
	return errors.Join(problems...)
}

// checkRendered compares the images of all objects and hooks with those of the release.
func (p published) checkRendered(rendered *core.Rendering, want int) error {
	content, err := json.Marshal([]any{rendered.Objects, rendered.Hooks})
	if err != nil {
		return err
	}
	var objects any
	if err := json.Unmarshal(content, &objects); err != nil {
		return err
	}
	images := imagesIn(objects)
	for _, image := range images {
		name, tag := image[strings.LastIndex(image, "/")+1:], ""
		if name, tag, _ = strings.Cut(name, ":"); !slices.Contains(pods, name) || tag != p.version {
			return fmt.Errorf("%s is not an image of the release", image)
		}
	}
	if len(images) != want {
		return fmt.Errorf("%d images run, not %d: %s", len(images), want, strings.Join(images, ", "))
	}
	return nil
}

// imagesIn returns the images of all containers, and those in variables Image of an AddOnDeploymentConfig.
func imagesIn(value any) (images []string) {
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			images = append(images, imagesIn(element)...)
		}
	case map[string]any:
		for _, list := range []string{"containers", "initContainers"} {
			images = append(images, textsIn(value[list], "image", nil)...)
		}
		images = append(images, textsIn(value["customizedVariables"], "value", map[string]string{"name": "Image"})...)
		for _, element := range value {
			images = append(images, imagesIn(element)...)
		}
	}
	return images
}

// textsIn returns the texts of a field in the elements of a list that have these other fields.
func textsIn(list any, field string, with map[string]string) (texts []string) {
	elements, _ := list.([]any)
	for _, element := range elements {
		fields, _ := element.(map[string]any)
		matches := true
		for name, want := range with {
			matches = matches && fields[name] == want
		}
		if text, is := fields[field].(string); is && matches {
			texts = append(texts, text)
		}
	}
	return texts
}
