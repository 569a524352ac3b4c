package environment

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Node is a node for which a test acts as scheduler and kubelet: it sets the status of pods, and the content of their files.
type Node struct {
	Name string
	// Reads counts the files that were opened.
	Reads atomic.Int32

	mutex sync.Mutex
	files map[string]string
}

// Join creates the node, whose kubelet listens at address: kubelet.Handler(n.Open). Until ctx ends, its pods that are being deleted are
// removed, as if their containers had stopped.
func (n *Node) Join(ctx context.Context, cluster client.Client, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("creating a node: %w", err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return fmt.Errorf("creating a node: %w", err)
	}
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	if err := cluster.Create(ctx, object); err != nil {
		return err
	}
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	object.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	if err := cluster.Status().Update(ctx, object); err != nil {
		return err
	}
	go wait.UntilWithContext(ctx, func(ctx context.Context) { n.end(ctx, cluster) }, 50*time.Millisecond)
	return nil
}

// end removes the node's pods that are being deleted.
func (n *Node) end(ctx context.Context, cluster client.Client) {
	var pods corev1.PodList
	if cluster.List(ctx, &pods, client.MatchingFields{"spec.nodeName": n.Name}) != nil {
		return // until the next call
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			_ = cluster.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0))
		}
	}
}

// Run assigns a pod to the node, unless it is already assigned, and sets its status.
func (n *Node) Run(ctx context.Context, cluster client.Client, pod *corev1.Pod, edit func(*corev1.PodStatus)) error {
	if pod.Spec.NodeName == "" {
		target := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: n.Name}}
		if err := cluster.SubResource("binding").Create(ctx, pod, target); err != nil {
			return err
		}
		if err := cluster.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
	}
	edit(&pod.Status)
	return cluster.Status().Update(ctx, pod)
}

// Open opens a file of a container.
func (n *Node) Open(name string) (io.ReadCloser, error) {
	n.Reads.Add(1)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	content, found := n.files[name]
	if !found {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

// Put sets the content of a file in all containers.
func (n *Node) Put(name, content string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.files == nil {
		n.files = map[string]string{}
	}
	n.files[name] = content
}
