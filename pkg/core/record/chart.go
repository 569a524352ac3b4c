package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/tandem-addons/tandem/pkg/text"
)

// maxFiles limits the files of a chart.
const maxFiles = 10_000

// maxName limits the name of a file, and of a chart with its version.
const maxName = 1024

// The files of a chart that a record stores as fields.
const (
	metadataFile = "Chart.yaml"
	lockFile     = "Chart.lock"
	valuesFile   = "values.yaml"
	schemaFile   = "values.schema.json"
)

// Chart is the chart of a release: Helm stores it without its subcharts, and without the place that it is from.
type Chart struct {
	Name, Version string
	// Dependencies are the names of those that the release uses.
	Dependencies []string
	// locked is true if Chart.lock lists dependencies: the release may use none of them.
	locked           bool
	metadata, values json.RawMessage
	schema           []byte
	templates, files []file
}

type file struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// check reads the metadata of a chart, and checks its parts.
func (c *Chart) check() error {
	var metadata struct {
		Name         string `json:"name"`
		Version      string `json:"version"`
		Dependencies []struct {
			Name string `json:"name"`
		} `json:"dependencies"`
	}
	if err := json.Unmarshal(orNull(c.metadata), &metadata); err != nil {
		return fmt.Errorf("the metadata of its chart is invalid: %w", shorten(err))
	}
	c.Name, c.Version = metadata.Name, metadata.Version
	if c.Name == "" || c.Version == "" || len(c.Name)+len(c.Version) > maxName {
		return errors.New("its chart has no name or no version, or a too long one")
	}
	for _, d := range metadata.Dependencies {
		c.Dependencies = append(c.Dependencies, d.Name)
	}
	if _, err := mapOf(c.values); err != nil {
		return fmt.Errorf("the values of its chart are %w", err)
	}
	return c.checkFiles()
}

func orNull(encoded json.RawMessage) json.RawMessage {
	if len(encoded) == 0 {
		return json.RawMessage("null")
	}
	return encoded
}

// checkFiles returns an error if Helm would not have stored a file under its name.
func (c *Chart) checkFiles() error {
	if count := len(c.templates) + len(c.files); count > maxFiles {
		return fmt.Errorf("its chart has %d files, more than %d", count, maxFiles)
	}
	known := map[string]bool{metadataFile: true, lockFile: true, valuesFile: true, schemaFile: true}
	for i, f := range slices.Concat(c.templates, c.files) {
		isTemplate := strings.HasPrefix(f.Name, "templates/")
		if known[f.Name] || !isFileName(f.Name) || isTemplate != (i < len(c.templates)) {
			return fmt.Errorf("its chart contains %s, which Helm does not store as a file, or twice", text.Quote(f.Name))
		}
		known[f.Name] = true
	}
	return nil
}

// isFileName reports whether a file of a chart may have that name: it is in the chart, and not in a subchart.
func isFileName(name string) bool {
	isInSubchart := strings.HasPrefix(name, "charts/") && path.Ext(name) != ".prov"
	isHidden := strings.ContainsFunc(name, func(r rune) bool { return !text.Visible(r) || r == '\\' })
	return fs.ValidPath(name) && name != "." && !isInSubchart && !isHidden && len(name) <= maxName
}

// Files returns the files of the chart by name. Comments in Chart.yaml and values.yaml are lost. Chart.lock is too, and what Helm 2 has for it: the chart has
// no dependencies.
func (c *Chart) Files() (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, f := range slices.Concat(c.templates, c.files) {
		files[f.Name] = f.Data
	}
	maps.DeleteFunc(files, func(name string, _ []byte) bool { return name == "requirements.yaml" || name == "requirements.lock" })
	if len(c.schema) > 0 {
		files[schemaFile] = c.schema
	}
	var err error
	if files[metadataFile], err = toYAML(c.metadata); err == nil {
		files[valuesFile], err = toYAML(c.values)
	}
	if err != nil {
		return nil, fmt.Errorf("restoring chart %s: %w", text.Quote(c.Name), err)
	}
	return files, nil
}
