package image

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/text"
)

// maxName limits source and mirror, as the resource definition of Instances does.
const maxName = 255

// beginning matches the beginning of the name of an image, as the resource definition of Instances does.
var beginning = regexp.MustCompile(`^[-._:@a-zA-Z0-9\[\]]+(/[-._:@a-zA-Z0-9\[\]]+)*/?$`)

// Problem returns why an Instance cannot have an image registry; empty if it can.
func Problem(r kudo.ImageRegistry) string {
	if r.Mirror == "" {
		return "mirror is missing"
	}
	return cmp.Or(nameProblem("source", r.Source), nameProblem("mirror", r.Mirror))
}

// nameProblem returns why the value of a field is not the beginning of the name of an image; empty if it is, or if there is none.
func nameProblem(field, value string) string {
	switch {
	case len(value) > maxName:
		return fmt.Sprintf("%s %s has %d characters, more than %d", field, text.Quote(value), len(value), maxName)
	case value != "" && !beginning.MatchString(value):
		return fmt.Sprintf("%s %s is not the beginning of an image's name, such as registry.example.com:5000/path, without https://",
			field, text.Quote(value))
	default:
		return ""
	}
}

// maxGrowth limits how many bytes mirrors add to all objects of a task: a package decides how many images there are.
const maxGrowth = 1 << 20

// Override replaces the registries of images in the objects of one task. It is not safe for concurrent use.
type Override struct {
	registries []kudo.ImageRegistry
	room       int
}

// NewOverride returns an Override.
func NewOverride(registries []kudo.ImageRegistry) *Override {
	return &Override{registries: registries, room: maxGrowth}
}

// Apply changes the images that Of finds in an object. A field of a custom resource may hold something else than an image: an entry without a
// source does not change it.
func (o *Override) Apply(object *unstructured.Unstructured) error {
	if len(o.registries) == 0 {
		return nil
	}
	for _, f := range search(object).found {
		mirrored := mirrored(o.registries, f.Image, !f.named)
		if o.room -= max(0, len(mirrored)-len(f.Image)); o.room < 0 {
			return fmt.Errorf("the mirrors of image registries make the objects more than %d bytes larger: use shorter names of mirrors", maxGrowth)
		}
		f.in[f.key] = mirrored
	}
	return nil
}

// Mirrored returns the name of an image with its registry replaced, as OCM's addon-framework does it (OverrideImage): a source matches the
// beginning of the name, and the last one that changes the name applies. An empty source replaces everything before the last slash.
func Mirrored(registries []kudo.ImageRegistry, image string) string {
	return mirrored(registries, image, true)
}

// mirrored is Mirrored; without catchAll, entries without a source are ignored.
func mirrored(registries []kudo.ImageRegistry, image string, catchAll bool) string {
	changed := image
	for _, r := range registries {
		source, mirror := strings.TrimSuffix(r.Source, "/"), strings.TrimSuffix(r.Mirror, "/")
		rest, matches := strings.CutPrefix(image, source)
		switch {
		case mirror == "" || !matches:
			continue
		case source == "" && !catchAll:
			continue
		case source == "":
			rest = "/" + image[strings.LastIndex(image, "/")+1:]
		}
		if next := mirror + rest; next != image {
			changed = next
		}
	}
	return changed
}
