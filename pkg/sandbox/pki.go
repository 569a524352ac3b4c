package sandbox

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// validity is the lifetime of a sandbox's certificates; leaf certificates are re-created at every start.
const validity = 365 * 24 * time.Hour

// keyPair is a certificate and its private key, both in PEM.
type keyPair struct {
	Certificate, Key []byte
}

// identity is the subject of a client certificate.
type identity struct {
	User   string
	Groups []string
}

// authority is the certificate authority of one cluster.
type authority struct {
	keyPair
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority creates a self-signed authority for the cluster.
func newAuthority(cluster string, now time.Time) (*authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: cluster + "-ca"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(10 * validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	pair, err := sign(template, nil)
	if err != nil {
		return nil, fmt.Errorf("creating the certificate authority of %s: %w", cluster, err)
	}
	return parseAuthority(pair)
}

// parseAuthority parses a stored authority.
func parseAuthority(pair keyPair) (*authority, error) {
	certificate, err := parsePEM(pair.Certificate, "CERTIFICATE", x509.ParseCertificate)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	key, err := parsePEM(pair.Key, "PRIVATE KEY", x509.ParsePKCS8PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's key: %w", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading the authority's key: a %T cannot sign", key)
	}
	return &authority{keyPair: pair, certificate: certificate, key: signer}, nil
}

// client issues a client certificate. The API server itself adds the group system:authenticated.
func (a *authority) client(id identity, now time.Time) (keyPair, error) {
	pair, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: id.User, Organization: id.Groups},
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing a client certificate to %s: %w", id.User, err)
	}
	return pair, nil
}

// server issues a serving certificate for the loopback addresses.
func (a *authority) server(name string, now time.Time) (keyPair, error) {
	pair, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(validity),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}, a)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing a serving certificate to %s: %w", name, err)
	}
	return pair, nil
}

// newSigningKey creates the key that signs a cluster's service account tokens; the Certificate is its public half.
func newSigningKey() (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("generating a signing key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return keyPair{}, fmt.Errorf("encoding a signing key: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("encoding a signing key: %w", err)
	}
	return keyPair{Certificate: encodePEM("PUBLIC KEY", public), Key: encodePEM("PRIVATE KEY", private)}, nil
}

// sign completes the template with a new key and a serial number, signed by issuer or self-signed if issuer is nil.
func sign(template *x509.Certificate, issuer *authority) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, err
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return keyPair{}, err
	}
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return keyPair{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return keyPair{}, err
	}
	return keyPair{Certificate: encodePEM("CERTIFICATE", certificate), Key: encodePEM("PRIVATE KEY", private)}, nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func parsePEM[T any](data []byte, kind string, parse func([]byte) (T, error)) (T, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		var none T
		return none, errors.New("no PEM block of type " + kind)
	}
	return parse(block.Bytes)
}
