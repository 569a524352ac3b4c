package keyless_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/core/signature/keyless"
	"github.com/tandem-addons/tandem/test/sigstore"
)

const (
	workflow = "https://github.com/example/packages/.github/workflows/release.yaml@refs/tags/v1.0.0"
	actions  = "https://token.actions.githubusercontent.com"
)

// newTrust returns what trusts identities with a trust root.
func newTrust(t *testing.T, root []byte, identities ...keyless.Identity) *keyless.Trust {
	t.Helper()
	parsed, err := keyless.ParseRoot("trusted_root.json", root)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := keyless.New(parsed, identities)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// newPayload returns the payload of a package.
func newPayload(t *testing.T, version string) []byte {
	t.Helper()
	payload, err := signature.Statement{Digest: "sha256:0", Versions: map[string]string{"kafka-" + version: "sha256:1"}}.Payload()
	if err != nil {
		t.Fatal(err)
	}
	return payload
}

// expect fails unless an error contains a text, or is nil if that is empty.
func expect(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestVerify(t *testing.T) {
	own, other := sigstore.New(t), sigstore.New(t)
	payload, another := newPayload(t, "1.0.0"), newPayload(t, "2.0.0")
	trust := newTrust(t, own.Root(), keyless.Identity{Issuer: actions, Subject: workflow})
	soon := time.Now().Add(time.Minute)
	// change returns the bundle of a valid signature that another writer has changed.
	change := func(do func(b, second *protobundle.Bundle)) []byte {
		b, second := own.Bundle(payload, workflow, actions, soon), own.Bundle(payload, workflow, actions, soon)
		do(b, second)
		return own.Encode(b)
	}
	withoutTimestamps := func(b, _ *protobundle.Bundle) { b.VerificationMaterial.TimestampVerificationData = nil }
	valid := own.Sign(payload, workflow, actions)
	for sentence, test := range map[string]struct {
		payload, bundle []byte
		want            string // empty if it is trusted
	}{
		"signed by the identity":               {payload, valid, ""},
		"without a timestamp beside the log's": {payload, change(withoutTimestamps), ""},
		"without the promise of the log":       {payload, change(func(b, _ *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].InclusionPromise = nil }), ""},
		"by another identity":                  {payload, own.Sign(payload, "https://github.com/evil/packages", actions), `the signer is "https://github.com/evil/packages" of issuer "` + actions + `", which is not trusted`},
		"by the subject of another issuer":     {payload, own.Sign(payload, workflow, "https://evil.example.com"), `of issuer "https://evil.example.com", which is not trusted`},
		"of another Sigstore":                  {payload, other.Sign(payload, workflow, actions), "the bundle is invalid for the trust root"},
		"over another payload":                 {payload, own.Sign(another, workflow, actions), "the bundle is about another payload"},
		"an altered payload":                   {bytes.Replace(payload, []byte("kafka"), []byte("kafkb"), 1), valid, "the bundle is about another payload"},
		"over another payload with this digest": {payload, change(func(b, _ *protobundle.Bundle) {
			b.GetMessageSignature().Signature = own.Bundle(another, workflow, actions, soon).GetMessageSignature().Signature
		}), "signature"},
		"an expired certificate":              {payload, own.Encode(own.Bundle(payload, workflow, actions, time.Now().Add(30*time.Minute))), "integrated time outside certificate validity"},
		"a certificate that is not valid yet": {payload, own.Encode(own.Bundle(payload, workflow, actions, time.Now().Add(-30*time.Minute))), "integrated time outside certificate validity"},
		"without any time": {payload, change(func(b, second *protobundle.Bundle) {
			withoutTimestamps(b, second)
			b.VerificationMaterial.TlogEntries[0].InclusionPromise = nil
		}), "timestamp"},
		"with the time of another signature": {payload, change(func(b, second *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries[0].InclusionPromise = nil
			b.VerificationMaterial.TimestampVerificationData = second.VerificationMaterial.TimestampVerificationData
		}), "timestamp"},
		"without an entry of a log": {payload, change(func(b, _ *protobundle.Bundle) { b.VerificationMaterial.TlogEntries = nil }), "log"},
		"with the entry of another signature": {payload, change(func(b, second *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries = second.VerificationMaterial.TlogEntries
		}), "transparency log signature does not match"},
		"with the entry of another log": {payload, change(func(b, _ *protobundle.Bundle) {
			b.VerificationMaterial.TlogEntries = other.Bundle(payload, workflow, actions, soon).VerificationMaterial.TlogEntries
		}), "log"},
		"with the certificate of another": {payload, change(func(b, second *protobundle.Bundle) {
			b.VerificationMaterial.Content = second.VerificationMaterial.Content
		}), "certificate does not match"},
		"with an entry that the log has promised for another time": {payload, change(func(b, _ *protobundle.Bundle) { b.VerificationMaterial.TlogEntries[0].IntegratedTime += 60 }), "log"},
		"with thousands of entries": {payload, change(func(b, _ *protobundle.Bundle) {
			for range 5 {
				b.VerificationMaterial.TlogEntries = append(b.VerificationMaterial.TlogEntries, b.VerificationMaterial.TlogEntries[0])
			}
		}), "entries"},
		"a public key instead of a certificate": {payload, change(func(b, _ *protobundle.Bundle) {
			b.VerificationMaterial.Content = &protobundle.VerificationMaterial_PublicKey{}
		}), "bundle"},
		"huge":            {payload, append(bytes.Clone(valid), bytes.Repeat([]byte(" "), signature.MaxBundleBytes)...), "the bundle has more than 32768 bytes"},
		"a huge payload":  {bytes.Repeat([]byte(" "), signature.MaxPayloadBytes+1), valid, "the payload has more than 65536 bytes"},
		"malformed":       {payload, valid[:len(valid)/2], "it is no bundle of Sigstore"},
		"no JSON":         {payload, []byte("\x00\x1b[31m"), "it is no bundle of Sigstore"},
		"empty":           {payload, nil, "it is no bundle of Sigstore"},
		"an empty object": {payload, []byte("{}"), "it is no bundle of Sigstore"},
		"null":            {payload, []byte("null"), "it is no bundle of Sigstore"},
		"nested":          {payload, bytes.Repeat([]byte(`{"a":`), 5000), "it is no bundle of Sigstore"},
		"an attestation":  {payload, []byte(attestation(t)), "but an attestation"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := trust.Verify(test.payload, test.bundle)
			expect(t, err, test.want)
			if err != nil && (len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\x00\x1b\n")) {
				t.Errorf("the message is too long, or contains control characters: %q", err)
			}
		})
	}
}

