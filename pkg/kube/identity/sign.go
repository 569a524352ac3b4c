package identity

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// signTimeout is the timeout for the hub to sign a certificate.
const signTimeout = time.Minute

// Sign waits until the hub has signed a stored request, and returns the certificate (PEM). It reports the reason if the request is denied or
// fails, and what to check if it is not signed within a minute.
func Sign(ctx context.Context, hub client.Reader, csr *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	err := wait.PollUntilContextTimeout(ctx, time.Second/4, signTimeout, true, func(ctx context.Context) (bool, error) {
		if err := hub.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			return false, err
		}
		for _, condition := range csr.Status.Conditions {
			if condition.Type == certificatesv1.CertificateFailed || condition.Type == certificatesv1.CertificateDenied {
				return false, fmt.Errorf("%s: %s", condition.Reason, condition.Message)
			}
		}
		return len(csr.Status.Certificate) > 0, nil
	})
	switch {
	case wait.Interrupted(err) && ctx.Err() == nil && !isApproved(csr):
		return nil, fmt.Errorf("waiting for the certificate: request %q was not approved within %s; check that addon-manager is running on the hub",
			csr.Name, signTimeout)
	case wait.Interrupted(err) && ctx.Err() == nil:
		return nil, fmt.Errorf("waiting for the certificate: the hub did not sign it within %s; check that it runs a signer for %s",
			signTimeout, csr.Spec.SignerName)
	case err != nil:
		return nil, fmt.Errorf("waiting for the certificate: %w", err)
	}
	return csr.Status.Certificate, nil
}

func isApproved(csr *certificatesv1.CertificateSigningRequest) bool {
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateApproved {
			return true
		}
	}
	return false
}
