// Package sandbox runs a hub and managed clusters as processes on this machine: real control planes with simulated nodes, and Tandem. It
// touches only the clusters that it starts.
//
// Each cluster is an etcd, a kube-apiserver and a kube-controller-manager on free loopback ports; a managed cluster adds a kube-scheduler
// and kwok, which simulates the kubelets: pods become Running and Jobs complete, though nothing is executed. Claims get volumes, which
// exist in the API only, from a provisioner in this package. Files that Pipe tasks read from containers come from a folder of the cluster
// (Cluster.Files), through the API server and a kubelet in this process that serves no other client. kwok's own command execution is not
// used, because it would run commands on this machine for any of its users and any web page. The machine is assumed to have a single user:
// etcd listens on loopback without authentication, and never syncs to disk.
//
// If requested (Options.OCM), it also runs OCM's own programs on the hub and for each managed cluster, which then register themselves. If
// OCM delivers Tandem's agents, this package simulates the kubelet for their pods, and for pods of images with given programs
// (Options.Images): each of their containers has a root folder of its own.
//
// Tests call Start; command lines call Up, Down and Read, with which the sandbox outlives the command that started it. All programs end
// with the process that started them: on Linux the kernel ends them even if that process is killed; on other systems a killed sandbox
// leaves its programs running, and they must be stopped by hand.
package sandbox