// attestation returns a bundle with a DSSE envelope.
func attestation(t *testing.T) string {
	t.Helper()
	var b map[string]any
	if err := json.Unmarshal(readFile(t, "scaffolding.sigstore.json"), &b); err != nil {
		t.Fatal(err)
	}
	delete(b, "messageSignature")
	b["dsseEnvelope"] = map[string]any{"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": []any{map[string]any{"sig": "AA=="}}}
	encoded, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestVerifyWhatCosignHasSigned verifies a bundle that cosign and the services of Sigstore have created, of sigstore-go's tests.
func TestVerifyWhatCosignHasSigned(t *testing.T) {
	root, bundle := readFile(t, "scaffolding-root.json"), readFile(t, "scaffolding.sigstore.json")
	trust := newTrust(t, root, keyless.Identity{Issuer: "http://oidc.local:8080", Subject: "foo!oidc.local"})
	expect(t, trust.Verify([]byte("blob\n"), bundle), "")
	expect(t, trust.Verify([]byte("blob"), bundle), "another payload")
}

// TestVerifyRequiresCertificatesInTheLog verifies a valid signature with a trust root that has a log of certificates.
func TestVerifyRequiresCertificatesInTheLog(t *testing.T) {
	own, payload := sigstore.New(t), newPayload(t, "1.0.0")
	trust := newTrust(t, own.RootWithCertificateLog(), keyless.Identity{Issuer: actions, Subject: workflow})
	expect(t, trust.Verify(payload, own.Sign(payload, workflow, actions)), "signed certificate timestamp")
}

func TestIdentities(t *testing.T) {
	own, payload := sigstore.New(t), newPayload(t, "1.0.0")
	parsed, err := keyless.ParseRoot("trusted_root.json", own.Root())
	if err != nil {
		t.Fatal(err)
	}
	const repository = `https://github\.com/example/packages/.*`
	for sentence, test := range map[string]struct {
		identity        keyless.Identity
		subject, issuer string
		want            string // of New, or of Verify; empty if the signature is trusted
	}{
		"the subject matches":                      {keyless.Identity{Issuer: actions, SubjectRegExp: repository}, workflow, actions, ""},
		"the issuer matches":                       {keyless.Identity{IssuerRegExp: `https://token\.actions\.(example|githubusercontent)\.com`, Subject: workflow}, workflow, actions, ""},
		"a URL in the path of another":             {keyless.Identity{Issuer: actions, SubjectRegExp: repository}, "https://evil.example.com/" + workflow, actions, "which is not trusted"},
		"a longer subject":                         {keyless.Identity{Issuer: actions, SubjectRegExp: `https://github\.com/example/packages`}, workflow, actions, "which is not trusted"},
		"a longer issuer":                          {keyless.Identity{IssuerRegExp: `https://token\.actions\.githubusercontent\.com`, Subject: workflow}, workflow, actions + ".evil.example.com", "which is not trusted"},
		"an alternative is anchored, too":          {keyless.Identity{Issuer: actions, SubjectRegExp: `https://a\.example\.com|https://b\.example\.com`}, "https://b.example.com.evil.example.com", actions, "which is not trusted"},
		"a ref like an address":                    {keyless.Identity{Issuer: actions, SubjectRegExp: `.*@example\.com`}, "https://github.com/evil/x/.github/workflows/x.yml@refs/heads/x@example.com", actions, "which is not trusted"},
		"an address":                               {keyless.Identity{Issuer: actions, SubjectRegExp: `.*@example\.com`}, "a@example.com", actions, ""},
		"another case":                             {keyless.Identity{Issuer: actions, SubjectRegExp: `(?i)https://github\.com/Example/.*`}, workflow, actions, ""},
		"lines do not anchor":                      {keyless.Identity{Issuer: actions, SubjectRegExp: `(?m)^https://a\.example\.com$`}, "https://a.example.com\nhttps://evil.example.com", actions, "not trusted"},
		"a prefix is no match":                     {keyless.Identity{Issuer: actions, Subject: "https://github.com/example"}, workflow, actions, "which is not trusted"},
		"without a subject":                        {keyless.Identity{Issuer: actions}, workflow, actions, "subject and subjectRegExp are missing: an identity needs both an issuer and a subject"},
		"without an issuer":                        {keyless.Identity{Subject: workflow}, workflow, actions, "issuer and issuerRegExp are missing"},
		"both kinds of subject":                    {keyless.Identity{Issuer: actions, Subject: workflow, SubjectRegExp: repository}, workflow, actions, "subject and subjectRegExp are both set"},
		"a wildcard":                               {keyless.Identity{Issuer: actions, SubjectRegExp: ".*"}, workflow, actions, `subjectRegExp ".*": it matches everyone`},
		"a wildcard of issuers":                    {keyless.Identity{IssuerRegExp: ".+", Subject: workflow}, workflow, actions, `issuerRegExp ".+": it matches everyone`},
		"every https URL":                          {keyless.Identity{Issuer: actions, SubjectRegExp: "https://.*"}, workflow, actions, "it matches everyone"},
		"all of GitHub":                            {keyless.Identity{Issuer: actions, SubjectRegExp: "https://github.com/.*"}, workflow, actions, "it matches everyone"},
		"any email address":                        {keyless.Identity{Issuer: actions, SubjectRegExp: ".*@.*"}, workflow, actions, "it matches everyone"},
		"nothing, which is also what is missing":   {keyless.Identity{Issuer: actions, SubjectRegExp: "a*"}, workflow, actions, "it matches everyone"},
		"an invalid expression":                    {keyless.Identity{Issuer: actions, SubjectRegExp: "("}, workflow, actions, "missing closing )"},
		"an expression that closes the group":      {keyless.Identity{Issuer: actions, SubjectRegExp: `a)|(?:b`}, workflow, actions, "unexpected )"},
		"a backreference, which RE2 does not have": {keyless.Identity{Issuer: actions, SubjectRegExp: `(a)\1`}, workflow, actions, "invalid escape sequence"},
		"an expression that needs much memory":     {keyless.Identity{Issuer: actions, SubjectRegExp: "((a{1000}){1000}){1000}"}, workflow, actions, "error parsing regexp"},
		"a long expression":                        {keyless.Identity{Issuer: actions, SubjectRegExp: strings.Repeat("a", 1001)}, workflow, actions, "more than 1000 characters"},
	} {
		t.Run(sentence, func(t *testing.T) {
			trust, err := keyless.New(parsed, []keyless.Identity{test.identity})
			if err == nil {
				err = trust.Verify(payload, own.Sign(payload, test.subject, test.issuer))
			}
			expect(t, err, test.want)
		})
	}
}

// TestSubjectExpressionsNameAnOrganization refuses expressions that trust accounts of any organization, in spite of a narrow look.
func TestSubjectExpressionsNameAnOrganization(t *testing.T) {
	const organization, domain = "https://HOST/ORGANIZATION/", "@DOMAIN"
	for sentence, test := range map[string]struct{ expression, want string }{
		"a workflow of every repository": {`https://github.com/[^/]+/[^/]+/\.github/workflows/release\.ya?ml@refs/(heads/main|tags/v.+)`, organization},
		"a repository of that name":      {`https://github\.com/.+/packages/.*`, organization},
		"a pipeline of every project":    {`https://gitlab\.com/[a-z]+/.*//\.gitlab-ci\.yml@refs/heads/main`, organization},
		"the beginning of a name":        {`https://github\.com/example.*`, organization},
		"an organization of every host":  {`https://[^/]+/example/.*`, organization},
		"an organization, or any":        {`https://github\.com/(example|.*)/packages/.*`, organization},
		"an organization, or none":       {`https://github\.com/(example/)?packages.*`, organization},
		"a repeated name":                {`https://github\.com/(example)*/.*/x`, organization},
		"one of many characters":         {`https://github\.com/[a-z0-9]/.*`, organization},
		"a dot that is a wildcard":       {`https://github.com/example/.*`, `(write \. for a dot)`},
		"an address at every domain":     {`release@.*`, domain},
		"an address at a domain or more": {`release@example\.com.*`, domain},
		"a part of a domain":             {`release@.*\.com`, domain},
		"an @ without a domain":          {`release.*@`, domain},
		"an address without a domain":    {`release.*`, domain},
		"a ref":                          {`.*@refs/heads/main`, organization},
		"one of the alternatives":        {`https://github\.com/example/.*|release@.*`, domain},

		"an organization":                         {`https://github\.com/example/.*`, ""},
		"an organization, without regard of case": {`(?i)https://github\.com/Example/.*`, ""},
		"an anchored one":                         {`^https://github\.com/example/.*$`, ""},
		"one of two organizations":                {`https://github\.com/(example|other)/packages/.*`, ""},
		"two alternatives":                        {`https://github\.com/a/.*|https://gitlab\.com/b/.*`, ""},
		"one of two letters":                      {`https://github\.com/example[12]/.*`, ""},
		"an optional suffix":                      {`https://github\.com/examples?/.*`, ""},
		"a dot for a dot":                         {`https://github\.com/example/packages/\.github/workflows/release\.yaml@refs/tags/v.*`, ""},
		"one subject":                             {`https://github\.com/example`, ""},
		"a group of an own instance":              {`https://gitlab\.example\.com/group/.*`, ""},
		"addresses at a domain":                   {`[a-z]+@example\.com`, ""},
		"addresses at two domains":                {`.*@example\.(com|org)`, ""},
		"workflows and addresses":                 {`https://github\.com/example/.*|.*@example\.com`, ""},
		"users of an issuer":                      {`.*!oidc\.example\.com`, ""},
		"a trust domain of SPIFFE":                {`spiffe://example\.com/.*`, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := keyless.ParseIdentities("identities.yaml", identities(t, keyless.Identity{Issuer: actions, SubjectRegExp: test.expression}))
			expect(t, err, test.want)
		})
	}
}

