package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/tandem-addons/tandem/pkg/bundle"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/oci"
)

// host is a registry on this machine whose answers a spec can replace.
type host struct {
	name     string
	mu       sync.Mutex
	answer   func(w http.ResponseWriter, r *http.Request) bool
	requests []string
}

// newHost serves a registry until the spec ends.
func newHost() *host {
	return newHostOf(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
}

// newHostOf serves a handler until the spec ends.
func newHostOf(handler http.Handler) *host {
	h := &host{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		answer := h.answer
		if r.Header.Get("X-Test") == "" {
			h.requests = append(h.requests, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		}
		h.mu.Unlock()
		if answer == nil || r.Header.Get("X-Test") != "" || !answer(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	DeferCleanup(server.Close)
	h.name = strings.TrimPrefix(server.URL, "http://")
	return h
}

// answers replaces the answers of the registry to others than the spec, for which a function returns true; nil for none.
func (h *host) answers(answer func(w http.ResponseWriter, r *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

// received returns the requests that contain a text, of others than the spec, each as METHOD PATH AUTHORIZATION.
func (h *host) received(text string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.requests), func(request string) bool { return !strings.Contains(request, text) })
}

// marked marks the requests of a spec.
type marked struct{}

func (marked) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Test", "spec")
	return http.DefaultTransport.RoundTrip(r)
}

// client returns the client of a spec.
func (h *host) client() *oci.Client {
	GinkgoHelper()
	none := oci.NoCredentials()
	client, err := oci.New(oci.Options{Transport: marked{}, Credentials: &none})
	Expect(err).NotTo(HaveOccurred())
	return client
}

// operatorText is operator.yaml of a package with children.
func operatorText(name, version, description string, children ...string) string {
	tasks, steps := "", ""
	for i, child := range children {
		tasks += fmt.Sprintf("- {name: t%d, kind: KudoOperator, spec: {package: %q}}\n", i, child)
		steps += fmt.Sprintf("t%d, ", i)
	}
	return fmt.Sprintf("name: %s\noperatorVersion: %s\nkubernetesVersion: 1.30.0\ndescription: %s\ntasks:\n- {name: done, kind: Dummy, spec: {done: true}}\n%s"+
		"- {name: config, kind: Apply, spec: {resources: [config.yaml]}}\n"+
		"plans: {deploy: {phases: [{name: main, steps: [{name: main, tasks: [config, %sdone]}]}]}}\n", name, version, description, tasks, steps)
}

// pushed is a package in a registry.
type pushed struct {
	reference artifact.Reference
	digests   map[string]string
}

// writePackage writes a package, and returns its folder.
func writePackage(name, version, text string, children ...string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	for file, content := range map[string]string{
		"operator.yaml": operatorText(name, version, "a package", children...), "params.yaml": "parameters: []\n",
		"templates/config.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {text: %q}\n", name, text),
	} {
		Expect(os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600)).To(Succeed())
	}
	return dir
}

// push pushes a package with a tag, and returns it. text is in a template of it. Children are references.
func (h *host) push(ctx context.Context, name, version, tag, text string, children ...string) pushed {
	GinkgoHelper()
	none := oci.NoCredentials()
	loader := &bundle.Loader{Registry: func() (*oci.Client, error) { return oci.New(oci.Options{Transport: marked{}, Credentials: &none}) }}
	loaded, files, done, err := loader.LoadPortable(ctx, writePackage(name, version, text, children...))
	Expect(err).NotTo(HaveOccurred())
	defer done()
	tarball, _, err := loaded.Tarball(files)
	Expect(err).NotTo(HaveOccurred())
	p := pushed{reference: h.pushTarball(ctx, name, tag, tarball, loaded.Root().Pkg)}
	if len(children) == 0 {
		p.digests, err = loaded.ContentDigests()
		Expect(err).NotTo(HaveOccurred())
	}
	return p
}

// pushUnverified pushes a package whose child does not exist.
func (h *host) pushUnverified(ctx context.Context, name, version, child string) {
	GinkgoHelper()
	dir := writePackage(name, version, "a", child)
	loaded, problems := pack.Load(os.DirFS(dir))
	Expect(pack.Errors(problems)).To(BeEmpty())
	tarball := new(bytes.Buffer)
	zipped := gzip.NewWriter(tarball)
	into := tar.NewWriter(zipped)
	Expect(into.AddFS(os.DirFS(dir))).To(Succeed())
	Expect(into.Close()).To(Succeed())
	Expect(zipped.Close()).To(Succeed())
	h.pushTarball(ctx, name, version, tarball.Bytes(), loaded)
}

// pushTarball pushes the tarball of a package with a tag, even if that names another one.
func (h *host) pushTarball(ctx context.Context, name, tag string, tarball []byte, loaded *pack.Package) artifact.Reference {
	GinkgoHelper()
	made, err := artifact.New(tarball, loaded)
	Expect(err).NotTo(HaveOccurred())
	ref := artifact.Reference{Host: h.name, Repository: "packages/" + name, Tag: tag}
	_, err = h.client().Push(ctx, ref, made, true)
	Expect(err).NotTo(HaveOccurred())
	ref.Digest = made.Digest
	return ref
}

// keyPair is a private key, and its public one as text.
type keyPair struct {
	private signature.PrivateKey
	public  string
}

func newKeyPair() keyPair {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	Expect(err).NotTo(HaveOccurred())
	parsed, err := signature.ParsePrivateKey(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), nil)
	Expect(err).NotTo(HaveOccurred())
	return keyPair{private: parsed, public: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))}
}

// sign signs a package in its registry.
func (h *host) sign(ctx context.Context, p pushed, key keyPair) {
	GinkgoHelper()
	signed, err := key.private.Sign(signature.Statement{Place: p.reference.Host + "/" + p.reference.Repository, Digest: p.reference.Digest, Versions: p.digests})
	Expect(err).NotTo(HaveOccurred())
	Expect(h.client().Sign(ctx, p.reference, signed)).To(Succeed())
}
