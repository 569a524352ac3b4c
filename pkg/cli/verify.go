package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/tandem-addons/tandem/pkg/pack"
)

func verifyCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Say everything that is wrong with a package",
		Long: "Verify reads the package in DIR (operator.yaml, params.yaml, templates/) and prints what it finds, a line each:\n" +
			"FILE:LINE:COLUMN: error|warning: MESSAGE. It exits with 1 if there are errors. It needs no cluster.",
		Args: exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch output {
			case "":
			case "json":
				return verifyJSON(streams.Out, args[0])
			default:
				return usagef(cmd, "unknown output %q: want json", output)
			}
			p, err := verifiedPackage(streams.Out, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(streams.Out, "package %s is valid: OperatorVersion %s\n", args[0], versionName(p))
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json: print one object for programs to read")
	return cmd
}

// verdict is what verification has to say, for programs.
type verdict struct {
	Package         string    `json:"package"`
	OperatorVersion string    `json:"operatorVersion,omitempty"`
	Valid           bool      `json:"valid"`
	Findings        []finding `json:"findings"`
}

type finding struct {
	File     string        `json:"file"`
	Line     int           `json:"line,omitempty"`
	Column   int           `json:"column,omitempty"`
	Severity pack.Severity `json:"severity"`
	Message  string        `json:"message"`
}

// verifyJSON prints the verdict about a package. It fails as verification does, after it has printed.
func verifyJSON(out io.Writer, dir string) error {
	p, findings, err := loadPackage(dir)
	if err != nil {
		return err
	}
	invalid := validity(dir, findings)
	v := verdict{Package: dir, Valid: invalid == nil, Findings: []finding{}}
	if v.Valid {
		v.OperatorVersion = versionName(p)
	}
	for _, f := range findings {
		v.Findings = append(v.Findings, finding{File: f.File, Line: f.Line, Column: f.Column, Severity: f.Severity, Message: f.Message})
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	return invalid
}

// verifiedPackage loads a package and prints the findings to out. A package with errors is an error.
func verifiedPackage(out io.Writer, dir string) (*pack.Package, error) {
	p, findings, err := loadPackage(dir)
	if err != nil {
		return nil, err
	}
	if err := writeFindings(out, dir, findings); err != nil {
		return nil, err
	}
	return p, validity(dir, findings)
}

// loadPackage reads a package and says everything there is to say about it.
func loadPackage(dir string) (*pack.Package, []pack.Finding, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, nil, fmt.Errorf("%s is not a folder: name the one that holds operator.yaml; an archive has to be unpacked first", dir)
	}
	root, err := os.OpenRoot(dir) // symbolic links cannot lead out of it
	if err != nil {
		return nil, nil, fmt.Errorf("opening package: %w", err)
	}
	defer root.Close()
	if inner := operatorFolder(root.FS()); inner != "" {
		return nil, nil, fmt.Errorf("%s holds no operator.yaml, but %s does: name that", dir, filepath.Join(dir, inner))
	}
	p, _ := pack.Load(root.FS())
	return p, p.Verify(), nil
}

// validity is the error that a package with errors is.
func validity(dir string, findings []pack.Finding) error {
	faults := len(pack.Errors(findings))
	if faults == 0 {
		return nil
	}
	found := counted(faults, "error")
	if warnings := len(findings) - faults; warnings > 0 {
		found += ", " + counted(warnings, "warning")
	}
	return fmt.Errorf("package %s is not valid: %s", dir, found)
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
		if err := printers.WriteEscaped(out, f.String()+"\n"); err != nil {
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
