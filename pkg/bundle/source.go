package bundle

import (
	"bytes"
	"cmp"
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

	"github.com/tandem-addons/tandem/pkg/chart/registry"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/catalog"
	"github.com/tandem-addons/tandem/pkg/core/pack"
)

// source is the location of a package: a folder on disk or in a tarball.
type source struct {
	// Name is the name in messages: a path or a URL, and for a folder in a tarball the path inside it.
	Name string
	// Archive contains the package; nil if it is on disk.
	Archive fs.FS
	// folder is the package's folder, on disk or in the archive.
	folder string
	// digest is the SHA-256 of the downloaded tarball that contains it: a URL may lead to another one each time.
	digest string
	// secure is set if it was read over https, or has a digest in something that was: then it refers to nothing over plain http without one.
	secure bool
}

// key returns the canonical form of a location.
func (s source) key() string {
	if s.Archive != nil {
		return s.Name + "#" + s.digest
	}
	place, err := filepath.Abs(s.folder)
	if err != nil {
		return s.Name
	}
	if real, err := filepath.EvalSymlinks(place); err == nil {
		return real
	}
	return place
}

// file returns the name of a file of the package for messages.
func (s source) file(name string) string {
	if s.Archive != nil {
		return s.Name + "/" + name
	}
	return filepath.Join(s.Name, filepath.FromSlash(name))
}

// load reads the package. It returns an error if there is none; problems of the package are problems.
func (s source) load() (*pack.Package, error) {
	files, done, err := s.Open()
	if err != nil {
		return nil, err
	}
	defer done()
	if inner := operatorFolders(files); s.Archive == nil && len(inner) == 1 && inner[0] == "operator" {
		return nil, fmt.Errorf("%s contains no operator.yaml, but %s does: use that folder", s.Name, filepath.Join(s.Name, inner[0]))
	}
	p, _ := pack.Load(files)
	return p, nil
}

// Open opens the package's folder. The caller calls done in the end.
func (s source) Open() (files fs.FS, done func(), err error) {
	if s.Archive != nil {
		if files, err = fs.Sub(s.Archive, s.folder); err != nil {
			return nil, nil, fmt.Errorf("opening package: %w", err)
		}
		return files, func() {}, nil
	}
	root, err := os.OpenRoot(s.folder) // symbolic links cannot point outside of it
	if err != nil {
		return nil, nil, fmt.Errorf("opening package: %w", err)
	}
	return root.FS(), func() { _ = root.Close() }, nil
}

// operatorFolders returns subfolders that contain a package: repositories of KUDO operators keep it in the folder operator, and tar packs
// tarballs with an enclosing folder.
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

