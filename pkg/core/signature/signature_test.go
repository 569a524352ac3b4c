package signature_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/content"
	"github.com/tandem-addons/tandem/pkg/core/signature"
)

// newPair returns a pair of keys as PEM files.
func newPair(t *testing.T) (private, public []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), publicPEM(t, &key.PublicKey)
}

func publicPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// parse returns a pair of keys.
func parse(t *testing.T, private, public []byte) (signature.PrivateKey, []signature.Key) {
	t.Helper()
	key, err := signature.ParsePrivateKey(private, nil)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := signature.ParseKeys("cosign.pub", public)
	if err != nil {
		t.Fatal(err)
	}
	return key, keys
}

// newVersion returns an OperatorVersion with a template and a chart.
func newVersion() *kudo.OperatorVersion {
	version := &kudo.OperatorVersion{}
	version.Name = "kafka-1.0.0"
	version.Spec.Operator.Name, version.Spec.Version = "kafka", "1.0.0"
	version.Spec.Templates = map[string]string{"service.yaml": "kind: Service"}
	version.Spec.Plans = map[string]kudo.Plan{"deploy": {Phases: []kudo.Phase{{Name: "all"}}}}
	version.Spec.Parameters = []kudo.Parameter{{Name: "NODES"}}
	version.Spec.Permissions = &kudo.Permissions{}
	content.Add(&version.Spec, "kafka.tgz", []byte("a chart"))
	return version
}

// sign returns a version with signatures of the same statement.
func sign(t *testing.T, version *kudo.OperatorVersion, of *kudo.OperatorVersion, keys ...signature.PrivateKey) *kudo.OperatorVersion {
	t.Helper()
	var signatures []signature.Signature
	for _, key := range keys {
		s, err := key.Sign(signature.Statement{Digest: signature.ContentDigest(of), Versions: map[string]string{of.Name: signature.ContentDigest(of)}})
		if err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, s)
	}
	value, err := signature.Encode(signatures)
	if err != nil {
		t.Fatal(err)
	}
	signed := version.DeepCopy()
	signed.Annotations = map[string]string{kudo.AnnotationSignatures: value}
	return signed
}

