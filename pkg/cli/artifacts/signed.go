package artifacts

import (
	"context"
	"fmt"

	"github.com/tandem-addons/tandem/pkg/cli/registries"
	"github.com/tandem-addons/tandem/pkg/core/artifact"
	"github.com/tandem-addons/tandem/pkg/core/signature"
	"github.com/tandem-addons/tandem/pkg/oci"
)

// pullSigned returns a package. If the flags require a signature, it returns an error unless the artifact has one.
func pullSigned(ctx context.Context, client *oci.Client, from artifact.Reference, flags *registries.TrustFlags) (*oci.Pulled, error) {
	trust, err := flags.Read()
	if err != nil {
		return nil, err
	}
	pulled, err := client.Pull(ctx, from)
	if err != nil || !flags.IsSet() {
		return pulled, err
	}
	found, err := client.Signatures(ctx, pulled.Reference)
	if err != nil {
		return nil, err
	}
	if _, err := signature.VerifyArtifact(pulled.Reference.Digest, nil, found, trust); err != nil {
		return nil, fmt.Errorf("%s: %w", pulled.Reference, err)
	}
	return pulled, nil
}
