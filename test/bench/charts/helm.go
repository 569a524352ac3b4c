package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tandem-addons/tandem/test/bench/process"
)

// admitHelm creates Helm's service account with all permissions, its kubeconfig, and the namespace of the releases.
func (b *bench) admitHelm(ctx context.Context, folder string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bench-helm"}}
	err := errors.Join(
		b.Managed.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: helmNamespace}}),
		b.Managed.Create(ctx, account),
		b.Managed.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
		}),
	)
	if err != nil {
		return fmt.Errorf("admitting Helm: %w", err)
	}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{}}
	if err := b.Managed.SubResource("token").Create(ctx, account, token); err != nil {
		return fmt.Errorf("getting a token of Helm's: %w", err)
	}
	config := b.Managed.Config()
	access := clientcmdapi.NewConfig()
	access.Clusters["managed"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData,
	}
	access.AuthInfos["helm"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	access.Contexts["helm"] = &clientcmdapi.Context{Cluster: "managed", AuthInfo: "helm"}
	access.CurrentContext = "helm"
	b.helmConfig = filepath.Join(folder, "kubeconfig")
	return clientcmd.WriteToFile(*access, b.helmConfig)
}

// install installs the releases by Helm, and uninstalls them.
func (b *bench) install(ctx context.Context) (cost, error) {
	o := &observation{requests: map[string]int{}, user: helmUser}
	c, err := b.measure(o, func(used *process.Usage) error {
		err := b.runHelm(ctx, used)
		entries, read := b.Managed.Log.Next()
		return errors.Join(err, read, o.add(entries))
	})
	if err != nil {
		return cost{}, err
	}
	var used process.Usage
	err = b.runHelm(ctx, &used, "-uninstall")
	return c, errors.Join(err, b.awaitNoPods(ctx, helmNamespace))
}

// runHelm runs Helm's SDK in a process of its own.
func (b *bench) runHelm(ctx context.Context, used *process.Usage, flags ...string) error {
	command := exec.CommandContext(ctx, b.helm, append(flags, "-chart="+filepath.Join(b.folder, chartName), "-namespace="+helmNamespace,
		"-count="+strconv.Itoa(b.instances), "-concurrency="+strconv.Itoa(b.concurrency))...)
	home := filepath.Dir(b.helmConfig)
	qps, burst := b.limits.Rate()
	burst = cmp.Or(burst, 1000) // without a rate it is of discovery only
	command.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "KUBECONFIG="+b.helmConfig,
		fmt.Sprintf("HELM_QPS=%v", qps), fmt.Sprintf("HELM_BURST_LIMIT=%d", burst))
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if err := command.Run(); err != nil {
		return fmt.Errorf("running Helm: %w: %s", err, out.String())
	}
	*used = process.Usage{CPU: command.ProcessState.UserTime() + command.ProcessState.SystemTime()}
	if of, ok := command.ProcessState.SysUsage().(*syscall.Rusage); ok {
		used.Peak = of.Maxrss << 10
	}
	return nil
}
