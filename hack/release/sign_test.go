package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keyPair returns the files of a new key pair: the private key in PKCS #8 or SEC 1, and the public key.
func keyPair(t *testing.T, curve elliptic.Curve, kind string) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := x509.MarshalPKCS8PrivateKey
	if kind == "EC PRIVATE KEY" {
		encode = func(any) ([]byte, error) { return x509.MarshalECPrivateKey(key) }
	}
	secret, err := encode(key)
	if err != nil {
		t.Fatal(err)
	}
	shared, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	private, public = filepath.Join(folder, "key.pem"), filepath.Join(folder, "key.pub")
	for file, block := range map[string]*pem.Block{private: {Type: kind, Bytes: secret}, public: {Type: "PUBLIC KEY", Bytes: shared}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return private, public
}

func TestReleaseIsSigned(t *testing.T) {
	for _, kind := range []string{"PRIVATE KEY", "EC PRIVATE KEY"} {
		private, public := keyPair(t, elliptic.P256(), kind)
		_, other := keyPair(t, elliptic.P256(), kind)
		r := tiny(t, here)
		var err error
		if r.key, err = readPrivateKey(private); err != nil {
			t.Fatal(err)
		}
		var signatures []string
		for range 2 {
			if err := r.build(t.Context(), []step{{"the plugin", buildPlugin}}); err != nil {
				t.Fatal(err)
			}
			signatures = append(signatures, readFolder(t, r.output)[signatureFile])
		}
		if signatures[0] != signatures[1] {
			t.Error("two signatures of the same file differ")
		}
		signed := []requirement{{"signature", checkSignature}, {sums, checkSums}, {"provenance", checkProvenance}}
		verifyWith := func(file string) error {
			key, err := readPublicKey(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := readRelease(r.output)
			if err != nil {
				return err
			}
			p.key = key
			return check(t.Context(), p, signed)
		}
		if err := verifyWith(public); err != nil {
			t.Errorf("the release is refused: %v", err)
		}
		if err := verifyWith(other); err == nil || !strings.Contains(err.Error(), "signed with another key") {
			t.Errorf("with another key: %v", err)
		}
		sumsPath := filepath.Join(r.output, sumsFile)
		content, err := os.ReadFile(sumsPath)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(sumsPath, bytes.Replace(content, []byte("krew"), []byte("brew"), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := verifyWith(public); err == nil || !strings.Contains(err.Error(), "the file was changed") {
			t.Errorf("with changed checksums: %v", err)
		}
		if err := os.Remove(filepath.Join(r.output, signatureFile)); err != nil {
			t.Fatal(err)
		}
		if err := verifyWith(public); err == nil || !strings.Contains(err.Error(), "SHA256SUMS.sig is missing") {
			t.Errorf("without a signature: %v", err)
		}
	}
}

func TestKeysOfOtherKindsAreRefused(t *testing.T) {
	private, public := keyPair(t, elliptic.P384(), "PRIVATE KEY")
	if _, err := readPrivateKey(private); err == nil || !strings.Contains(err.Error(), "not an ECDSA key on curve P-256") {
		t.Errorf("a private key on P-384: %v", err)
	}
	if _, err := readPublicKey(public); err == nil || !strings.Contains(err.Error(), "not an ECDSA key on curve P-256") {
		t.Errorf("a public key on P-384: %v", err)
	}
	if err := os.WriteFile(private, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPrivateKey(private); err == nil || !strings.Contains(err.Error(), "is not a key in PEM") {
		t.Errorf("a text: %v", err)
	}
}

func TestImagesOfTheChartAreThoseOfTheRelease(t *testing.T) {
	objects := []any{map[string]any{"spec": map[string]any{
		"containers":     []any{map[string]any{"image": "r/addon-manager:v1.2.3"}},
		"initContainers": []any{map[string]any{"image": "r/busybox:1"}},
		"customizedVariables": []any{
			map[string]any{"name": "PipeImage", "value": "not an image of Tandem"}, map[string]any{"name": "Image", "value": "r/addon-agent:v1.2.3"},
		},
	}}, map[string]any{"description": "image: of no container", "image": "of no container"}}
	got := strings.Join(imagesIn(objects), " ")
	if got != "r/addon-manager:v1.2.3 r/busybox:1 r/addon-agent:v1.2.3" {
		t.Errorf("got %s", got)
	}
}