// OpenSource returns the location of a package given as a folder, a tarball, the URL of a tarball, or a reference to a registry.
func (l *Loader) OpenSource(ctx context.Context, name string) (source, error) {
	switch {
	case artifact.IsReference(name):
		return l.openReference(ctx, name)
	case IsURL(name):
		return l.openURL(ctx, name)
	}
	if info, err := os.Stat(name); err != nil || info.IsDir() {
		return source{Name: name, folder: name}, nil // opening it returns the error
	}
	if !IsTarball(name) {
		return source{}, fmt.Errorf("%s is neither a folder nor a tarball (.tgz): use the one that contains operator.yaml", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return source{}, fmt.Errorf("opening package: %w", err)
	}
	defer file.Close()
	return l.ReadArchive(name, file)
}

// failure is an error that is not a problem of a package, such as an unreachable hub. It stops loading.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// errPlain is the error of a plain http URL in a document that was read over https.
var errPlain = errors.New("the URL must use https, or, for a tarball, have a digest")

// openURL returns the package in the tarball at a URL. If the URL ends in #sha256=DIGITS, the tarball must have that digest.
func (l *Loader) openURL(ctx context.Context, name string) (source, error) {
	address, fragment, pinned := strings.Cut(name, "#")
	digest, isDigest := strings.CutPrefix(fragment, "sha256=")
	if pinned && (!isDigest || len(digest) != hex.EncodedLen(sha256.Size)) {
		return source{}, fmt.Errorf("%s: the fragment after # must be sha256= and the %d digits of the tarball's SHA-256",
			ShownURL(name), hex.EncodedLen(sha256.Size))
	}
	return l.download(ctx, address, digest)
}

// openReference returns the package at a reference to a registry.
func (l *Loader) openReference(ctx context.Context, name string) (source, error) {
	if _, err := artifact.Parse(name); err != nil {
		return source{}, err
	}
	return l.download(ctx, name, "")
}

// openLinked returns the package in the tarball at a URL to which the package in from refers.
func (l *Loader) openLinked(ctx context.Context, from source, name string) (source, error) {
	if address, _, pinned := strings.Cut(name, "#"); !pinned && from.secure && strings.HasPrefix(address, "http://") {
		return source{}, fmt.Errorf("%s refers to %s: %w", from.Name, ShownURL(address), errPlain)
	}
	at, err := l.openURL(ctx, name)
	at.secure = at.secure || from.secure
	return at, err
}

// openFrom returns the package that a task of the package at from refers to by a path, which is relative to that package; inside a tarball
// it stays inside.
func (l *Loader) openFrom(ctx context.Context, from source, name string) (source, error) {
	if from.Archive == nil {
		if !filepath.IsAbs(name) {
			name = filepath.Join(from.folder, filepath.FromSlash(name))
		}
		return l.OpenSource(ctx, name)
	}
	inside := path.Join(from.folder, name)
	if !fs.ValidPath(inside) || path.IsAbs(name) {
		return source{}, fmt.Errorf("%q is outside of the tarball: put the package into it, or refer to it by its URL or operator name", name)
	}
	shown := strings.TrimSuffix(from.Name, "/"+from.folder) + "/" + inside
	info, err := fs.Stat(from.Archive, inside)
	switch {
	case err != nil:
		return source{}, fmt.Errorf("the tarball does not contain %q", inside)
	case info.IsDir():
		return source{Name: shown, Archive: from.Archive, folder: inside, digest: from.digest, secure: from.secure}, nil
	case !IsTarball(inside):
		return source{}, fmt.Errorf("%s is neither a folder nor a tarball (.tgz)", shown)
	}
	file, err := from.Archive.Open(inside)
	if err != nil {
		return source{}, fmt.Errorf("opening package: %w", err)
	}
	defer file.Close()
	at, err := l.ReadArchive(shown, file)
	at.digest, at.secure = from.digest, from.secure
	return at, err
}

// roomForArchives limits the total content of all tarballs. Tarballs may be nested, and each may unpack to a thousand times its size.
const roomForArchives = 8 * pack.MaxArchive

// ReadArchive returns the package in a tarball: at its top, or in its only folder that contains one.
func (l *Loader) ReadArchive(name string, content io.Reader) (source, error) {
	files, size, err := pack.Archive(content)
	if err != nil {
		return source{}, fmt.Errorf("%s: %w", name, err)
	}
	if l.room -= size; l.room < 0 {
		return source{}, l.roomError(name)
	}
	s := source{Name: name, Archive: files, folder: "."}
	if inner := operatorFolders(files); len(inner) == 1 {
		s.Name, s.folder = name+"/"+inner[0], inner[0]
	}
	return s, nil
}

func (l *Loader) roomError(name string) error {
	return fmt.Errorf("%s: the required tarballs contain more than %d bytes in total", name, cmp.Or(l.Room, roomForArchives))
}

// IsTarball reports whether the name of a file ends like a tarball.
func IsTarball(name string) bool {
	return strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz")
}

// IsURL reports whether a name is a URL of http or https.
func IsURL(name string) bool {
	return strings.HasPrefix(name, "https://") || strings.HasPrefix(name, "http://")
}

// IsPath reports whether a task refers to its package by a path. A plain name is looked up in a repository, even if a folder has the same
// name (KUDO's rule).
func IsPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") || IsTarball(name)
}