// identities returns the file with an identity.
func identities(t *testing.T, identity keyless.Identity) []byte {
	t.Helper()
	encoded, err := json.Marshal([]keyless.Identity{identity})
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestParseIdentities(t *testing.T) {
	for sentence, test := range map[string]struct{ data, want string }{
		"a list":            {"- {issuer: https://a.example.com, subject: b@example.com}\n- {issuerRegExp: 'https://a\\.example\\.com', subjectRegExp: '.*@example\\.com'}\n", ""},
		"JSON":              {`[{"issuer": "https://a.example.com", "subject": "b@example.com"}]`, ""},
		"no list":           {"issuer: https://a.example.com\nsubject: b@example.com\n", "identities.yaml is no list of identities"},
		"an unknown field":  {"- {issuer: https://a.example.com, subjectPattern: b@example.com}\n", "unknown field"},
		"empty":             {"", "identities.yaml contains 0 identities, which must be 1 to 100"},
		"too many":          {strings.Repeat("- {issuer: a, subject: b}\n", 101), "contains 101 identities"},
		"too large":         {strings.Repeat("#", 64<<10+1), "has more than 65536 bytes"},
		"one that is wrong": {"- {issuer: https://a.example.com, subject: b@example.com}\n- {issuer: https://a.example.com, subjectRegExp: .*}\n", `identities.yaml: identity 2: subjectRegExp ".*": it matches everyone`},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := keyless.ParseIdentities("identities.yaml", []byte(test.data))
			expect(t, err, test.want)
		})
	}
}

