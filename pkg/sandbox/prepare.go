package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// requestsPerSecond is the QPS limit of this package's clients.
const requestsPerSecond = 200

// newCluster writes the files of the cluster: keys, kubeconfigs, configuration. An existing authority is reused, so that kubeconfigs stay
// valid.
func newCluster(plan clusterPlan, spawner *spawner, onChange func(), now time.Time) (*Cluster, error) {
	c := &Cluster{plan: plan, spawner: spawner, onChange: onChange}
	if err := os.MkdirAll(plan.folder().path("pki"), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of %s: %w", plan.Name, err)
	}
	for _, step := range []func(time.Time) error{c.writeKeys, c.writeKubeconfigs, c.writeOCM} {
		if err := step(now); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", plan.Name, err)
		}
	}
	for _, name := range []string{"audit.yaml", "kwok.yaml"} {
		data, err := clusterFiles.ReadFile("cluster/" + name)
		if err != nil {
			return nil, fmt.Errorf("preparing %s: %w", plan.Name, err)
		}
		if name == "audit.yaml" && plan.AuditPolicy != nil {
			data = plan.AuditPolicy
		}
		data = bytes.ReplaceAll(data, []byte("KUBELET_PORT"), []byte(strconv.Itoa(plan.port("kubelet"))))
		if err := writePrivate(plan.folder().path(name), data); err != nil {
			return nil, fmt.Errorf("preparing %s: %w", plan.Name, err)
		}
	}
	return c, c.connect()
}

func (c *Cluster) writeKeys(now time.Time) error {
	folder := c.plan.folder()
	ca, err := keptPair(folder, "ca", func() (keyPair, error) {
		made, err := newAuthority(c.plan.Name, now)
		if err != nil {
			return keyPair{}, err
		}
		return made.keyPair, nil
	})
	if err != nil {
		return err
	}
	if c.authority, err = parseAuthority(ca); err != nil {
		return err
	}
	if _, err := keptPair(folder, "service-account", newSigningKey); err != nil {
		return err
	}
	serving, err := c.authority.server("kube-apiserver", now)
	if err != nil {
		return err
	}
	if err := writePair(folder, "apiserver", serving); err != nil {
		return err
	}
	client, err := c.authority.client(apiServerAtKubelet(), now)
	if err != nil {
		return err
	}
	return writePair(folder, "kubelet-client", client)
}

func (c *Cluster) writeKubeconfigs(now time.Time) error {
	if err := c.issueKubeconfig(c.Kubeconfig(), administrator(), now); err != nil {
		return err
	}
	for name, id := range c.plan.identities() {
		if err := c.issueKubeconfig(c.plan.identity(name), id, now); err != nil {
			return err
		}
	}
	return nil
}

// issueKubeconfig writes a kubeconfig of this cluster for the identity.
func (c *Cluster) issueKubeconfig(file string, id identity, now time.Time) error {
	pair, err := c.authority.client(id, now)
	if err != nil {
		return err
	}
	data, err := kubeconfig(c.plan.Name, c.plan.server(), id.User, c.authority.Certificate, pair)
	if err != nil {
		return err
	}
	return writePrivate(file, data)
}

// connect creates the administrator's client. The cluster does not have to be running.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of %s: %w", c.plan.Name, err)
	}
	config.QPS, config.Burst = requestsPerSecond, 2*requestsPerSecond
	c.config = config
	return nil
}

// ConfigFor returns a client configuration with a new certificate of the user and its groups. It does not limit requests.
func (c *Cluster) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	pair, err := c.authority.client(identity{User: user, Groups: groups}, time.Now())
	if err != nil {
		return nil, err
	}
	config := c.Config()
	config.CertData, config.KeyData = pair.Certificate, pair.Key
	config.QPS, config.Burst = -1, 0
	return config, nil
}

// keptPair reads a key pair from the folder, or generates and stores it.
func keptPair(folder clusterFolder, name string, generate func() (keyPair, error)) (keyPair, error) {
	certificate, err := os.ReadFile(folder.pki(name + ".crt"))
	if err == nil {
		key, err := os.ReadFile(folder.pki(name + ".key"))
		return keyPair{Certificate: certificate, Key: key}, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return keyPair{}, err
	}
	pair, err := generate()
	if err != nil {
		return keyPair{}, err
	}
	return pair, writePair(folder, name, pair)
}

// writePair writes the key first, so that an existing certificate implies an existing key.
func writePair(folder clusterFolder, name string, pair keyPair) error {
	if err := writePrivate(folder.pki(name+".key"), pair.Key); err != nil {
		return err
	}
	return writePrivate(folder.pki(name+".crt"), pair.Certificate)
}

// writePrivate writes a file that only its owner may read.
func writePrivate(file string, data []byte) error { return os.WriteFile(file, data, 0o600) }