// downloadTimeout limits the duration of a download; pack.MaxArchive limits its size.
const downloadTimeout = time.Minute

// httpClient returns a client that does not follow redirects from https to http.
func httpClient(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, Timeout: downloadTimeout, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		switch {
		case len(before) >= 10:
			return errors.New("more than 10 redirects")
		case before[0].URL.Scheme == "https" && next.URL.Scheme != "https":
			return fmt.Errorf("redirected from https to %s", next.URL.Redacted())
		}
		return nil
	}}
}

// fetch returns the content at a URL of a server or a file.
func (l *Loader) fetch(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("downloading: %w", err)
	}
	// Some servers send a tarball as a tar file with the encoding gzip, which Go would decode, so that the content would not match the
	// digest.
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
		return nil, fmt.Errorf("downloading %s: more than %d bytes", request.URL.Redacted(), pack.MaxArchive)
	}
	return content, nil
}

// open sends a request and returns the body of the response.
func (l *Loader) open(request *http.Request) (io.ReadCloser, error) {
	if request.URL.Scheme == "file" {
		return os.Open(filepath.FromSlash(request.URL.Path))
	}
	response, err := l.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("downloading: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("downloading %s: the server returned %s", request.URL.Redacted(), response.Status)
	}
	return response.Body, nil
}

// ShownURL returns a URL without its password.
func ShownURL(address string) string {
	if parsed, err := url.Parse(address); err == nil {
		return parsed.Redacted()
	}
	return address
}

// tarball is the address of a tarball and its digest, or an empty digest.
type tarball struct{ address, digest string }

// download is the result of a download.
type download struct {
	source
	err error
}

// download returns the package in the tarball at a URL. It verifies the digest unless that is empty. Each URL is requested once, even if
// the request fails.
func (l *Loader) download(ctx context.Context, address, digest string) (source, error) {
	wanted := tarball{address, digest}
	found, known := l.downloads[wanted]
	if !known {
		found.source, found.err = l.unpack(ctx, wanted)
		l.downloads[wanted] = found
	}
	return found.source, found.err
}

// unpack downloads and unpacks a tarball.
func (l *Loader) unpack(ctx context.Context, t tarball) (source, error) {
	if l.room < 0 {
		return source{}, l.roomError(ShownURL(t.address))
	}
	content, err := l.fetchTarball(ctx, t.address)
	if err != nil {
		return source{}, err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(content))
	if t.digest != "" && !strings.EqualFold(sum, t.digest) {
		return source{}, fmt.Errorf("%s has SHA-256 %s, expected %s", ShownURL(t.address), sum, t.digest)
	}
	at, err := l.ReadArchive(ShownURL(t.address), bytes.NewReader(content))
	at.digest, at.secure = sum, strings.HasPrefix(t.address, "https://") || artifact.IsReference(t.address)
	return at, err
}

// resolveMirror returns the reference from which a package is pulled: that of a mirror, if the user has set one.
func resolveMirror(address string) (artifact.Reference, error) {
	ref, err := artifact.Parse(address)
	if err != nil {
		return ref, err
	}
	mirrors, err := registry.Mirrors()
	if err != nil {
		return ref, err
	}
	at, err := artifact.Parse(catalog.MirrorOf(mirrors, ref.Place()))
	if err != nil {
		return ref, fmt.Errorf("the mirror of %s: %w", ref, err)
	}
	at.Tag, at.Digest = ref.Tag, ref.Digest
	return at, nil
}

// fetchTarball returns the tarball at a URL or in a registry.
func (l *Loader) fetchTarball(ctx context.Context, address string) ([]byte, error) {
	if !artifact.IsReference(address) {
		return l.fetch(ctx, address)
	}
	ref, err := resolveMirror(address)
	if err != nil {
		return nil, err
	}
	client, err := l.Registry()
	if err != nil {
		return nil, err
	}
	pulled, err := client.Pull(ctx, ref)
	if err != nil {
		return nil, err
	}
	l.Pulled[address] = pulled.Reference
	return pulled.Tarball, nil
}
