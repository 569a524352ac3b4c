package content

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
)

// maxCached limits the files in memory, in bytes. Others are read again.
const maxCached = 32 << 20

// FileDelay is how long files that are no templates stay in memory after the last of them was used: charts are read by executions, and never at rest.
const FileDelay = time.Minute

// Files reads the files of OperatorVersions on a cluster, and keeps those that were used last. It is safe for concurrent use.
type Files struct {
	live client.Reader
	// fileDelay is FileDelay, and shorter in tests.
	fileDelay time.Duration

	mutex sync.Mutex
	// cached holds verified files, the last used one last. Files are named by their digests: equal ones are the same.
	cached []cachedFile
	bytes  int
	// drop drops the files that are no templates; nil until there is one.
	drop *time.Timer
}

// cachedFile is a file in memory. It is temporary if it is no template.
type cachedFile struct {
	digest, text string
	temporary    bool
}

// NewFiles returns Files that reads with live, and keeps files that are no templates that long.
func NewFiles(live client.Reader, fileDelay time.Duration) *Files {
	return &Files{live: live, fileDelay: fileDelay}
}

// File returns a file of an OperatorVersion by name, such as the archive of a chart. It returns a *content.Error if its content is incomplete or
// altered.
func (f *Files) File(ctx context.Context, version *kudo.OperatorVersion, name string) ([]byte, error) {
	file, exists := content.Find(&version.Spec, name)
	if !exists {
		return nil, fmt.Errorf("OperatorVersion %q has no file %q in its content: push its package again as another version", version.Name, name)
	}
	text, err := f.text(ctx, version, file, true)
	return []byte(text), err
}

// Fill returns an OperatorVersion with the templates that its content stores; nil for nil. It shares them with other results.
func (f *Files) Fill(ctx context.Context, version *kudo.OperatorVersion) (*kudo.OperatorVersion, error) {
	if version == nil || len(version.Spec.Content) == 0 {
		return version, nil
	}
	spec, err := content.Fill(&version.Spec, func(file kudo.ContentFile) (string, error) { return f.text(ctx, version, file, false) })
	if err != nil {
		return nil, fmt.Errorf("reading OperatorVersion %q: %w", version.Name, err)
	}
	filled := *version
	filled.Spec = *spec
	return &filled, nil
}

// text returns a file, which is verified when it is read from the cluster.
func (f *Files) text(ctx context.Context, version *kudo.OperatorVersion, file kudo.ContentFile, temporary bool) (string, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock() // also while it reads, so that a file is read once
	if temporary {
		f.dropLater()
	}
	if at := slices.IndexFunc(f.cached, func(c cachedFile) bool { return c.digest == file.Digest }); at >= 0 {
		found := f.cached[at]
		found.temporary = found.temporary && temporary
		f.cached = append(slices.Delete(f.cached, at, at+1), found)
		return found.text, nil
	}
	data, err := File(ctx, f.live, version, file)
	if err != nil {
		return "", err
	}
	read := cachedFile{digest: file.Digest, text: string(data), temporary: temporary}
	f.cached, f.bytes = append(f.cached, read), f.bytes+len(read.text)
	for f.bytes > maxCached {
		f.bytes -= len(f.cached[0].text)
		f.cached = slices.Delete(f.cached, 0, 1)
	}
	return read.text, nil
}

// dropLater drops the files that are no templates once none of them is used for a while.
func (f *Files) dropLater() {
	if f.drop != nil {
		f.drop.Reset(f.fileDelay)
		return
	}
	f.drop = time.AfterFunc(f.fileDelay, func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.cached = slices.DeleteFunc(f.cached, func(c cachedFile) bool { return c.temporary })
		f.bytes = 0
		for _, c := range f.cached {
			f.bytes += len(c.text)
		}
	})
}
