package signature

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"

	"github.com/tandem-addons/tandem/pkg/core/content"
)

// Key is a public key.
type Key struct {
	// Name is where the key was read, for messages.
	Name   string
	public *ecdsa.PublicKey
}

// MaxKeyBytes limits a file of keys, maxKeys the number of keys.
const (
	MaxKeyBytes = 64 << 10
	maxKeys     = 100
)

// ID returns the beginning of the digest of the key, for messages.
func (k Key) ID() string {
	der, err := x509.MarshalPKIXPublicKey(k.public)
	if err != nil {
		return "" // it was parsed from one
	}
	const shown = len("sha256:") + 12
	return content.DigestOf(der)[:shown]
}

// ParseKeys parses public keys, PEM blocks PUBLIC KEY with ECDSA on P-256 as cosign writes them, one or more.
func ParseKeys(name string, data []byte) ([]Key, error) {
	if len(data) > MaxKeyBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", name, MaxKeyBytes)
	}
	var keys []Key
	for len(keys) < maxKeys {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		data = rest
		key, err := parsePublic(block)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		keys = append(keys, Key{Name: name, public: key})
	}
	switch {
	case len(keys) == 0:
		return nil, fmt.Errorf("%s contains no public key (-----BEGIN PUBLIC KEY-----)", name)
	case strings.TrimSpace(string(data)) != "":
		return nil, fmt.Errorf("%s contains something else than at most %d public keys", name, maxKeys)
	}
	return keys, nil
}

func parsePublic(block *pem.Block) (*ecdsa.PublicKey, error) {
	if strings.Contains(block.Type, "PRIVATE KEY") {
		return nil, errors.New("is a private key: give the public one, cosign.pub, and keep this one secret")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("is no public key: %w", err)
	}
	key, is := parsed.(*ecdsa.PublicKey)
	if !is || key.Curve != elliptic.P256() {
		return nil, errors.New("must be an ECDSA key on P-256, as 'cosign generate-key-pair' creates it")
	}
	return key, nil
}

// PrivateKey is a key that signs.
type PrivateKey struct{ private *ecdsa.PrivateKey }

// Public returns the public key.
func (k PrivateKey) Public() Key { return Key{public: &k.private.PublicKey} }

// ErrPassword is the error of an encrypted key whose password is missing or wrong.
var ErrPassword = errors.New("the password of the private key is missing or wrong")

// The PEM types of cosign's encrypted private keys.
var encryptedTypes = []string{"ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY"}

// ParsePrivateKey parses a private key: cosign's, encrypted with a password, or a PEM block PRIVATE KEY or EC PRIVATE KEY.
func ParsePrivateKey(data, password []byte) (PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return PrivateKey{}, errors.New("contains no private key: create a pair with 'cosign generate-key-pair'")
	}
	der := block.Bytes
	if slices.Contains(encryptedTypes, block.Type) {
		var err error
		if der, err = decrypt(block.Bytes, password); err != nil {
			return PrivateKey{}, err
		}
	}
	var parsed any
	var err error
	if block.Type == "EC PRIVATE KEY" {
		parsed, err = x509.ParseECPrivateKey(der)
	} else {
		parsed, err = x509.ParsePKCS8PrivateKey(der)
	}
	if err != nil {
		return PrivateKey{}, fmt.Errorf("is no private key: %w", err)
	}
	key, is := parsed.(*ecdsa.PrivateKey)
	if !is || key.Curve != elliptic.P256() {
		return PrivateKey{}, errors.New("must be an ECDSA key on P-256, as 'cosign generate-key-pair' creates it")
	}
	return PrivateKey{key}, nil
}

// encryptedKey is cosign's form of an encrypted key (secure-systems-lab's go-securesystemslib, package encrypted).
type encryptedKey struct {
	KDF struct {
		Name   string `json:"name"`
		Params struct {
			N int `json:"n"` // cosign writes N, and the case of keys does not matter
			R int `json:"r"`
			P int `json:"p"`
		} `json:"params"`
		Salt []byte `json:"salt"`
	} `json:"kdf"`
	Cipher struct {
		Name  string `json:"name"`
		Nonce []byte `json:"nonce"`
	} `json:"cipher"`
	Ciphertext []byte `json:"ciphertext"`
}

// The limits of scrypt's parameters: 128 × N × r bytes of memory.
const (
	maxScryptN = 1 << 17
	maxScryptR = 16
	maxScryptP = 16
)

func isWithin(parameter, limit int) bool { return parameter >= 1 && parameter <= limit } // scrypt.Key divides by them

// decrypt decrypts a private key of cosign.
func decrypt(data, password []byte) ([]byte, error) {
	var key encryptedKey
	if err := json.Unmarshal(data, &key); err != nil {
		return nil, fmt.Errorf("is no encrypted key of cosign: %w", err)
	}
	params := key.KDF.Params
	const nonceBytes = 24
	if key.KDF.Name != "scrypt" || key.Cipher.Name != "nacl/secretbox" || len(key.Cipher.Nonce) != nonceBytes ||
		!isWithin(params.N, maxScryptN) || !isWithin(params.R, maxScryptR) || !isWithin(params.P, maxScryptP) {
		return nil, errors.New("is encrypted in another way than cosign's (scrypt, nacl/secretbox)")
	}
	derived, err := scrypt.Key(password, key.KDF.Salt, params.N, params.R, params.P, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("is no encrypted key of cosign: %w", err)
	}
	der, opened := secretbox.Open(nil, key.Ciphertext, (*[nonceBytes]byte)(key.Cipher.Nonce), (*[sha256.Size]byte)(derived))
	if !opened {
		return nil, ErrPassword
	}
	return der, nil
}

// Sign signs a statement. The same statement always results in the same signature (RFC 6979).
func (k PrivateKey) Sign(s Statement) (Signature, error) {
	text, err := s.Payload()
	if err != nil {
		return Signature{}, err
	}
	hash := sha256.Sum256(text)
	signed, err := k.private.Sign(nil, hash[:], crypto.SHA256)
	if err != nil {
		return Signature{}, fmt.Errorf("signing: %w", err)
	}
	return Signature{Payload: text, Signature: signed}, nil
}
