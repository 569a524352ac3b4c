package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
	"github.com/tandem-addons/tandem/pkg/pack"
	"github.com/tandem-addons/tandem/pkg/tree"
)

// index is what matters of a KUDO repository's index.yaml.
type index struct {
	Entries map[string][]indexEntry `json:"entries"`
}

// indexEntry is one version of a package in a repository.
type indexEntry struct {
	OperatorVersion string `json:"operatorVersion"`
	AppVersion      string `json:"appVersion"`
	// URLs of its tarball, each as good as the others; relative ones begin at the repository.
	URLs []string `json:"urls"`
	// Digest is the SHA-256 of the tarball, in hexadecimal; empty: nothing is compared.
	Digest string `json:"digest"`
}

// openNamed finds the package that a task names by the operator's name, in the repository.
func (l *loader) openNamed(ctx context.Context, task kudo.Task) (source, error) {
	if l.index == nil {
		content, err := l.fetch(ctx, strings.TrimSuffix(l.repository, "/")+"/index.yaml")
		if err != nil {
			return source{}, fmt.Errorf("reading the repository: %w", err)
		}
		var read index
		if err := yaml.Unmarshal(content, &read); err != nil {
			return source{}, fmt.Errorf("reading the repository's index.yaml: %w", err)
		}
		l.index = &read
	}
	entry, err := l.index.choose(task)
	if err != nil {
		return source{}, fmt.Errorf("in the repository %s: %w", shownURL(l.repository), err)
	}
	var failed error
	for _, address := range entry.URLs {
		found, err := l.download(ctx, relativeTo(l.repository, address), entry.Digest)
		if err == nil {
			return found, nil
		}
		failed = errors.Join(failed, err)
	}
	if failed == nil {
		failed = fmt.Errorf("the repository %s gives no URL for it", shownURL(l.repository))
	}
	return source{}, failed
}

// choose is the entry that a task means, by the rule for OperatorVersions.
func (i *index) choose(task kudo.Task) (indexEntry, error) {
	entries := map[string]indexEntry{}
	var candidates []kudo.OperatorVersion
	operator := task.Spec.Package
	for _, entry := range i.Entries[operator] {
		candidate := kudo.OperatorVersion{ObjectMeta: metav1.ObjectMeta{
			Name: pack.VersionName(operator, entry.AppVersion, entry.OperatorVersion),
		}}
		candidate.Spec.Operator = corev1.ObjectReference{Name: operator}
		candidate.Spec.AppVersion, candidate.Spec.Version = entry.AppVersion, entry.OperatorVersion
		entries[candidate.Name] = entry
		candidates = append(candidates, candidate)
	}
	chosen, err := tree.Choose(task, candidates)
	return entries[chosen.Name], err
}

// relativeTo is the address as seen from a repository.
func relativeTo(repository, address string) string {
	base, err := url.Parse(strings.TrimSuffix(repository, "/") + "/")
	if err != nil {
		return address
	}
	target, err := base.Parse(address)
	if err != nil {
		return address
	}
	return target.String()
}

// download is the package in the tarball at a URL, of that digest unless it is empty.
func (l *loader) download(ctx context.Context, address, digest string) (source, error) {
	if known, ok := l.downloaded[address]; ok {
		return known, nil
	}
	content, err := l.fetch(ctx, address)
	if err != nil {
		return source{}, err
	}
	if sum := sha256.Sum256(content); digest != "" && !strings.EqualFold(hex.EncodeToString(sum[:]), digest) {
		return source{}, fmt.Errorf("%s has SHA-256 %x, and not %s as the repository says", shownURL(address), sum, digest)
	}
	found, err := l.archived(shownURL(address), bytes.NewReader(content))
	if err == nil {
		l.downloaded[address] = found
	}
	return found, err
}