func TestParseRoot(t *testing.T) {
	root := sigstore.New(t).Root()
	without := func(field string) []byte {
		var plain map[string]any
		if err := json.Unmarshal(root, &plain); err != nil {
			t.Fatal(err)
		}
		delete(plain, field)
		encoded, err := json.Marshal(plain)
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	for sentence, test := range map[string]struct {
		data []byte
		want string
	}{
		"a trust root":                  {root, ""},
		"without authorities":           {without("certificateAuthorities"), "trusted_root.json contains no certificate authority"},
		"without logs":                  {without("tlogs"), "trusted_root.json contains no transparency log"},
		"without timestamp authorities": {without("timestampAuthorities"), ""},
		"of another type":               {without("mediaType"), "trusted_root.json is no trust root of Sigstore"},
		"two of them":                   {slices.Concat(root, []byte("\n"), root), "trusted_root.json is no trust root of Sigstore"},
		"malformed":                     {root[:100], "trusted_root.json is no trust root of Sigstore"},
		"empty":                         {nil, "trusted_root.json is no trust root of Sigstore"},
		"too large":                     {bytes.Repeat([]byte(" "), keyless.MaxRootBytes+1), "has more than 262144 bytes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := keyless.ParseRoot("trusted_root.json", test.data)
			expect(t, err, test.want)
		})
	}
}

