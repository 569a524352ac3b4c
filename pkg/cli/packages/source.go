package packages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/tandem-addons/tandem/pkg/pack"
)

// source is where a package is: a folder on disk, or in a tarball.
type source struct {
	// name as messages show it: a path or a URL, for a folder in a tarball followed by the way there.
	name string
	// archive holds the package; nil: it is on disk.
	archive fs.FS
	// folder of the package, on disk or in the archive.
	folder string
}

// key is the same for each way to write the same place.
func (s source) key() string {
	if s.archive != nil {
		return s.name
	}
	place, err := filepath.Abs(s.folder)
	if err != nil {
		return s.name
	}
	if real, err := filepath.EvalSymlinks(place); err == nil {
		return real
	}
	return place
}

// file is how messages show a file of the package.
func (s source) file(name string) string {
	if s.archive != nil {
		return s.name + "/" + name
	}
	return filepath.Join(s.name, filepath.FromSlash(name))
}

// load reads the package. It fails where there is none; what is wrong with one are findings.
func (s source) load() (*pack.Package, error) {
	if s.archive != nil {
		files, err := fs.Sub(s.archive, s.folder)
		if err != nil {
			return nil, fmt.Errorf("opening package: %w", err)
		}
		p, _ := pack.Load(files)
		return p, nil
	}
	root, err := os.OpenRoot(s.folder) // symbolic links cannot lead out of it
	if err != nil {
		return nil, fmt.Errorf("opening package: %w", err)
	}
	defer root.Close()
	if inner := operatorFolders(root.FS()); len(inner) == 1 && inner[0] == "operator" {
		return nil, fmt.Errorf("%s holds no operator.yaml, but %s does: name that", s.name, filepath.Join(s.name, inner[0]))
	}
	p, _ := pack.Load(root.FS())
	return p, nil
}

// operatorFolders are the folders that hold a package where there is none: repositories of KUDO operators keep it in the folder
// operator, and tar makes tarballs with a folder around it.
func operatorFolders(files fs.FS) []string {
	if _, err := fs.Stat(files, "operator.yaml"); err == nil {
		return nil
	}
	found, err := fs.Glob(files, "*/operator.yaml")
	if err != nil {
		return nil
	}
	for i := range found {
		found[i] = path.Dir(found[i])
	}
	return found
}

// openSource finds the package that a command names: a folder, a tarball, or the URL of one.
func (l *loader) openSource(ctx context.Context, name string) (source, error) {
	if isURL(name) {
		return l.openURL(ctx, name)
	}
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return source{name: name, folder: name}, nil // opening it says what is wrong
	}
	if !isTarball(name) {
		return source{}, fmt.Errorf("%s is neither a folder nor a tarball (.tgz): name the one that holds operator.yaml", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return source{}, fmt.Errorf("opening package: %w", err)
	}
	defer file.Close()
	return l.archived(name, file)
}

// openURL is the package in the tarball at a URL. Where that ends in #sha256=DIGITS, the tarball has to have that digest.
func (l *loader) openURL(ctx context.Context, name string) (source, error) {
	address, fragment, pinned := strings.Cut(name, "#")
	digest, isDigest := strings.CutPrefix(fragment, "sha256=")
	if pinned && (!isDigest || len(digest) != hex.EncodedLen(sha256.Size)) {
		return source{}, fmt.Errorf("%s: want nothing behind #, or sha256= and the %d digits of the tarball's SHA-256",
			shownURL(name), hex.EncodedLen(sha256.Size))
	}
	return l.download(ctx, address, digest)
}

// openFrom finds the package that a task of the one at from names by a path: relative to it, and where that is in a tarball, in the same.
func (l *loader) openFrom(ctx context.Context, from source, name string) (source, error) {
	if from.archive == nil {
		if !filepath.IsAbs(name) {
			name = filepath.Join(from.folder, filepath.FromSlash(name))
		}
		return l.openSource(ctx, name)
	}
	inside := path.Join(from.folder, name)
	if !fs.ValidPath(inside) || path.IsAbs(name) {
		return source{}, fmt.Errorf("%q leads out of the tarball: put the package into it, or name it by its URL or its operator", name)
	}
	shown := strings.TrimSuffix(from.name, "/"+from.folder) + "/" + inside
	info, err := fs.Stat(from.archive, inside)
	switch {
	case err != nil:
		return source{}, fmt.Errorf("the tarball holds no %q", inside)
	case info.IsDir():
		return source{name: shown, archive: from.archive, folder: inside}, nil
	case !isTarball(inside):
		return source{}, fmt.Errorf("%s is neither a folder nor a tarball (.tgz)", shown)
	}
	file, err := from.archive.Open(inside)
	if err != nil {
		return source{}, fmt.Errorf("opening package: %w", err)
	}
	defer file.Close()
	return l.archived(shown, file)
}

