package hub

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tandem-addons/tandem/pkg/hub"
	"github.com/tandem-addons/tandem/pkg/hub/webhook"
)

// signer signs the client certificates of callers of the webhooks.
type signer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newSigner() *signer {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "callers"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	certificate, err := x509.ParseCertificate(signed)
	Expect(err).NotTo(HaveOccurred())
	return &signer{certificate, key}
}

// file returns a file with the signer's certificate.
func (s *signer) file() string {
	GinkgoHelper()
	name := filepath.Join(GinkgoT().TempDir(), "ca.crt")
	Expect(os.WriteFile(name, pemOf("CERTIFICATE", s.certificate.Raw), 0o600)).To(Succeed())
	return name
}

// sign returns a client certificate with that name, and its key.
func (s *signer) sign(name string) (certificate, key []byte) {
	GinkgoHelper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, s.certificate, pair.Public(), s.key)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalECPrivateKey(pair)
	Expect(err).NotTo(HaveOccurred())
	return pemOf("CERTIFICATE", signed), pemOf("EC PRIVATE KEY", encoded)
}

func pemOf(kind string, content []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
}

// nameOfServer is the common name of the API server's client certificate.
const nameOfServer = "kube-apiserver-webhooks"

// callers signs the client certificate that the API server presents to admission webhooks.
var callers *signer

// presentCertificate makes the API server present a client certificate to admission webhooks, by its AdmissionConfiguration.
func presentCertificate(e *envtest.Environment) {
	GinkgoHelper()
	callers = newSigner()
	certificate, key := callers.sign(nameOfServer)
	folder := GinkgoT().TempDir()
	kubeconfig, configuration := filepath.Join(folder, "webhooks.conf"), filepath.Join(folder, "admission.yaml")
	Expect(clientcmd.WriteToFile(clientcmdapi.Config{AuthInfos: map[string]*clientcmdapi.AuthInfo{
		"*": {ClientCertificateData: certificate, ClientKeyData: key},
	}}, kubeconfig)).To(Succeed())
	Expect(os.WriteFile(configuration, fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %s
`, kubeconfig), 0o600)).To(Succeed())
	e.ControlPlane.GetAPIServer().Configure().Set("admission-control-config-file", configuration)
}

// permitLongRequests lets requests with objects of the largest size end on a machine that runs many programs.
func permitLongRequests(e *envtest.Environment) {
	e.ControlPlane.GetAPIServer().Configure().Set("request-timeout", "5m")
}

var _ = Describe("Callers of the webhooks", func() {
	// post sends a request to a webhook, with a client certificate if there is one, and returns the status of the response.
	post := func(ctx context.Context, path string, certificate, key []byte) (int, error) {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(bundle(ctx))
		settings := &tls.Config{RootCAs: roots}
		if certificate != nil {
			pair, err := tls.X509KeyPair(certificate, key)
			if err != nil {
				return 0, err
			}
			settings.Certificates = []tls.Certificate{pair}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+webhookAddress+path, bytes.NewReader([]byte("[]")))
		if err != nil {
			return 0, err
		}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: settings}}).Do(request)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		return response.StatusCode, nil
	}
	authenticating := func(names ...string) func(*rest.Config, *hub.Options) {
		return func(_ *rest.Config, options *hub.Options) {
			options.WebhookCallers = webhook.Callers{CAFile: callers.file(), Names: names}
		}
	}

	It("are authenticated by the API server's client certificate if its authority is configured, except for conversions", func(ctx SpecContext) {
		stopHub()
		_, stopHub = runHub(withWebhooks, authenticating(nameOfServer, "another-server"))
		waitServed(ctx, webhookAddress)
		awaitWebhooks(ctx) // by the API server, which presents its certificate

		certificate, key := callers.sign(nameOfServer)
		Expect(post(ctx, "/admit/instance", certificate, key)).To(Equal(http.StatusBadRequest), "it is read")
		Expect(post(ctx, "/admit/instance", nil, nil)).To(Equal(http.StatusUnauthorized))
		certificate, key = callers.sign("somebody")
		Expect(post(ctx, "/admit/operatorversion", certificate, key)).To(Equal(http.StatusForbidden))
		certificate, key = newSigner().sign(nameOfServer)
		_, err := post(ctx, "/admit/instance", certificate, key)
		Expect(err).To(MatchError(ContainSubstring("tls: ")), "another authority")
		Expect(post(ctx, "/convert", nil, nil)).To(Equal(http.StatusBadRequest), "API servers present no certificate to conversion webhooks")
	})

	It("are judged by the file's current authorities", func(ctx SpecContext) {
		stopHub()
		options := authenticating()
		var file string
		_, stopHub = runHub(withWebhooks, options, func(_ *rest.Config, o *hub.Options) { file = o.WebhookCallers.CAFile })
		waitServed(ctx, webhookAddress)
		certificate, key := callers.sign("any")
		Expect(post(ctx, "/admit/instance", certificate, key)).To(Equal(http.StatusBadRequest))
		next := newSigner()
		Expect(os.WriteFile(file, pemOf("CERTIFICATE", next.certificate.Raw), 0o600)).To(Succeed())
		_, err := post(ctx, "/admit/instance", certificate, key)
		Expect(err).To(HaveOccurred())
		certificate, key = next.sign("any")
		Expect(post(ctx, "/admit/instance", certificate, key)).To(Equal(http.StatusBadRequest))
	})
})
