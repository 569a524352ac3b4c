// Package registries holds the flags of the plugin's commands that reach OCI registries, and reads keys. It touches no cluster.
package registries

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/oci"
	"github.com/tandem-addons/tandem/pkg/text"
)

// Flags are the flags for the connection to registries.
type Flags struct {
	options oci.Options
	client  *oci.Client
}

// AddTo adds the flags to a command.
func (f *Flags) AddTo(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.options.PlainHTTP, "plain-http", nil,
		"Hosts of OCI registries, with their ports, to connect to without TLS. Registries on this machine never use it.")
	flags.StringVar(&f.options.CAFile, "ca-file", "", "File with certificate authorities of OCI registries, in addition to those of the system.")
	flags.DurationVar(&f.options.Timeout, "registry-timeout", oci.DefaultTimeout, "Maximum duration of an operation on a package or image in an OCI registry.")
}

// Check returns an error if a flag is invalid.
func (f *Flags) Check() error {
	if f.options.Timeout < 0 {
		return fmt.Errorf("--registry-timeout must be positive, got %s", f.options.Timeout)
	}
	return nil
}

// Client returns the client of registries, which is created once.
func (f *Flags) Client() (*oci.Client, error) {
	if err := f.Check(); err != nil || f.client != nil {
		return f.client, err
	}
	var err error
	f.client, err = oci.New(f.options)
	return f.client, err
}

// ReadBounded returns the content of a file that has at most that many bytes.
func ReadBounded(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", text.Quote(name), limit)
	}
	return data, err
}

// PasswordVariable is the environment variable with the password of an encrypted private key, as for cosign.
const PasswordVariable = "COSIGN_PASSWORD"

// ReadPrivateKey returns the private key in a file.
func ReadPrivateKey(name string) (signature.PrivateKey, error) {
	data, err := ReadBounded(name, signature.MaxKeyBytes)
	if err != nil {
		return signature.PrivateKey{}, fmt.Errorf("reading the private key: %w", err)
	}
	key, err := signature.ParsePrivateKey(data, []byte(os.Getenv(PasswordVariable)))
	switch {
	case errors.Is(err, signature.ErrPassword):
		return key, fmt.Errorf("%s: %w: set it in the environment variable %s", text.Quote(name), err, PasswordVariable)
	case err != nil:
		return key, fmt.Errorf("%s %w", text.Quote(name), err)
	}
	return key, nil
}