func TestVerifyVersion(t *testing.T) {
	private, public := newPair(t)
	own, trusted := parse(t, private, public)
	otherPrivate, otherPublic := newPair(t)
	other, others := parse(t, otherPrivate, otherPublic)
	change := func(do func(*kudo.OperatorVersion)) *kudo.OperatorVersion {
		altered := newVersion()
		do(altered)
		return sign(t, altered, newVersion(), own)
	}
	annotate := func(value string) *kudo.OperatorVersion {
		version := newVersion()
		version.Annotations = map[string]string{kudo.AnnotationSignatures: value}
		return version
	}
	for sentence, test := range map[string]struct {
		version *kudo.OperatorVersion
		keys    []signature.Key
		want    string // empty if it is signed
	}{
		"signed": {sign(t, newVersion(), newVersion(), own), trusted, ""},
		"signed with two keys, one of which counts":                     {sign(t, newVersion(), newVersion(), other, own), trusted, ""},
		"rotated: the new key is not trusted yet, the old one still is": {sign(t, newVersion(), newVersion(), own), append(others, trusted...), ""},
		"rotated: the old key is removed":                               {sign(t, newVersion(), newVersion(), own), others, "none of its signatures was made with one of the keys: sha256:"},
		"unsigned":                                                      {newVersion(), trusted, "it has no signature"},
		"without keys":                                                  {sign(t, newVersion(), newVersion(), own), nil, "with one of the keys, because there are none"},
		"defaults of the API server":                                    {change(func(v *kudo.OperatorVersion) { v.Spec.Parameters[0].Type = "string" }), trusted, ""},
		"another order of execution": {change(func(v *kudo.OperatorVersion) {
			v.Spec.Plans["deploy"] = kudo.Plan{Strategy: kudo.Parallel, Phases: []kudo.Phase{{Name: "all"}}}
		}), trusted, "it was altered"},
		"an altered template":                  {change(func(v *kudo.OperatorVersion) { v.Spec.Templates["service.yaml"] = "kind: Secret" }), trusted, "it was altered"},
		"an altered chart":                     {change(func(v *kudo.OperatorVersion) { v.Spec.Content[0].Digest = content.DigestOf([]byte("x")) }), trusted, "it was altered"},
		"a template added in OperatorContents": {change(func(v *kudo.OperatorVersion) { content.Add(&v.Spec, "service.yaml", []byte("kind: Secret")) }), trusted, "it was altered"},
		"removed permissions":                  {change(func(v *kudo.OperatorVersion) { v.Spec.Permissions = nil }), trusted, "it was altered"},
		"a template moved to OperatorContents": {change(func(v *kudo.OperatorVersion) {
			v.Spec.Templates = nil
			content.Add(&v.Spec, "service.yaml", []byte("kind: Service"))
		}), trusted, ""},
		"the signature of another version": {change(func(v *kudo.OperatorVersion) { v.Name = "kafka-2.0.0" }), trusted, `it is about other OperatorVersions ("kafka-1.0.0")`},
		"the namespace of the operator":    {change(func(v *kudo.OperatorVersion) { v.Spec.Operator.Namespace = "elsewhere" }), trusted, ""},
		"in another namespace":             {change(func(v *kudo.OperatorVersion) { v.Namespace = "elsewhere" }), trusted, ""},
		"no list":                          {annotate("{}"), trusted, "is not a list of signatures"},
		"too large":                        {annotate(strings.Repeat("x", 200<<10)), trusted, "has more than 131072 bytes"},
		"too many":                         {annotate("[" + strings.Repeat("{},", 10) + "{}]"), trusted, "has more than 10 signatures"},
		"an empty signature":               {annotate("[{}]"), trusted, "none of its signatures"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := signature.VerifyVersion(test.version, signature.Trust{Keys: test.keys})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestContentDigestCoversTheName(t *testing.T) {
	renamed := newVersion()
	renamed.Name = "kafka-2.0.0"
	if signature.ContentDigest(renamed) == signature.ContentDigest(newVersion()) {
		t.Error("the digest is the same under another name")
	}
}

func TestVerifyArtifact(t *testing.T) {
	private, public := newPair(t)
	own, trusted := parse(t, private, public)
	digest, other := content.DigestOf([]byte("a")), content.DigestOf([]byte("b"))
	signed, err := own.Sign(signature.Statement{Place: "registry.example.com/kafka", Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	again, err := own.Sign(signature.Statement{Place: "registry.example.com/kafka", Digest: digest})
	if err != nil || string(again.Signature) != string(signed.Signature) {
		t.Errorf("the same statement has another signature: %v", err)
	}
	if got, err := signature.VerifyArtifact(digest, nil, []signature.Signature{signed}, signature.Trust{Keys: trusted}); err != nil || got.Place != "registry.example.com/kafka" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := signature.VerifyArtifact(other, nil, []signature.Signature{signed}, signature.Trust{Keys: trusted}); err == nil || !strings.Contains(err.Error(), "another artifact") {
		t.Errorf("a signature is replayed: %v", err)
	}
	altered := signature.Signature{Payload: []byte(strings.Replace(string(signed.Payload), digest, other, 1)), Signature: signed.Signature}
	if _, err := signature.VerifyArtifact(other, nil, []signature.Signature{altered}, signature.Trust{Keys: trusted}); err == nil {
		t.Error("an altered payload counts")
	}
}

// TestVerifyArtifactCoversVersions requires that a signature covers all OperatorVersions of a package with their content.
func TestVerifyArtifactCoversVersions(t *testing.T) {
	private, public := newPair(t)
	own, trusted := parse(t, private, public)
	digest, first, second := content.DigestOf([]byte("a")), content.DigestOf([]byte("b")), content.DigestOf([]byte("c"))
	about := func(versions map[string]string) signature.Signature {
		signed, err := own.Sign(signature.Statement{Digest: digest, Versions: versions})
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	both := map[string]string{"shop": first, "cart": second}
	for sentence, test := range map[string]struct {
		versions   map[string]string
		signatures []signature.Signature
		want       string
	}{
		"all":                          {both, []signature.Signature{about(both)}, ""},
		"more than all":                {map[string]string{"cart": second}, []signature.Signature{about(both)}, ""},
		"one of two signatures":        {both, []signature.Signature{about(nil), about(both)}, ""},
		"cosign's own":                 {both, []signature.Signature{about(nil)}, `it does not cover OperatorVersion "cart"`},
		"not the child":                {both, []signature.Signature{about(map[string]string{"shop": first})}, `it does not cover OperatorVersion "cart"`},
		"another child under its name": {map[string]string{"shop": first, "cart": first}, []signature.Signature{about(both)}, `of OperatorVersion "cart", which has`},
		"no digest":                    {map[string]string{"shop": ""}, []signature.Signature{about(map[string]string{"shop": ""})}, "was altered"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := signature.VerifyArtifact(digest, test.versions, test.signatures, signature.Trust{Keys: trusted})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestAddDropsNothing checks that signatures of others do not push out those that exist.
func TestAddDropsNothing(t *testing.T) {
	numbered := func(from, to int) (all []signature.Signature) {
		for i := from; i < to; i++ {
			all = append(all, signature.Signature{Payload: []byte{byte(i)}})
		}
		return all
	}
	if got, err := signature.Add(numbered(0, 8), numbered(6, 10)...); err != nil || len(got) != signature.MaxSignatures {
		t.Errorf("got %d, %v", len(got), err)
	}
	var limit *signature.LimitError
	if _, err := signature.Add(numbered(0, 10), numbered(10, 11)...); !errors.As(err, &limit) || limit.Count != 11 {
		t.Errorf("got %v", err)
	}
}

// TestAddRestoresBundles checks that a signature whose bundle an earlier program has erased does not stay beside the whole one.
func TestAddRestoresBundles(t *testing.T) {
	without := func(name string) signature.Signature {
		return signature.Signature{Payload: []byte("payload"), Signature: []byte(name)}
	}
	with := func(name, bundle string) signature.Signature {
		s := without(name)
		s.Bundle = []byte(bundle)
		return s
	}
	type list = []signature.Signature
	for sentence, test := range map[string]struct{ existing, further, want list }{
		"erased":                         {list{without("a"), without("b")}, list{with("a", "1")}, list{without("b"), with("a", "1")}},
		"erased, and beside the whole":   {list{without("a"), with("a", "1")}, list{with("a", "1")}, list{with("a", "1")}},
		"added by an earlier program":    {list{with("a", "1")}, list{without("a")}, list{with("a", "1")}},
		"another bundle replaces none":   {list{with("a", "1")}, list{with("a", "2")}, list{with("a", "1"), with("a", "2")}},
		"the same":                       {list{with("a", "1")}, list{with("a", "1")}, list{with("a", "1")}},
		"another payload":                {list{{Payload: []byte("other"), Signature: []byte("a")}}, list{with("a", "1")}, list{{Payload: []byte("other"), Signature: []byte("a")}, with("a", "1")}},
		"erased in a list that was full": {append(list{without("a")}, slices.Repeat(list{with("b", "1")}, 9)...), list{with("a", "1")}, append(slices.Repeat(list{with("b", "1")}, 9), with("a", "1"))},
	} {
		t.Run(sentence, func(t *testing.T) {
			existing := slices.Clone(test.existing)
			got, err := signature.Add(existing, test.further...)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff(test.existing, existing); diff != "" {
				t.Errorf("the arguments are changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEncodeIsLimited checks that signatures that exceed a limit have an error by which a push leaves them out.
func TestEncodeIsLimited(t *testing.T) {
	for sentence, test := range map[string]struct {
		signatures []signature.Signature
		want       string
	}{
		"too many":  {make([]signature.Signature, 11), "11 signatures are more than the limit of 10"},
		"too large": {slices.Repeat([]signature.Signature{{Bundle: make([]byte, 10<<10)}}, 10), "signatures of 137021 bytes are more than the limit of 131072 bytes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			var limit *signature.LimitError
			if _, err := signature.Encode(test.signatures); !errors.As(err, &limit) || limit.Error() != test.want {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestSelection selects the signatures about the content of an OperatorVersion, and those by a key.
func TestSelection(t *testing.T) {
	private, public := newPair(t)
	own, trusted := parse(t, private, public)
	version, altered := newVersion(), newVersion()
	altered.Spec.Templates["service.yaml"] = "kind: Secret"
	signatures, err := signature.Parse(sign(t, version, version, own).Annotations[kudo.AnnotationSignatures])
	if err != nil {
		t.Fatal(err)
	}
	forged := signature.Signature{Payload: signatures[0].Payload, Signature: []byte("forged")}
	both := append(signatures, forged)
	if got := signature.About(both, version); len(got) != 2 {
		t.Errorf("%d signatures are about the content", len(got))
	}
	if got := signature.About(both, altered); len(got) != 0 || !signature.IsNamed(both, altered.Name) {
		t.Errorf("%d signatures are about other content", len(got))
	}
	if got := signature.By(both, signature.Trust{Keys: trusted}); len(got) != 1 {
		t.Errorf("%d signatures are by the key", len(got))
	}
}

func TestKeys(t *testing.T) {
	private, public := newPair(t)
	large, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for sentence, test := range map[string]struct{ text, want string }{
		"one":             {string(public), ""},
		"two":             {string(public) + string(public), ""},
		"none":            {"hello", "contains no public key"},
		"a private key":   {string(private), "is a private key"},
		"RSA":             {string(publicPEM(t, &large.PublicKey)), "must be an ECDSA key on P-256"},
		"another curve":   {string(publicPEM(t, &wide.PublicKey)), "must be an ECDSA key on P-256"},
		"something after": {string(public) + "hello", "contains something else"},
		"too large":       {strings.Repeat("x", 100<<10), "more than 65536 bytes"},
		"broken":          {"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "is no public key"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := signature.ParseKeys("cosign.pub", []byte(test.text))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// encrypt returns a private key as cosign encrypts it.
func encrypt(t *testing.T, private, password []byte, n, p int) []byte {
	t.Helper()
	block, _ := pem.Decode(private)
	salt, nonce := make([]byte, 32), [24]byte{1}
	derived, err := scrypt.Key(password, salt, n, 8, 1, 32) // p as in the file would fail here, too
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(map[string]any{
		"kdf":        map[string]any{"name": "scrypt", "params": map[string]int{"N": n, "r": 8, "p": p}, "salt": salt},
		"cipher":     map[string]any{"name": "nacl/secretbox", "nonce": nonce[:]},
		"ciphertext": secretbox.Seal(nil, block.Bytes, &nonce, (*[32]byte)(derived)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY", Bytes: encoded})
}

func TestEncryptedPrivateKeys(t *testing.T) {
	private, _ := newPair(t)
	encrypted := encrypt(t, private, []byte("secret"), 1<<15, 1)
	if _, err := signature.ParsePrivateKey(encrypted, []byte("secret")); err != nil {
		t.Error(err)
	}
	if _, err := signature.ParsePrivateKey(encrypted, []byte("wrong")); !errors.Is(err, signature.ErrPassword) {
		t.Errorf("got %v", err)
	}
	if _, err := signature.ParsePrivateKey(encrypt(t, private, nil, 1<<18, 1), nil); err == nil || !strings.Contains(err.Error(), "in another way") {
		t.Errorf("a key decides how much memory is used: %v", err)
	}
	for _, p := range []int{0, -1} { // scrypt divides by it
		if _, err := signature.ParsePrivateKey(encrypt(t, private, nil, 1<<15, p), nil); err == nil || !strings.Contains(err.Error(), "in another way") {
			t.Errorf("p = %d: got %v", p, err)
		}
	}
	if _, err := signature.ParsePrivateKey([]byte("hello"), nil); err == nil {
		t.Error("no key is a key")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`[{"payload":"e30=","signature":"AA=="}]`)
	f.Fuzz(func(t *testing.T, annotation string) {
		signatures, err := signature.Parse(annotation)
		if err == nil && len(signatures) > signature.MaxSignatures {
			t.Error("too many signatures")
		}
		for _, s := range signatures {
			_, _ = signature.ParsePayload(s.Payload)
		}
	})
}
