// Package sandbox runs a hub and managed clusters as processes on this machine: real control planes, simulated nodes,
// and Tandem on top of them. It touches only the clusters that it starts.
//
// Each cluster is an etcd, a kube-apiserver and a kube-controller-manager on free loopback ports; a managed cluster adds
// a kube-scheduler and kwok, which plays the kubelets: pods get Running and Jobs complete, though nothing is executed.
// Claims get volumes from a provisioner in this package, which exist in the API only. Files that Pipe tasks read from containers come
// from a folder of the cluster's (Cluster.Files), through the API server and a kubelet in this process that answers nobody else. kwok
// could run commands too, but would do so on this machine for any of its users and any web page that asks. The machine is taken to have
// one user: etcd listens on loopback without authentication, and never syncs to disk.
//
// Where asked to (Options.OCM), it runs OCM as well: its own programs on the hub and for each managed cluster, which then register
// themselves. Where OCM delivers Tandem's agents, this package plays the kubelet for their pods, and for those of images whose programs it
// is given (Options.Images): each of their containers in a root folder of its own.
//
// Start is the way in for tests; Up, Down and Read are for a command line, where the sandbox outlives the command that
// started it. Whatever was started ends with the process that started it: on Linux the kernel sees to that even if
// that process is killed; elsewhere a killed sandbox leaves its programs running, and they must be stopped by hand.
package sandbox
