// Package content splits files of a package that are too large for its OperatorVersion into parts, which OperatorContents store, and joins
// and verifies them. It touches no cluster.
package content

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

const (
	// PartBytes is the size of each part of a file but the last, before compression. A part that gzip cannot compress, in base64, leaves room for
	// metadata below 1.5 MiB, which is etcd's limit for an object. The size is fixed, so that the same file always has the same parts, whatever
	// compresses them.
	PartBytes = 896 << 10
	// MaxBytes limits the files of an OperatorVersion in total. Charts are compressed already.
	MaxBytes = 16 << 20
	// MaxFiles limits the number of these files, and maxFileName the length of their names.
	MaxFiles    = 256
	maxFileName = 253
	// MaxTemplateBytes limits a template, because nothing larger can be rendered.
	MaxTemplateBytes = 4 << 20
)

// DigestOf returns the digest of a file or of a part, as sha256:HEX.
func DigestOf(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// Split returns the parts of a file, in order.
func Split(data []byte) [][]byte { return slices.Collect(slices.Chunk(data, PartBytes)) }

// List returns the entry of a file in an OperatorVersion.
func List(file string, data []byte) kudo.ContentFile {
	listed := kudo.ContentFile{File: file, Digest: DigestOf(data), Size: int64(len(data)), Parts: []string{}}
	for _, part := range Split(data) {
		listed.Parts = append(listed.Parts, DigestOf(part))
	}
	return listed
}

// Validate returns an error if an entry of an OperatorVersion cannot be that of a file.
func Validate(f kudo.ContentFile) error {
	parts := (f.Size + PartBytes - 1) / PartBytes
	switch {
	case len(f.File) > maxFileName:
		return fmt.Errorf("has a name of %d bytes: at most %d are allowed", len(f.File), maxFileName)
	case f.Size <= 0 || f.Size > MaxBytes:
		return fmt.Errorf("has %d bytes: 1 to %d are allowed", f.Size, MaxBytes)
	case int64(len(f.Parts)) != parts:
		return fmt.Errorf("has %d bytes, but %d parts instead of %d: push the package with 'kubectl addon package push'", f.Size, len(f.Parts), parts)
	case slices.ContainsFunc(append([]string{f.Digest}, f.Parts...), func(d string) bool { return !isDigest(d) }):
		return errors.New("has a digest that is not sha256:HEX: push the package with 'kubectl addon package push'")
	default:
		return nil
	}
}

const (
	digestPrefix = "sha256:"
	digestLength = len(digestPrefix) + 2*sha256.Size
)

func isDigest(digest string) bool {
	hex, prefixed := strings.CutPrefix(digest, digestPrefix)
	return prefixed && len(digest) == digestLength && strings.Trim(hex, "0123456789abcdef") == ""
}

// The lengths of the name of an OperatorContent.
const (
	maxName      = 253
	suffixLength = len(".") + 16
)

// Name returns the name of the OperatorContent that stores a part of an OperatorVersion. An altered digest has a name too.
func Name(version, digest string) string {
	if len(version)+suffixLength > maxName {
		short := strings.TrimRight(version[:maxName-2*suffixLength], "-.")
		version = short + suffixOf(DigestOf([]byte(version)))
	}
	return version + suffixOf(digest)
}

// suffixOf returns a dot and the first 16 digits of a digest.
func suffixOf(digest string) string {
	hex := strings.TrimPrefix(digest, digestPrefix)
	return "." + hex[:min(len(hex), suffixLength-1)]
}

// VersionOf returns the name of the OperatorVersion that an OperatorContent belongs to, from its metadata.
func VersionOf(part metav1.Object) string {
	for _, owner := range part.GetOwnerReferences() {
		if owner.Kind == "OperatorVersion" {
			return owner.Name
		}
	}
	name := part.GetName()
	return name[:max(0, strings.LastIndex(name, "."))]
}

// OwnerOf returns the owner reference of the OperatorContents of a stored OperatorVersion, with which they are collected.
func OwnerOf(version *kudo.OperatorVersion) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: kudo.GroupVersion.String(), Kind: "OperatorVersion", Name: version.Name, UID: version.UID}
}

// New returns the OperatorContent that stores a part of a stored OperatorVersion.
func New(version *kudo.OperatorVersion, part []byte) *kudo.OperatorContent {
	digest := DigestOf(part)
	return &kudo.OperatorContent{
		TypeMeta: metav1.TypeMeta{APIVersion: kudo.GroupVersion.String(), Kind: "OperatorContent"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: version.Namespace, Name: Name(version.Name, digest), OwnerReferences: []metav1.OwnerReference{OwnerOf(version)},
		},
		Version: version.Name, Digest: digest, Data: pack(part),
	}
}

func pack(part []byte) []byte {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	_, _ = zipped.Write(part) // a buffer returns no errors
	_ = zipped.Close()
	return packed.Bytes()
}

// Unpack returns the part that an OperatorContent stores. It unpacks at most PartBytes, whatever the data claims to be.
func Unpack(stored *kudo.OperatorContent) ([]byte, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(stored.Data))
	if err != nil {
		return nil, fmt.Errorf("OperatorContent %q cannot be unpacked: %w", stored.Name, err)
	}
	part, err := io.ReadAll(io.LimitReader(zipped, PartBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("OperatorContent %q cannot be unpacked: %w", stored.Name, err)
	case len(part) > PartBytes:
		return nil, fmt.Errorf("OperatorContent %q unpacks to more than %d bytes", stored.Name, PartBytes)
	default:
		return part, nil
	}
}

// Join returns a file from its parts, which it verifies, in order; a missing part is nil. namespace is where they were read.
func Join(namespace string, file kudo.ContentFile, parts [][]byte) ([]byte, error) {
	var joined []byte
	for i, digest := range file.Parts {
		if i >= len(parts) || parts[i] == nil {
			return nil, &Error{Namespace: namespace, File: file, Part: i}
		}
		if found := DigestOf(parts[i]); found != digest {
			return nil, &Error{Namespace: namespace, File: file, Part: i, Found: found}
		}
		joined = append(joined, parts[i]...)
	}
	if found := DigestOf(joined); found != file.Digest || int64(len(joined)) != file.Size {
		return nil, &Error{Namespace: namespace, File: file, Part: len(file.Parts), Found: found}
	}
	return joined, nil
}

// Error reports a file whose content is incomplete or altered.
type Error struct {
	// Namespace is where the content was read.
	Namespace string
	File      kudo.ContentFile
	// Part is the index of the part, or the number of parts if the whole file is altered.
	Part int
	// Found is the digest that was found; empty if the part is missing.
	Found string
	// Cause is why a part that exists cannot be used; nil if its digest says it.
	Cause error
}

func (e *Error) Error() string {
	what := fmt.Sprintf("file %q (%s) of the package", e.File.File, e.File.Digest)
	if e.Part >= len(e.File.Parts) {
		return fmt.Sprintf("%s is altered in namespace %q: it is %s", what, e.Namespace, e.Found)
	}
	part := fmt.Sprintf("part %d of %d (%s) of %s", e.Part+1, len(e.File.Parts), e.File.Parts[e.Part], what)
	switch {
	case e.Cause != nil:
		return fmt.Sprintf("%s is altered in namespace %q: %v", part, e.Namespace, e.Cause)
	case e.Found != "":
		return fmt.Sprintf("%s is altered in namespace %q: it is %s", part, e.Namespace, e.Found)
	default:
		return fmt.Sprintf("%s is missing in namespace %q", part, e.Namespace)
	}
}

func (e *Error) Unwrap() error { return e.Cause }
