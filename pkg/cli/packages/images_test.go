package packages

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tandem-addons/tandem/pkg/bundle/bundletest"
	"github.com/tandem-addons/tandem/pkg/chart"
	"github.com/tandem-addons/tandem/pkg/cli/clitest"
)

// listImages runs the command.
func listImages(t *testing.T, args ...string) (string, error) {
	t.Helper()
	f := clitest.Factory("")
	cmd := NewCmdImages(f, nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return f.Out.(*bytes.Buffer).String(), err
}

// digest matches the digest in the version of a package around a chart.
var digest = regexp.MustCompile(`(-s)[0-9a-f]{10}`)

func TestImages(t *testing.T) {
	for name, args := range map[string][]string{
		"images-kafka":     {"../../../examples/packages/kafka"},
		"images-streaming": {"../../../examples/packages/streaming"},
		"images-chart":     {copyOfShop(t)},
		"images-registry":  {"../../../examples/packages/streaming", "--registry", "=all.example.com", "--registry", "docker.io=mirror.example.com:5000"},
		"images-json":      {"../../../examples/stack/secrets", "-o", "json"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := listImages(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			clitest.Golden(t, name, digest.ReplaceAllString(output, "${1}DIGEST"))
		})
	}
}

func TestImagesOfAnArchiveOfAChart(t *testing.T) {
	archive, err := chart.Pack(os.DirFS("../../../examples/stack/secrets"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secrets.tgz")
	bundletest.WriteFile(t, file, archive)
	output, err := listImages(t, file)
	if err != nil || strings.Count(output, "registry.example.com/secrets:1.0") != 2 {
		t.Errorf("%v: %s", err, output)
	}
}

func TestImagesOfAPackageThatHasNone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "zz")
	bundletest.WritePackage(t, dir, "1.0.0")
	output, err := listImages(t, dir)
	if err != nil || output != "# No images were found.\n" {
		t.Errorf("%v: %s", err, output)
	}
}

func TestImagesRefusesRegistriesThatAreNone(t *testing.T) {
	for given, want := range map[string]string{
		"quay.io":                     `--registry "quay.io": must be SOURCE=MIRROR, such as quay.io=mirror.example.com/quay: mirror is missing`,
		"quay.io=":                    "mirror is missing",
		"quay.io=https://example.com": `mirror "https://example.com" is not the beginning of an image's name`,
	} {
		if _, err := listImages(t, "../../../examples/packages/streaming", "--registry", given); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", given, err)
		}
	}
}
