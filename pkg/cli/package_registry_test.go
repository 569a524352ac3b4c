package cli

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart/registry/registrytest"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
	"github.com/tandem-addons/tandem/test/sigstore"
)

// writeKeys writes a pair of keys as NAME.key and NAME.pub in the working directory.
func writeKeys(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	bundletest.WriteFile(t, name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	bundletest.WriteFile(t, name+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
}

var (
	wholeDigest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	shownDigest = regexp.MustCompile(`sha256:[0-9a-f]{12,64}|[0-9a-f]{64}`)
	shownKey    = regexp.MustCompile(`(one of the keys: )[^\n;]*?(;|, or by|\n)`)
)

// workflow is the identity of a CI job.
const workflow = "https://github.com/example/packages/.github/workflows/release.yaml@refs/tags/v1.0.0"

// TestEmptyTrustFlags gives each flag about signatures without a value, like a script whose variables are unset: nothing is read or accepted.
func TestEmptyTrustFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	const identity = "--trusted-root=none.json --certificate-identity=a@example.com --certificate-oidc-issuer=https://a.example.com"
	place := "oci://registry.invalid/packages/shop:1.0.0"
	for _, command := range []string{"verify " + place, "push " + place, "push shop " + place, "pull " + place, "copy " + place + " " + place} {
		for _, flag := range []string{
			"--key", "--trusted-root", "--certificate-identity", "--certificate-identity-regexp", "--certificate-oidc-issuer", "--certificate-oidc-issuer-regexp",
		} {
			for _, others := range []string{"", " --key=none.pub", " " + identity} {
				if strings.HasPrefix(command, "push shop") && others != "" { // refused for another reason
					continue
				}
				args := "package " + command + others + " " + flag + "="
				output, code := run(strings.Fields(args)...)
				if code != ExitUsage || !strings.Contains(output, flag+" is empty") && !strings.Contains(output, "for a package that is stored on the hub") {
					t.Errorf("%s: exit code %d\n%s", args, code, output)
				}
			}
		}
	}
}

// TestPackagesInRegistries pushes a package with a child to a registry, and runs each command for packages in registries.
func TestPackagesInRegistries(t *testing.T) {
	registrytest.Alone(t)
	first, second := registrytest.Registry(t, false), registrytest.Registry(t, false)
	t.Chdir(t.TempDir())
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none")) // no command needs a hub
	bundletest.WritePackage(t, "shop", "1.0.0", "package: ./cart")
	bundletest.WritePackage(t, "shop/cart", "0.2.0")
	bundletest.WritePackage(t, "changed/shop", "1.0.0")
	bundletest.WritePackage(t, "stack", "1.0.0", "package: oci://"+first+"/packages/shop:1.0.0")
	bundletest.WritePackage(t, "offline", "1.0.0", "package: oci://registry.invalid/packages/shop:1.0.0")
	t.Setenv("TANDEM_CHART_MIRRORS", "oci://registry.invalid=oci://"+second+"/mirror")
	bundletest.WriteFile(t, "notes.txt", []byte("no key"))
	writeKeys(t, "own")
	writeKeys(t, "other")
	virtual, stranger := sigstore.New(t), sigstore.New(t)
	bundletest.WriteFile(t, "root.json", virtual.Root())
	bundletest.WriteFile(t, "stranger.json", stranger.Root())
	pushed := "" // the digest of the first package
	for _, step := range []struct {
		golden string
		code   int
		args   string
	}{
		{"package-push-registry", ExitOK, "push shop oci://FIRST/packages/shop"},
		{"", ExitOK, "push shop oci://FIRST/packages/shop"},
		{"package-push-conflict", ExitFailure, "push changed/shop oci://FIRST/packages/shop"},
		{"package-push-two", ExitUsage, "push oci://FIRST/packages/shop oci://SECOND/packages/shop"},
		{"package-pull", ExitOK, "pull oci://FIRST/packages/shop"},
		{"package-pull-missing", ExitFailure, "pull oci://FIRST/packages/none:1.0.0"},
		{"package-pull-unsigned", ExitFailure, "pull oci://FIRST/packages/shop:1.0.0 --key own.pub"},
		{"package-sign-tag", ExitUsage, "sign oci://FIRST/packages/shop:1.0.0 --key own.key"},
		{"package-sign", ExitOK, "sign oci://FIRST/packages/shop@PUSHED --key own.key"},
		{"package-sign-key", ExitUsage, "sign oci://FIRST/packages/shop@PUSHED"},
		{"package-sign-broken", ExitFailure, "sign oci://FIRST/packages/shop@PUSHED --key notes.txt"},
		{"", ExitOK, "pull oci://FIRST/packages/shop:1.0.0 --key own.pub -o signed.tgz"},
		{"package-pull-key", ExitFailure, "pull oci://FIRST/packages/shop:1.0.0 --key other.pub"},
		{"package-verify-signed", ExitOK, "verify oci://FIRST/packages/shop:1.0.0 --key other.pub --key own.pub"},
		{"package-verify-key", ExitFailure, "verify oci://FIRST/packages/shop:1.0.0 --key other.pub"},
		{"package-verify-folder-key", ExitFailure, "verify shop --key own.pub"},
		{"", ExitFailure, "verify oci://FIRST/packages/shop:1.0.0 WORKFLOW"}, // it has no such signature yet
		{"package-sign-payload", ExitOK, "sign oci://FIRST/packages/shop@PUSHED --print-payload"},
		{"package-sign-modes", ExitUsage, "sign oci://FIRST/packages/shop@PUSHED --print-payload --key own.key"},
		{"package-sign-half", ExitUsage, "sign oci://FIRST/packages/shop@PUSHED --payload payload.json"},
		{"package-sign-altered", ExitFailure, "sign oci://FIRST/packages/shop@PUSHED --payload altered.json --bundle payload.sigstore.json"},
		{"package-sign-other-bundle", ExitFailure, "sign oci://FIRST/packages/shop@PUSHED --payload payload.json --bundle other.sigstore.json"},
		{"package-sign-no-bundle", ExitFailure, "sign oci://FIRST/packages/shop@PUSHED --payload payload.json --bundle notes.txt"},
		{"package-sign-bundle", ExitOK, "sign oci://FIRST/packages/shop@PUSHED --payload payload.json --bundle payload.sigstore.json"},
		{"package-verify-identity", ExitOK, "verify oci://FIRST/packages/shop:1.0.0 WORKFLOW"},
		{"", ExitOK, "verify oci://FIRST/packages/shop:1.0.0 --trusted-root root.json --certificate-identity-regexp https://github\\.com/example/.* " +
			"--certificate-oidc-issuer-regexp https://token\\.actions\\.githubusercontent\\.com"},
		{"", ExitOK, "verify oci://FIRST/packages/shop:1.0.0 --key other.pub WORKFLOW"},
		{"package-verify-other-identity", ExitFailure, "verify oci://FIRST/packages/shop:1.0.0 --trusted-root root.json --certificate-identity evil@example.com --certificate-oidc-issuer https://accounts.example.com"},
		{"package-verify-other-root", ExitFailure, "verify oci://FIRST/packages/shop:1.0.0 --key other.pub --trusted-root stranger.json --certificate-identity ci@example.com --certificate-oidc-issuer https://accounts.example.com"},
		{"package-verify-everyone", ExitFailure, "verify oci://FIRST/packages/shop:1.0.0 --trusted-root root.json --certificate-identity-regexp .* --certificate-oidc-issuer https://accounts.example.com"},
		{"package-verify-no-root", ExitUsage, "verify oci://FIRST/packages/shop:1.0.0 --certificate-identity evil@example.com"},
		{"package-verify-empty", ExitUsage, "verify oci://FIRST/packages/shop:1.0.0 --trusted-root= --certificate-identity= --certificate-oidc-issuer="},
		{"package-verify-keyless", ExitFailure, "verify oci://FIRST/packages/shop:1.0.0 --key other.pub"},
		{"", ExitOK, "pull oci://FIRST/packages/shop:1.0.0 WORKFLOW -o keyless.tgz"},
		{"package-copy-untrusted", ExitFailure, "copy oci://FIRST/packages/shop oci://SECOND/copies/shop --key other.pub"},
		{"", ExitOK, "copy oci://FIRST/packages/shop oci://SECOND/copies/keyless WORKFLOW"},
		{"", ExitOK, "verify oci://SECOND/copies/keyless:1.0.0 WORKFLOW"},
		{"package-copy", ExitOK, "copy oci://FIRST/packages/shop oci://SECOND/copies/shop"},
		{"package-copy-reference", ExitUsage, "copy shop oci://SECOND/copies/shop"},
		{"", ExitOK, "verify oci://SECOND/copies/shop:1.0.0 --key own.pub"},
		{"package-mirror", ExitOK, "mirror oci://FIRST/packages/shop:1.0.0 oci://SECOND/mirror"},
		{"package-mirror-dry-run", ExitOK, "mirror oci://FIRST/packages/shop:1.0.0 oci://SECOND/other --dry-run"},
		{"package-mirror-tag", ExitUsage, "mirror oci://FIRST/packages/shop:1.0.0 oci://SECOND/mirror:1.0.0"},
		{"", ExitOK, "verify oci://SECOND/mirror/packages/shop:1.0.0 --key own.pub"},
		{"package-push-empty-key", ExitUsage, "push changed/shop oci://FIRST/packages/shop --overwrite --sign-key="},
		{"package-push-registry-signed", ExitOK, "push changed/shop oci://FIRST/packages/shop --overwrite --sign-key other.key"},
		{"", ExitOK, "verify oci://FIRST/packages/shop:1.0.0 --key other.pub"},
		{"package-push-stack", ExitOK, "push stack oci://FIRST/packages/stack"},
		{"package-mirror-stack", ExitOK, "mirror oci://FIRST/packages/stack oci://SECOND/offline"},
		{"", ExitOK, "verify oci://SECOND/offline/packages/stack"},
		{"", ExitOK, "verify offline"},
		{"", ExitOK, "show oci://SECOND/copies/shop:1.0.0"},
		{"", ExitOK, "tree oci://SECOND/copies/shop:1.0.0"},
		{"", ExitOK, "diff oci://FIRST/packages/shop:1.0.0 oci://SECOND/copies/shop:1.0.0"},
		{"", ExitOK, "images oci://SECOND/copies/shop:1.0.0"},
	} {
		hosts := strings.NewReplacer("FIRST", first, "SECOND", second, "PUSHED", pushed,
			"WORKFLOW", "--trusted-root root.json --certificate-identity "+workflow+" --certificate-oidc-issuer https://token.actions.githubusercontent.com")
		output, code := run(append([]string{"package"}, strings.Fields(hosts.Replace(step.args))...)...)
		if code != step.code {
			t.Fatalf("package %s: exit code %d\n%s", step.args, code, output)
		}
		if strings.HasSuffix(step.args, "--print-payload") && code == ExitOK {
			bundletest.WriteFile(t, "payload.json", []byte(output))
			bundletest.WriteFile(t, "payload.sigstore.json", virtual.Sign([]byte(output), workflow, "https://token.actions.githubusercontent.com"))
			altered := strings.Replace(output, "cart-0.2.0", "cart-0.3.0", 1)
			bundletest.WriteFile(t, "altered.json", []byte(altered))
			bundletest.WriteFile(t, "other.sigstore.json", virtual.Sign([]byte(altered), workflow, "https://token.actions.githubusercontent.com"))
		}
		if pushed == "" {
			pushed = wholeDigest.FindString(output)
		}
		if step.golden != "" {
			output = strings.NewReplacer(first, "first.example.com", second, "second.example.com", strings.ReplaceAll(first, ":", "-"), "first.example.com").Replace(output)
			clitest.Golden(t, step.golden, shownKey.ReplaceAllString(shownDigest.ReplaceAllString(output, "sha256:DIGEST"), "${1}KEY${2}"))
		}
	}
	pulled, signed := readFile(t, "shop-1.0.0.tgz"), readFile(t, "signed.tgz")
	if !bytes.Equal(pulled, signed) || len(pulled) == 0 {
		t.Error("the tarballs of one digest differ")
	}
	if output, code := run("package", "verify", "shop-1.0.0.tgz"); code != ExitOK {
		t.Error(output)
	}
}

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
