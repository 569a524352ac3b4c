package oci_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/pack"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/oci"
)

// serve serves a handler on loopback, and returns its host.
func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func newRegistry() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// newClient returns a client without credentials.
func newClient(t *testing.T, options oci.Options) *oci.Client {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	client, err := oci.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// reference parses a reference.
func reference(t *testing.T, format string, args ...any) artifact.Reference {
	t.Helper()
	ref, err := artifact.Parse(fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// newArtifact returns the artifact of a package.
func newArtifact(t *testing.T, tarball string) artifact.Artifact {
	t.Helper()
	p := &pack.Package{Name: "kafka"}
	p.Version.Version = "1.0.0"
	made, err := artifact.New([]byte(tarball), p)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestPushPullAndCopy(t *testing.T) {
	client, ctx := newClient(t, oci.Options{}), context.Background()
	host, mirror := serve(t, newRegistry()), serve(t, newRegistry())
	made := newArtifact(t, "a tarball")
	if again := newArtifact(t, "a tarball"); again.Digest != made.Digest {
		t.Error("the same package has another digest")
	}
	place := reference(t, "oci://%s/packages/kafka:1.0.0", host)
	for _, want := range []bool{true, false} {
		if pushed, err := client.Push(ctx, place, made, false); err != nil || pushed != want {
			t.Fatalf("got %t, %v", pushed, err)
		}
	}
	if _, err := client.Push(ctx, place, newArtifact(t, "another"), false); err == nil || !strings.Contains(err.Error(), "versions do not change") {
		t.Errorf("a version changes: %v", err)
	}
	pulled, err := client.Pull(ctx, reference(t, "oci://%s/packages/kafka", host)) // the highest version
	if err != nil || string(pulled.Tarball) != "a tarball" || pulled.Reference.Digest != made.Digest || pulled.Reference.Tag != "1.0.0" {
		t.Fatalf("got %v, %v", pulled, err)
	}
	signed := signature.Signature{Payload: []byte(`{"critical":{}}`), Signature: []byte("signature")}
	if err := client.Sign(ctx, pulled.Reference, signed); err != nil {
		t.Fatal(err)
	}
	target := reference(t, "oci://%s/packages/kafka", mirror)
	for range 2 {
		copied, signatures, err := client.CopySigned(ctx, pulled.Reference, target, false)
		if err != nil || copied.Digest != made.Digest || signatures != 1 {
			t.Fatalf("got %v, %d, %v", copied, signatures, err)
		}
	}
	found, err := client.Pull(ctx, reference(t, "oci://%s/packages/kafka:1.0.0@%s", mirror, made.Digest))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Signatures(ctx, found.Reference); err != nil || len(got) != 1 || string(got[0].Payload) != string(signed.Payload) {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestHostileRegistries checks that each answer of a hostile registry is an error that says what is wrong.
func TestHostileRegistries(t *testing.T) {
	made := newArtifact(t, "a tarball")
	elsewhere := serve(t, newRegistry())
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	// alter changes the answers to requests for a kind of content, manifests or blobs.
	alter := func(kind string, do func(w http.ResponseWriter, r *http.Request)) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, "/"+kind+"/") && r.Method == http.MethodGet {
					do(w, r)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	for sentence, test := range map[string]struct {
		alter func(http.Handler) http.Handler
		want  string
	}{
		"it hangs": {alter("manifests", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}), "did not complete the request in"},
		"it redirects to another server over http": {alter("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		}), "which is not https"},
		"it redirects without end": {alter("blobs", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}), "more than 10 redirects"},
		"it sends another tarball of the same size": {alter("blobs", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "b tarball")
		}), "sent a tarball that does not match sha256:"},
		"it sends a tarball of another size": {alter("blobs", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "a tarball and more")
		}), "mismatch Content-Length"},
		"it sends another manifest than its header says": {alter("manifests", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", artifact.ManifestMediaType)
			w.Header().Set("Docker-Content-Digest", made.Digest)
			_, _ = io.WriteString(w, strings.Replace(string(made.Manifest), "kafka", "KAFKA", 1))
		}), "sent a manifest that does not match"},
		"it sends an image": {alter("manifests", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", artifact.ManifestMediaType)
			_, _ = io.WriteString(w, `{"schemaVersion":2,"config":{"mediaType":"application/vnd.oci.image.config.v1+json"}}`)
		}), "has something else at this place"},
		"it says that the tarball is too large": {alter("manifests", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", artifact.ManifestMediaType)
			_, _ = io.WriteString(w, strings.Replace(string(made.Manifest), `"size":9}`, `"size":999999999}`, 1))
		}), "more than the limit of"},
		"it sends a manifest without end": {alter("manifests", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", artifact.ManifestMediaType)
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}), ""},
		"it refuses access": {alter("manifests", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }), "log in with 'docker login"},
		"it controls the terminal": {alter("manifests", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, `{"errors":[{"code":"A","message":"\u001b[1m"}]}`)
		}), "returned 418"},
	} {
		t.Run(sentence, func(t *testing.T) {
			honest := newRegistry()
			client := newClient(t, oci.Options{Timeout: 5 * time.Second})
			if _, err := client.Push(context.Background(), reference(t, "oci://%s/kafka:1.0.0", serve(t, honest)), made, false); err != nil {
				t.Fatal(err)
			}
			_, err := client.Pull(context.Background(), reference(t, "oci://%s/kafka:1.0.0", serve(t, test.alter(honest))))
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestSignKeepsOtherSignatures adds signatures to those that cosign has written with certificates, of which nothing is known here.
func TestSignKeepsOtherSignatures(t *testing.T) {
	client, ctx := newClient(t, oci.Options{}), context.Background()
	honest := newRegistry()
	host, mirror := serve(t, honest), serve(t, newRegistry())
	place := reference(t, "oci://%s/kafka:1.0.0", host)
	made := newArtifact(t, "a tarball")
	if _, err := client.Push(ctx, place, made, false); err != nil {
		t.Fatal(err)
	}
	place.Tag, place.Digest = "", made.Digest
	first := artifact.NewSignature(signature.Signature{Payload: []byte(`{"critical":{}}`), Signature: []byte("keyless")})
	first.Annotations["dev.sigstore.cosign/certificate"] = "a certificate"
	foreign, err := artifact.NewSignatures(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(ctx, reference(t, "oci://%s/kafka:%s", host, artifact.SignatureTag(made.Digest)), foreign, false); err != nil {
		t.Fatal(err)
	}
	for i := range artifact.MaxSignatures - 1 {
		for range 2 {
			if err := client.Sign(ctx, place, signature.Signature{Payload: []byte(`{"critical":{}}`), Signature: []byte{byte(i)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = client.Sign(ctx, place, signature.Signature{Payload: []byte(`{"critical":{}}`), Signature: []byte("one too many")})
	if err == nil || !strings.Contains(err.Error(), "more than the limit of 50") {
		t.Errorf("got %v", err)
	}
	target := reference(t, "oci://%s/kafka:1.0.0", mirror)
	for range 2 {
		if _, copied, err := client.CopySigned(ctx, place, target, false); err != nil || copied != artifact.MaxSignatures {
			t.Fatalf("got %d, %v", copied, err)
		}
	}
	response, err := http.Get("http://" + mirror + "/v2/kafka/manifests/" + artifact.SignatureTag(made.Digest))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	manifest, err := io.ReadAll(response.Body)
	if err != nil || strings.Count(string(manifest), artifact.PayloadMediaType) != artifact.MaxSignatures || !strings.Contains(string(manifest), "a certificate") {
		t.Errorf("got %s, %v", manifest, err)
	}
}

// TestCopyNamesTheSide checks that an error of a copy names the registry that refused.
func TestCopyNamesTheSide(t *testing.T) {
	client, ctx := newClient(t, oci.Options{}), context.Background()
	host, closed := serve(t, newRegistry()), serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	from, to := reference(t, "oci://%s/kafka:1.0.0", host), reference(t, "oci://%s/mirror:1.0.0", closed)
	if _, err := client.Push(ctx, from, newArtifact(t, "a tarball"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Copy(ctx, from, to, false); err == nil || !strings.Contains(err.Error(), to.String()+": "+closed+" refused access") {
		t.Errorf("got %v", err)
	}
	if _, err := client.Copy(ctx, to, from, false); err == nil || !strings.Contains(err.Error(), to.String()+": "+closed+" refused access") {
		t.Errorf("got %v", err)
	}
}

// TestPullChecksTheHighestVersion checks that a registry cannot present an older version as the highest one.
func TestPullChecksTheHighestVersion(t *testing.T) {
	client, ctx := newClient(t, oci.Options{}), context.Background()
	host := serve(t, newRegistry())
	if _, err := client.Push(ctx, reference(t, "oci://%s/kafka:9.0.0", host), newArtifact(t, "a tarball"), false); err != nil { // of version 1.0.0
		t.Fatal(err)
	}
	if _, err := client.Pull(ctx, reference(t, "oci://%s/kafka", host)); err == nil || !strings.Contains(err.Error(), `names version "1.0.0"`) {
		t.Errorf("got %v", err)
	}
	if _, err := client.Pull(ctx, reference(t, "oci://%s/kafka:9.0.0", host)); err != nil {
		t.Error(err)
	}
}
