package cli

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tandem-addons/tandem/pkg/pack"
)

func verifyCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "verify DIR",
		Short: "Say everything that is wrong with a package",
		Long: "Verify reads the package in DIR (operator.yaml, params.yaml, templates/) and prints what it finds, a line each:\n" +
			"FILE:LINE: error|warning: MESSAGE. It exits with 1 if there are errors. It needs no cluster.",
		Args: exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := verifiedPackage(streams.Out, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(streams.Out, "package %s is valid: OperatorVersion %s\n", args[0], versionName(p))
			return err
		},
	}
}

// verifiedPackage loads a package and prints the findings to out. A package with errors is an error.
func verifiedPackage(out io.Writer, dir string) (*pack.Package, error) {
	root, err := os.OpenRoot(dir) // symbolic links cannot lead out of it
	if err != nil {
		return nil, fmt.Errorf("opening package: %w", err)
	}
	defer root.Close()
	if inner := operatorFolder(root.FS()); inner != "" {
		return nil, fmt.Errorf("%s holds no operator.yaml, but %s does: name that", dir, filepath.Join(dir, inner))
	}
	p, _ := pack.Load(root.FS())
	findings := p.Verify()
	if err := writeFindings(out, dir, findings); err != nil {
		return nil, err
	}
	if count := len(pack.Errors(findings)); count > 0 {
		return nil, fmt.Errorf("package %s is not valid: %s", dir, counted(count, "error"))
	}
	return p, nil
}

// operatorFolder is where repositories of KUDO operators keep the package, if it is only there.
func operatorFolder(fsys fs.FS) string {
	const inner = "operator"
	if _, err := fs.Stat(fsys, "operator.yaml"); err == nil {
		return ""
	}
	if _, err := fs.Stat(fsys, path.Join(inner, "operator.yaml")); err != nil {
		return ""
	}
	return inner
}

// writeFindings prints a line for each finding, with the file as seen from the working directory.
func writeFindings(out io.Writer, dir string, findings []pack.Finding) error {
	for _, f := range findings {
		f.File = filepath.Join(dir, filepath.FromSlash(f.File))
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	return nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func versionName(p *pack.Package) string {
	return pack.VersionName(p.Name, p.Version.AppVersion, p.Version.Version)
}