// roomForArchives bounds what all tarballs together hold. One may hold others, each a thousand times its size.
const roomForArchives = 8 * pack.MaxArchive

// archived is the package in a tarball: at its top, or in its only folder that holds one.
func (l *loader) archived(name string, content io.Reader) (source, error) {
	files, size, err := pack.Archive(content)
	if err != nil {
		return source{}, fmt.Errorf("%s: %w", name, err)
	}
	if l.room -= size; l.room < 0 {
		return source{}, fmt.Errorf("%s: with it, the tarballs that are needed hold more than %d bytes", name, roomForArchives)
	}
	s := source{name: name, archive: files, folder: "."}
	if inner := operatorFolders(files); len(inner) == 1 {
		s.name, s.folder = name+"/"+inner[0], inner[0]
	}
	return s, nil
}

func isTarball(name string) bool {
	return strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz")
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// IsPath says whether a task names its package by a path. A name alone is one in a repository, also where a folder is called so (KUDO's
// rule).
func IsPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || isTarball(name)
}

// downloadTime bounds one download; pack.MaxArchive bounds its size.
const downloadTime = time.Minute

// httpClient is a client that stays on the safe side of where it was sent.
func httpClient() *http.Client {
	return &http.Client{Timeout: downloadTime, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		switch {
		case len(before) >= 10:
			return errors.New("more than 10 redirects")
		case before[0].URL.Scheme == "https" && next.URL.Scheme != "https":
			return fmt.Errorf("redirected from https to %s", next.URL.Redacted())
		}
		return nil
	}}
}

// fetch is what a URL has to give. One of a file is as good as one of a server.
func (l *loader) fetch(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("downloading: %w", err)
	}
	// Some servers call a tarball a tar file in the encoding gzip, which Go would undo: it would not be what the digest is of.
	request.Header.Set("Accept-Encoding", "identity")
	body, err := l.open(request)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, pack.MaxArchive+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("downloading %s: %w", request.URL.Redacted(), err)
	case len(content) > pack.MaxArchive:
		return nil, fmt.Errorf("downloading %s: it has more than %d bytes", request.URL.Redacted(), pack.MaxArchive)
	}
	return content, nil
}

// open is the body of the answer to a request.
func (l *loader) open(request *http.Request) (io.ReadCloser, error) {
	if request.URL.Scheme == "file" {
		return os.Open(filepath.FromSlash(request.URL.Path))
	}
	response, err := l.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("downloading: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("downloading %s: the server answers %s", request.URL.Redacted(), response.Status)
	}
	return response.Body, nil
}

// shownURL is a URL without its password.
func shownURL(address string) string {
	if parsed, err := url.Parse(address); err == nil {
		return parsed.Redacted()
	}
	return address
}

// tarball is one to be had at an address, of that digest unless it is empty.
type tarball struct{ address, digest string }

// download is what came of one.
type download struct {
	source
	err error
}

// download is the package in the tarball at a URL, of that digest unless it is empty. Nothing is asked for twice, whatever came of it.
func (l *loader) download(ctx context.Context, address, digest string) (source, error) {
	wanted := tarball{address, digest}
	found, known := l.downloads[wanted]
	if !known {
		found.source, found.err = l.unpack(ctx, wanted)
		l.downloads[wanted] = found
	}
	return found.source, found.err
}

// unpack downloads a tarball.
func (l *loader) unpack(ctx context.Context, t tarball) (source, error) {
	content, err := l.fetch(ctx, t.address)
	if err != nil {
		return source{}, err
	}
	if sum := sha256.Sum256(content); t.digest != "" && !strings.EqualFold(hex.EncodeToString(sum[:]), t.digest) {
		return source{}, fmt.Errorf("%s has SHA-256 %x, and not %s as it should", shownURL(t.address), sum, t.digest)
	}
	return l.archived(shownURL(t.address), bytes.NewReader(content))
}
