package ocm

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstreamv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/tandem-addons/tandem/manifests"
)

// The volume and the path of the proxy's certificate authority in the pod of addon-agent.
const (
	proxyVolume        = "proxy"
	proxyFolder        = "/var/run/tandem/proxy"
	proxyAuthorityFile = "ca-bundle.crt"
)

// checkProxy rejects an invalid certificate authority, with which the agent would never connect to the hub.
func checkProxy(proxy upstreamv1beta1.ProxyConfig) error {
	if len(proxy.CABundle) > 0 && !x509.NewCertPool().AppendCertsFromPEM(proxy.CABundle) {
		return errors.New("proxyConfig.caBundle has no certificate in PEM")
	}
	return nil
}

// isProxied reports whether the agent connects to the hub through a proxy.
func isProxied(proxy upstreamv1beta1.ProxyConfig) bool {
	return proxy.HTTPProxy != "" || proxy.HTTPSProxy != ""
}

// proxyAuthority returns the ConfigMap with the proxy's own certificate authority; nil if it has none. Another authority results in another
// ConfigMap, so that the pod is replaced with it.
func proxyAuthority(config upstreamv1beta1.AddOnDeploymentConfigSpec) *corev1.ConfigMap {
	bundle := config.ProxyConfig.CABundle
	if !isProxied(config.ProxyConfig) || len(bundle) == 0 {
		return nil
	}
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: installNamespaceOf(config), Name: fmt.Sprintf("tandem-proxy-ca-%.4x", sha256.Sum256(bundle)),
			Labels: map[string]string{manifests.LabelPartOf: manifests.PartOf},
		},
		Data: map[string]string{proxyAuthorityFile: string(bundle)},
	}
}

// throughProxy makes addon-agent's pod connect to the hub through a proxy. It never uses the proxy for the managed cluster's own API
// server.
func throughProxy(pod *corev1.PodSpec, config upstreamv1beta1.AddOnDeploymentConfigSpec) {
	container := &pod.Containers[0]
	container.Env = append(container.Env, proxyVariables(config.ProxyConfig)...)
	authority := proxyAuthority(config)
	if authority == nil {
		return
	}
	container.Args = append(container.Args, "--hub-certificate-authority="+proxyFolder+"/"+proxyAuthorityFile)
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: proxyVolume, MountPath: proxyFolder, ReadOnly: true})
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: proxyVolume, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: authority.Name}},
	}})
}

// proxyVariables returns the usual environment variables for the proxy.
func proxyVariables(proxy upstreamv1beta1.ProxyConfig) []corev1.EnvVar {
	if !isProxied(proxy) {
		return nil
	}
	none := "$(KUBERNETES_SERVICE_HOST)"
	if proxy.NoProxy != "" {
		none += "," + proxy.NoProxy
	}
	var variables []corev1.EnvVar
	for _, v := range []corev1.EnvVar{
		{Name: "HTTP_PROXY", Value: proxy.HTTPProxy}, {Name: "HTTPS_PROXY", Value: proxy.HTTPSProxy}, {Name: "NO_PROXY", Value: none},
	} {
		if v.Value != "" {
			variables = append(variables, v)
		}
	}
	return variables
}
