package sandbox

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig returns a kubeconfig with a client certificate for the cluster at server. Context and cluster have the cluster's name, and the
// user has it as a prefix, so that the files of several clusters can be merged.
func kubeconfig(cluster, server, user string, ca []byte, client keyPair) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = cluster
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos[cluster+"-"+user] = &clientcmdapi.AuthInfo{
		ClientCertificateData: client.Certificate,
		ClientKeyData:         client.Key,
	}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster + "-" + user}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %s for %s: %w", user, cluster, err)
	}
	return data, nil
}
