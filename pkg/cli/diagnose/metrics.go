package diagnose

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"
)

// metricsPort is the name of the port of metrics in the Deployments of Tandem.
const metricsPort = "metrics"

// metrics reads the metrics of a Tandem pod.
func (d *diagnosis) metrics(ctx context.Context, at side, config *rest.Config, clients kubernetes.Interface, pod *corev1.Pod) {
	port := portOf(pod)
	if port == 0 {
		return
	}
	text, err := readMetrics(ctx, config, clients, pod, port)
	if err != nil {
		d.recordFailure(at.name+": metrics of pod "+pod.Name, err)
	}
	if text != "" {
		d.texts[path.Join(at.folder, "program", "metrics", pod.Name+".txt")] = text
	}
}

// portOf returns the port of metrics of a Tandem pod; 0 of others.
func portOf(pod *corev1.Pod) int32 {
	for _, container := range pod.Spec.Containers {
		i := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == metricsPort })
		if strings.HasPrefix(pod.Name, "addon-") && i >= 0 {
			return container.Ports[i].ContainerPort
		}
	}
	return 0
}

// readMetrics reads metrics through a port that is forwarded to the pod, with a token of the ServiceAccount that may read nothing else: the
// pod does not learn the credentials of the user.
func readMetrics(ctx context.Context, config *rest.Config, clients kubernetes.Interface, pod *corev1.Pod, port int32) (string, error) {
	const minutes = 10 // the shortest lifetime that API servers accept
	account := pod.Spec.ServiceAccountName + "-metrics-reader"
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](minutes * 60)}}
	granted, err := clients.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s: %w", account, err)
	}
	local, end, err := forward(ctx, config, clients, pod, port)
	if err != nil {
		return "", fmt.Errorf("forwarding a port: %w", err)
	}
	defer end()
	return fetchMetrics(ctx, fmt.Sprintf("https://127.0.0.1:%d/metrics", local), granted.Status.Token)
}

// forward forwards a free local port to a port of the pod until end is called.
func forward(ctx context.Context, config *rest.Config, clients kubernetes.Interface, pod *corev1.Pod, port int32) (local uint16, end func(), err error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return 0, nil, err
	}
	url := clients.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err = <-ended:
		return 0, nil, errors.Join(errors.New("the connection has ended"), err)
	case <-ctx.Done():
		close(stop)
		return 0, nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return 0, nil, err
	}
	return ports[0].Local, func() { close(stop) }, nil
}

// fetchMetrics reads metrics with a token. The certificate of a pod is self-signed, but the API server forwards the connection.
func fetchMetrics(ctx context.Context, url, token string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxFileBytes))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the pod answers %s: %s", response.Status, strings.TrimSpace(string(text[:min(len(text), 200)])))
	}
	return string(text), err
}
