package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestReleases(t *testing.T) {
	for name, test := range map[string]struct {
		program, version string
		on               platform
		file, checksums  string
		missing          bool
	}{
		"kube-apiserver": {
			program: "kube-apiserver", version: "v1.36.3", on: platform{"linux", "arm64"},
			file:      "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kube-apiserver",
			checksums: "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kube-apiserver.sha256",
		},
		"etcd": {
			program: "etcd", version: "v3.6.16", on: linux,
			file:      "https://github.com/etcd-io/etcd/releases/download/v3.6.16/etcd-v3.6.16-linux-amd64.tar.gz",
			checksums: "https://github.com/etcd-io/etcd/releases/download/v3.6.16/SHA256SUMS",
		},
		"kwok": {
			program: "kwok", version: "v0.8.0", on: platform{"darwin", "arm64"},
			file:      "https://github.com/kubernetes-sigs/kwok/releases/download/v0.8.0/kwok-darwin-arm64",
			checksums: "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags/v0.8.0",
		},
		"kubectl for macOS": {
			program: "kubectl", version: "v1.36.3", on: platform{"darwin", "arm64"},
			file:      "https://dl.k8s.io/release/v1.36.3/bin/darwin/arm64/kubectl",
			checksums: "https://dl.k8s.io/release/v1.36.3/bin/darwin/arm64/kubectl.sha256",
		},
		"kube-apiserver for macOS": {program: "kube-apiserver", version: "v1.36.3", on: platform{"darwin", "arm64"}, missing: true},
		"etcd for macOS":           {program: "etcd", version: "v3.6.16", on: platform{"darwin", "amd64"}, missing: true},
		"kwok for s390x":           {program: "kwok", version: "v0.8.0", on: platform{"linux", "s390x"}, missing: true},
		"kubectl for riscv64":      {program: "kubectl", version: "v1.36.3", on: platform{"linux", "riscv64"}, missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			picked, err := pick(controlPlane(), []string{test.program})
			if err != nil {
				t.Fatal(err)
			}
			got, found := picked[0].released(test.version, test.on)
			if found == test.missing {
				t.Fatalf("published: %t", found)
			}
			if found && (got.file != test.file || got.checksums != test.checksums) {
				t.Errorf("got %s and %s", got.file, got.checksums)
			}
		})
	}
}

func TestListedChecksum(t *testing.T) {
	good, other := sum("good"), sum("other")
	for name, test := range map[string]struct{ checksums, want string }{
		"a checksum and nothing else":   {good, good},
		"with an end of line":           {good + "\r\n", good},
		"in capitals":                   {strings.ToUpper(good), good},
		"a line of sha256sum":           {good + "  etcd.tar.gz\n", good},
		"one of a binary file":          {good + " *etcd.tar.gz\n", good},
		"the one among several":         {other + "  x-etcd.tar.gz\n" + good + "  etcd.tar.gz\n" + other + "  etcd.tar.gz.asc\n", good},
		"that of another file":          {other + "  other.tar.gz\n", ""},
		"two checksums without a name":  {good + "\n" + good + "\n", ""},
		"one that is too short":         {good[:40], ""},
		"one that is not hexadecimal":   {strings.Repeat("x", 64) + "  etcd.tar.gz\n", ""},
		"nothing":                       {"", ""},
		"a page":                        {"<html>\n<body>etcd.tar.gz</body>\n</html>", ""},
		"a first line that is not good": {"short  etcd.tar.gz\n" + good + "  etcd.tar.gz\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := listedChecksum([]byte(test.checksums), "etcd.tar.gz")
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestGithubDigest(t *testing.T) {
	good := sum("good")
	for name, test := range map[string]struct{ answer, want string }{
		"the digest of the file": {`{"id": 1, "assets": [{"name": "kwok.yaml", "digest": "sha256:x"}, {"name": "kwok", "digest": "sha256:` + good + `"}]}`, good},
		"no digest":              {`{"assets": [{"name": "kwok", "digest": null}]}`, ""},
		"of another kind":        {`{"assets": [{"name": "kwok", "digest": "sha512:` + good + `"}]}`, ""},
		"too short":              {`{"assets": [{"name": "kwok", "digest": "sha256:abcd"}]}`, ""},
		"no such file":           {`{"assets": []}`, ""},
		"an error of the API":    {`{"message": "API rate limit exceeded"}`, ""},
		"no JSON":                {`<html>`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := githubDigest([]byte(test.answer), "kwok")
			if got != test.want || (err != nil) != (test.want == "") {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func FuzzChecksums(f *testing.F) {
	f.Add([]byte(sum("")+"  etcd"), "etcd")
	f.Add([]byte(`{"assets": [{"name": "kwok", "digest": "sha256:`+sum("")+`"}]}`), "kwok")
	whole := regexp.MustCompile(`^[0-9a-f]{64}$`)
	f.Fuzz(func(t *testing.T, content []byte, file string) {
		for _, checksum := range []func([]byte, string) (string, error){listedChecksum, githubDigest} {
			if got, err := checksum(content, file); err == nil && !whole.MatchString(got) || err != nil && got != "" {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
}

func TestMirror(t *testing.T) {
	const file = "https://dl.k8s.io/release/v1/bin/linux/amd64/kubectl"
	for name, test := range map[string]struct {
		value, want, host string
		off, problem      bool
	}{
		"none":                  {value: "", want: file, host: "dl.k8s.io"},
		"off":                   {value: "off", off: true, want: file, host: "dl.k8s.io"},
		"a server":              {value: "http://127.0.0.1:8080", want: "http://127.0.0.1:8080/dl.k8s.io/release/v1/bin/linux/amd64/kubectl", host: "127.0.0.1:8080"},
		"a folder":              {value: "https://mirror/files/", want: "https://mirror/files/dl.k8s.io/release/v1/bin/linux/amd64/kubectl", host: "mirror"},
		"one with a password":   {value: "https://me:secret@mirror", want: "https://me:secret@mirror/dl.k8s.io/release/v1/bin/linux/amd64/kubectl", host: "mirror"},
		"a word":                {value: "on", problem: true},
		"a folder on this disk": {value: "file:///srv/mirror", problem: true},
		"a host without http":   {value: "mirror:8080", problem: true},
		"what is no URL":        {value: "http://me:secret@[", problem: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseMirror(test.value)
			if test.problem {
				if err == nil || strings.Contains(err.Error(), "secret") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || got.off != test.off || got.of(file) != test.want || hostOf(got.of(file)) != test.host {
				t.Errorf("got %+v with %s, %v", got, got.of(file), err)
			}
			if shown := redacted(got.of(file)) + got.mention(); strings.Contains(shown, "secret") {
				t.Errorf("it shows %s", shown)
			}
		})
	}
}