func TestNewSignature(t *testing.T) {
	own, payload := sigstore.New(t), newPayload(t, "1.0.0")
	valid := own.Sign(payload, workflow, actions)
	s, err := keyless.NewSignature(payload, valid)
	if err != nil || !bytes.Equal(s.Payload, payload) || !bytes.Equal(s.Bundle, valid) || len(s.Signature) == 0 {
		t.Fatalf("%v, %v", s, err)
	}
	soon := time.Now().Add(time.Minute)
	wrong, public := own.Bundle(payload, workflow, actions, soon), own.Bundle(payload, workflow, actions, soon)
	wrong.GetMessageSignature().Signature = own.Bundle(payload, workflow, actions, soon).GetMessageSignature().Signature
	public.VerificationMaterial.Content = &protobundle.VerificationMaterial_PublicKey{}
	for sentence, test := range map[string]struct {
		payload, bundle []byte
		want            string
	}{
		"another payload":           {newPayload(t, "2.0.0"), valid, "the bundle is about another payload"},
		"another signature":         {payload, own.Encode(wrong), "the signature in the bundle is not about the payload"},
		"a key":                     {payload, own.Encode(public), "bundle"},
		"malformed":                 {payload, []byte("{"), "it is no bundle of Sigstore"},
		"a bundle that is too long": {payload, bytes.Repeat([]byte(" "), signature.MaxBundleBytes+1), "more than 32768 bytes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := keyless.NewSignature(test.payload, test.bundle)
			expect(t, err, test.want)
		})
	}
}

