// Package sigstore signs without a key, as CI jobs do, with the certificates, logs and timestamps of a Sigstore that exists in one test only. It reaches no
// network.
package sigstore

import (
	"encoding/hex"
	"testing"
	"time"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"google.golang.org/protobuf/encoding/protojson"
)

// Sigstore issues certificates for identities, and logs signatures.
type Sigstore struct {
	t       testing.TB
	virtual *ca.VirtualSigstore
}

// New returns a Sigstore with keys of its own.
func New(t testing.TB) *Sigstore {
	t.Helper()
	virtual, err := ca.NewVirtualSigstore()
	if err != nil {
		t.Fatal(err)
	}
	return &Sigstore{t, virtual}
}

// Root returns its trust root, trusted_root.json, without a log of certificates.
func (s *Sigstore) Root() []byte { return s.root(map[string]*root.TransparencyLog{}) }

// RootWithCertificateLog returns its trust root with a log of certificates, which records none of them.
func (s *Sigstore) RootWithCertificateLog() []byte { return s.root(withIDs(s.virtual.CTLogs())) }

func (s *Sigstore) root(certificateLogs map[string]*root.TransparencyLog) []byte {
	s.t.Helper()
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, s.virtual.FulcioCertificateAuthorities(), certificateLogs,
		s.virtual.TimestampingAuthorities(), withIDs(s.virtual.RekorLogs()))
	if err != nil {
		s.t.Fatal(err)
	}
	encoded, err := trusted.MarshalJSON()
	if err != nil {
		s.t.Fatal(err)
	}
	return encoded
}

// withIDs returns logs whose IDs are bytes: those of the library are digits.
func withIDs(logs map[string]*root.TransparencyLog) map[string]*root.TransparencyLog {
	for id, log := range logs {
		log.ID, _ = hex.DecodeString(id)
	}
	return logs
}

// Sign returns the bundle of a signature of a payload by an identity, as 'cosign sign-blob --bundle' writes it.
func (s *Sigstore) Sign(payload []byte, subject, issuer string) []byte {
	s.t.Helper()
	return s.Encode(s.Bundle(payload, subject, issuer, time.Now().Add(time.Minute)))
}

// Encode returns a bundle as JSON.
func (s *Sigstore) Encode(b *protobundle.Bundle) []byte {
	s.t.Helper()
	encoded, err := protojson.Marshal(b)
	if err != nil {
		s.t.Fatal(err)
	}
	return encoded
}

// Bundle returns the bundle of a signature that a log has recorded at a time. Its certificate is valid for ten minutes from now.
func (s *Sigstore) Bundle(payload []byte, subject, issuer string, at time.Time) *protobundle.Bundle {
	s.t.Helper()
	entity, err := s.virtual.SignAtTime(subject, issuer, payload, at)
	if err != nil {
		s.t.Fatal(err)
	}
	content, err := entity.SignatureContent()
	if err != nil {
		s.t.Fatal(err)
	}
	material, err := entity.VerificationContent()
	if err != nil {
		s.t.Fatal(err)
	}
	entries, err := entity.TlogEntries()
	if err != nil || len(entries) != 1 {
		s.t.Fatalf("%d entries: %v", len(entries), err)
	}
	timestamps, err := entity.Timestamps()
	if err != nil || len(timestamps) != 1 {
		s.t.Fatalf("%d timestamps: %v", len(timestamps), err)
	}
	message := content.MessageSignatureContent()
	return &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_Certificate{
				Certificate: &protocommon.X509Certificate{RawBytes: material.Certificate().Raw},
			},
			TlogEntries: []*protorekor.TransparencyLogEntry{s.entry(entries[0])},
			TimestampVerificationData: &protobundle.TimestampVerificationData{
				Rfc3161Timestamps: []*protocommon.RFC3161SignedTimestamp{{SignedTimestamp: timestamps[0]}},
			},
		},
		Content: &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
			MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: message.Digest()},
			Signature:     content.Signature(),
		}},
	}
}

// entry returns an entry of the log with the log's promise and its proof that it includes the entry.
func (s *Sigstore) entry(signed *tlog.Entry) *protorekor.TransparencyLogEntry {
	s.t.Helper()
	entry := signed.TransparencyLogEntry()
	promise, err := s.virtual.RekorSignPayload(tlog.RekorPayload{
		Body: signed.Body(), IntegratedTime: entry.GetIntegratedTime(), LogIndex: entry.GetLogIndex(), LogID: hex.EncodeToString(entry.GetLogId().GetKeyId()),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	proof, err := s.virtual.GetInclusionProof(entry.GetCanonicalizedBody())
	if err != nil {
		s.t.Fatal(err)
	}
	digest, err := hex.DecodeString(*proof.RootHash)
	if err != nil {
		s.t.Fatal(err)
	}
	entry.KindVersion = &protorekor.KindVersion{Kind: "hashedrekord", Version: "0.0.1"}
	entry.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	entry.InclusionProof = &protorekor.InclusionProof{
		LogIndex: *proof.LogIndex, TreeSize: *proof.TreeSize, RootHash: digest, Checkpoint: &protorekor.Checkpoint{Envelope: *proof.Checkpoint},
	}
	return entry
}
