package diagnose

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tandem-addons/tandem/pkg/cli/terminal"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Limits of an archive.
const (
	// objectsPerList is the number of objects of a kind that are read from one namespace, or from all.
	objectsPerList = 500
	// clustersInDetail is the number of clusters that are read in detail.
	clustersInDetail = 20
	// maxFileBytes is the size limit of a file in bytes, maxArchiveBytes the limit of all files before compression.
	maxFileBytes    = 4 << 20
	maxArchiveBytes = 64 << 20
	// logLines and logBytes limit the log of a container.
	logLines, logBytes = 5000, 2 << 20
)

const summaryFile = "summary.txt"

// diagnosis is the collected data, by file name.
type diagnosis struct {
	version string
	// namespace is the namespace of addon-manager on the hub and of addon-agent on managed clusters.
	namespace string
	objects   map[string][]*unstructured.Unstructured
	texts     map[string]string
	// sections are the sections of the summary.
	sections []string
	// unread lists what could not be read, and why; left lists what was omitted because of its size; absent lists kinds that a cluster does
	// not have.
	unread, left, absent []string
	redaction            *terminal.Redaction
}

func newDiagnosis(version string, namespace string) *diagnosis {
	return &diagnosis{
		version: version, namespace: namespace, redaction: terminal.NewRedaction(),
		objects: map[string][]*unstructured.Unstructured{}, texts: map[string]string{},
	}
}

func (d *diagnosis) print(heading, text string) {
	if text != "" {
		d.sections = append(d.sections, heading+"\n\n"+strings.TrimRight(text, "\n")+"\n")
	}
}

func (d *diagnosis) recordFailure(what string, err error) {
	d.unread = append(d.unread, fmt.Sprintf("%s: %v", what, err))
}

// gaps returns a short list of what the archive lacks.
func (d *diagnosis) gaps() []string {
	var gaps []string
	for _, gap := range []struct {
		lines []string
		text  string
	}{{d.unread, "could not be read"}, {d.left, "omitted because of the size limit"}} {
		if len(gap.lines) > 0 {
			gaps = append(gaps, fmt.Sprintf("%s: see %s", text.Plural(len(gap.lines), "item")+" "+gap.text, summaryFile))
		}
	}
	return gaps
}

// write packs all files: the summary first, then the others by name.
func (d *diagnosis) write(out io.Writer, now time.Time) error {
	files := d.files()
	packed := gzip.NewWriter(out)
	archive := tar.NewWriter(packed)
	names := append([]string{summaryFile}, slices.Sorted(maps.Keys(files))...)
	files[summaryFile] = []byte(text.Escape(d.summary(now, files)))
	for _, name := range names {
		header := &tar.Header{Name: "tandem-diagnosis/" + name, Mode: 0o600, Size: int64(len(files[name])), ModTime: now.Truncate(time.Second), Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
		if _, err := archive.Write(files[name]); err != nil {
			return fmt.Errorf("writing the archive: %w", err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return fmt.Errorf("writing the archive: %w", err)
	}
	return nil
}

// files returns the collected files, redacted and limited in size.
func (d *diagnosis) files() map[string][]byte {
	for _, name := range slices.Sorted(maps.Keys(d.objects)) {
		for _, object := range d.objects[name] {
			d.redaction.Object(object.Object)
		}
	}
	d.redaction.Seal()
	files, total := map[string][]byte{}, 0
	keep := func(name, content string) {
		if content == "" {
			return
		}
		if content = text.Escape(content); len(content) > maxFileBytes {
			content = text.Truncate(content, maxFileBytes)
			d.left = append(d.left, fmt.Sprintf("%s: all but the first %d bytes", name, maxFileBytes))
		}
		if total += len(content); total > maxArchiveBytes {
			d.left = append(d.left, fmt.Sprintf("%s: the archive already has %d bytes", name, maxArchiveBytes))
			return
		}
		files[name] = []byte(content)
	}
	for _, name := range slices.Sorted(maps.Keys(d.texts)) {
		keep(name, d.redaction.Text(d.texts[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(d.objects)) {
		keep(name, string(d.documents(name)))
	}
	return files
}

// documents returns the sorted objects of a file.
func (d *diagnosis) documents(name string) []byte {
	objects := d.objects[name]
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	var content bytes.Buffer
	for _, object := range objects {
		document, err := text.YAML(d.redaction.Texts(object.Object))
		if err != nil {
			d.recordFailure(fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName()), err)
			continue
		}
		content.WriteString("---\n")
		content.Write(document)
	}
	return content.Bytes()
}

// summary returns the first file of an archive.
func (d *diagnosis) summary(now time.Time, files map[string][]byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Diagnosis of Tandem, %s, by kubectl addon %s.\n\nPossible secrets are replaced by %s.\n", now.UTC().Format(time.RFC3339),
		d.version, terminal.Redacted)
	for _, section := range d.sections {
		b.WriteString("\n" + section)
	}
	for _, part := range []struct {
		heading string
		lines   []string
	}{{"# Could not be read", d.unread}, {"# Omitted", d.left}, {"# Not found", d.absent}} {
		if len(part.lines) > 0 {
			b.WriteString("\n" + part.heading + "\n\n" + terminal.Lines(part.lines))
		}
	}
	b.WriteString("\n# Files\n\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "%9d %s\n", len(files[name]), name)
	}
	return d.redaction.Text(b.String())
}
