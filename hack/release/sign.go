package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
)

// signatureFile is the signature of the checksums, and thereby of all files: `cosign verify-blob --key KEY.pub --signature SHA256SUMS.sig
// --insecure-ignore-tlog SHA256SUMS` verifies it.
const signatureFile = sumsFile + ".sig"

// sign returns the signature of content in cosign's format: ECDSA over SHA-256 in ASN.1, in base64. The same key and content result in the same
// signature (RFC 6979).
func sign(key *ecdsa.PrivateKey, content []byte) ([]byte, error) {
	digest := sha256.Sum256(content)
	signature, err := key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return []byte(base64.StdEncoding.EncodeToString(signature)), nil
}

// verify checks a signature of content.
func verify(key *ecdsa.PublicKey, content, signature []byte) error {
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signature)))
	if err != nil {
		return fmt.Errorf("the signature is not base64: %w", err)
	}
	if digest := sha256.Sum256(content); !ecdsa.VerifyASN1(key, digest[:], decoded) {
		return errors.New("the signature does not match: the file was changed, or signed with another key")
	}
	return nil
}

// readPrivateKey reads a key that signs: PEM, in PKCS #8 or SEC 1, on curve P-256. cosign and openssl create such keys; one of cosign must have
// been imported without a password.
func readPrivateKey(file string) (*ecdsa.PrivateKey, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if block.Type == "EC PRIVATE KEY" {
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("reading key %s (%s): %w", file, block.Type, err)
	}
	if key, is := parsed.(*ecdsa.PrivateKey); is && key.Curve == elliptic.P256() {
		return key, nil
	}
	return nil, fmt.Errorf("key %s is not an ECDSA key on curve P-256", file)
}

// readPublicKey reads a key that verifies, as cosign and openssl write it.
func readPublicKey(file string) (*ecdsa.PublicKey, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading key %s (%s): %w", file, block.Type, err)
	}
	if key, is := parsed.(*ecdsa.PublicKey); is && key.Curve == elliptic.P256() {
		return key, nil
	}
	return nil, fmt.Errorf("key %s is not an ECDSA key on curve P-256", file)
}

// readPEM reads the key in a PEM file. openssl writes the curve before a private key.
func readPEM(file string) (*pem.Block, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading a key: %w", err)
	}
	block, rest := pem.Decode(content)
	if block != nil && block.Type == "EC PARAMETERS" {
		block, _ = pem.Decode(rest)
	}
	if block == nil {
		return nil, fmt.Errorf("%s is not a key in PEM", file)
	}
	return block, nil
}

// checkSignature verifies the signature of the checksums with the key that the user trusts. Without a key, nothing is verified.
func checkSignature(_ context.Context, p published) error {
	switch {
	case p.key == nil:
		fmt.Fprintln(os.Stderr, "  not verified: no -key is given")
		return nil
	case p.files[signatureFile] == nil:
		return fmt.Errorf("%s is missing", signatureFile)
	default:
		return verify(p.key, p.files[sumsFile], p.files[signatureFile])
	}
}
