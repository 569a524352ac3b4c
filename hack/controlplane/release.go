package main

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// release is the location of a published program for one platform, with the checksum of its file.
type release struct {
	file      string // URL of the program, or of a tarball that contains it
	member    string // name of the program in the tarball; empty if the file is the program
	checksums string // URL of the file's SHA-256
	checksum  func(checksums []byte, file string) (string, error)
}

// The platforms with published files, as listed in hack/lib/golang.sh of Kubernetes and in the release scripts of etcd and kwok. (etcd
// publishes zip files for other platforms; for those it is built.)
const (
	serverPlatforms = " linux/amd64 linux/arm64 linux/ppc64le linux/s390x "
	clientPlatforms = serverPlatforms + "linux/386 linux/arm darwin/amd64 darwin/arm64 "
	etcdPlatforms   = serverPlatforms
	kwokPlatforms   = " linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 "
)

func isAmong(platforms string, on platform) bool {
	return strings.Contains(platforms, " "+on.String()+" ")
}

func kubernetesRelease(name, platforms string) func(string, platform) (release, bool) {
	return func(version string, on platform) (release, bool) {
		file := fmt.Sprintf("https://dl.k8s.io/release/%s/bin/%s/%s", version, on, name)
		return release{file: file, checksums: file + ".sha256", checksum: listedChecksum}, isAmong(platforms, on)
	}
}

func etcdRelease(version string, on platform) (release, bool) {
	folder := "https://github.com/etcd-io/etcd/releases/download/" + version
	name := fmt.Sprintf("etcd-%s-%s-%s", version, on.os, on.arch)
	return release{
		file: folder + "/" + name + ".tar.gz", member: name + "/etcd", checksums: folder + "/SHA256SUMS", checksum: listedChecksum,
	}, isAmong(etcdPlatforms, on)
}

// kwokRelease uses the digests that GitHub stores for release files, because kwok does not publish checksums.
func kwokRelease(version string, on platform) (release, bool) {
	return release{
		file:      fmt.Sprintf("https://github.com/kubernetes-sigs/kwok/releases/download/%s/kwok-%s-%s", version, on.os, on.arch),
		checksums: "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/" + version,
		checksum:  githubDigest,
	}, isAmong(kwokPlatforms, on)
}

// listedChecksum finds the checksum of a file in the output of sha256sum, or in a text that contains only a checksum.
func listedChecksum(checksums []byte, file string) (string, error) {
	lines := strings.Split(strings.TrimSpace(string(checksums)), "\n")
	for _, line := range lines {
		fields := strings.Fields(line)
		alone := len(lines) == 1 && len(fields) == 1
		if alone || len(fields) == 2 && strings.TrimPrefix(fields[1], "*") == file {
			return sha256Of(fields[0], file)
		}
	}
	return "", fmt.Errorf("it has no checksum of %s", file)
}

// githubDigest finds the checksum of a file in a release returned by GitHub's API.
func githubDigest(answer []byte, file string) (string, error) {
	var release struct {
		Assets []struct{ Name, Digest string }
	}
	if err := json.Unmarshal(answer, &release); err != nil {
		return "", fmt.Errorf("it is not a GitHub release: %w", err)
	}
	for _, asset := range release.Assets {
		if digest, found := strings.CutPrefix(asset.Digest, "sha256:"); found && asset.Name == file {
			return sha256Of(digest, file)
		}
	}
	return "", fmt.Errorf("it has no SHA-256 digest of %s", file)
}

func sha256Of(text, file string) (string, error) {
	if sum, err := hex.DecodeString(text); err != nil || len(sum) != 32 {
		return "", fmt.Errorf("its checksum of %s is %.80q, not a SHA-256", file, text)
	}
	return strings.ToLower(text), nil
}

// mirror is the parsed value of TANDEM_MIRROR.
type mirror struct {
	off bool
	url string // of the folder that has one folder per host; empty to use the hosts themselves
}

func parseMirror(value string) (mirror, error) {
	switch value {
	case "":
		return mirror{}, nil
	case "off":
		return mirror{off: true}, nil
	}
	parsed, err := url.Parse(value)
	if err != nil || parsed.Host == "" || parsed.RawQuery != "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		// The value is not included, because it may contain a password.
		return mirror{}, errors.New(`invalid TANDEM_MIRROR: must be "off" or the URL of a folder, such as https://mirror.example/files`)
	}
	return mirror{url: strings.TrimSuffix(value, "/")}, nil
}

// of returns the URL of a file on the mirror.
func (m mirror) of(file string) string {
	if m.url == "" {
		return file
	}
	return m.url + "/" + strings.TrimPrefix(file, "https://")
}

// mention returns a note that names the mirror, or an empty string without one.
func (m mirror) mention() string {
	if m.url == "" {
		return ""
	}
	return " from " + redacted(m.url)
}

// redacted returns the URL without a password.
func redacted(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return "an invalid address"
	}
	return parsed.Redacted()
}

// hostOf returns the host of a URL, with its port.
func hostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host[strings.LastIndex(host, "@")+1:]
}

// fileName returns the last element of a URL's path.
func fileName(file string) string { return path.Base(file) }