// TestAnnotationWithBundles stores a signature without a key on an OperatorVersion, and reads it as a hub does, also one of an earlier build.
func TestAnnotationWithBundles(t *testing.T) {
	own, version := sigstore.New(t), &kudo.OperatorVersion{}
	version.Name = "kafka-1.0.0"
	digest := signature.ContentDigest(version)
	payload, err := signature.Statement{Digest: digest, Versions: map[string]string{version.Name: digest}}.Payload()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := keyless.NewSignature(payload, own.Sign(payload, workflow, actions))
	if err != nil {
		t.Fatal(err)
	}
	value, err := signature.Encode([]signature.Signature{signed})
	if err != nil {
		t.Fatal(err)
	}
	version.Annotations = map[string]string{kudo.AnnotationSignatures: value}
	trust := signature.Trust{Identities: newTrust(t, own.Root(), keyless.Identity{Issuer: actions, Subject: workflow})}
	expect(t, signature.VerifyVersion(version, trust), "")
	if err := signature.VerifyVersion(version, signature.Trust{}); !errors.Is(err, signature.ErrKeyless) {
		t.Errorf("without identities: %v", err)
	}
	if by := signature.By([]signature.Signature{signed}, trust); len(by) != 1 {
		t.Errorf("%d signatures are trusted", len(by))
	}
	version.Spec.Version = "2.0.0"
	expect(t, signature.VerifyVersion(version, trust), "its signature does not match")
	var earlier []struct{ Payload, Signature []byte }
	if err := json.Unmarshal([]byte(value), &earlier); err != nil || len(earlier) != 1 || !bytes.Equal(earlier[0].Payload, payload) {
		t.Errorf("an earlier build reads %v: %v", earlier, err)
	}
	layer := artifact.NewSignature(signed)
	if got := artifact.SignatureOf(layer); !bytes.Equal(got.Bundle, signed.Bundle) || !bytes.Equal(got.Signature, signed.Signature) {
		t.Error("a layer of a registry has another signature")
	}
	for size, want := range map[int]int{signature.MaxBundleBytes: 1, signature.MaxBundleBytes + 1: 0} {
		signed.Bundle = bytes.Repeat([]byte(" "), size)
		made, err := artifact.NewSignatures(artifact.NewSignature(signed))
		if err != nil {
			t.Fatal(err)
		}
		if layers, err := artifact.ParseSignatures(made.Manifest); err != nil || len(layers) != want {
			t.Errorf("of %d bytes, %d are read: %v", size, len(layers), err)
		}
	}
}

// FuzzVerify alters a bundle: no other bundle than the valid one is trusted for another payload, and none causes a panic or a long message.
func FuzzVerify(f *testing.F) {
	bundle := readFile(f, "scaffolding.sigstore.json")
	f.Add([]byte("blob\n"), bundle)
	f.Add([]byte("blob"), bundle)
	f.Add([]byte{}, []byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","messageSignature":{},"verificationMaterial":{"certificate":{}}}`))
	root, err := keyless.ParseRoot("root", readFile(f, "scaffolding-root.json"))
	if err != nil {
		f.Fatal(err)
	}
	trust, err := keyless.New(root, []keyless.Identity{{Issuer: "http://oidc.local:8080", Subject: "foo!oidc.local"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, payload, data []byte) {
		err := trust.Verify(payload, data)
		if err == nil && string(payload) != "blob\n" {
			t.Errorf("payload %q is trusted", payload)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("the message has %d bytes", len(err.Error()))
		}
	})
}

// FuzzParseRoot parses trust roots that are not what they should be.
func FuzzParseRoot(f *testing.F) {
	f.Add(readFile(f, "scaffolding-root.json"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		root, err := keyless.ParseRoot("root", data)
		if (root == nil) == (err == nil) {
			t.Errorf("%v, %v", root, err)
		}
	})
}
