package sandbox

import (
	"net"
	"testing"
)

func TestAllocatePorts(t *testing.T) {
	keys := []string{"hub/etcd", "hub/kube-apiserver", "cluster1/etcd"}
	first, err := allocatePorts(keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, key := range keys {
		port := first[key]
		if port < firstPort || port >= lastPort || seen[port] {
			t.Errorf("port %d of %s is out of range or given twice", port, key)
		}
		seen[port] = true
	}
	listener, err := net.Listen("tcp", loopback(first["hub/etcd"]))
	if err != nil {
		t.Fatalf("an allocated port is not free: %v", err)
	}
	defer listener.Close()
	second, err := allocatePorts(keys, first)
	if err != nil {
		t.Fatal(err)
	}
	if second["hub/etcd"] == first["hub/etcd"] {
		t.Error("a port that is taken was given out")
	}
	for _, key := range keys[1:] {
		if second[key] != first[key] {
			t.Errorf("%s got %d, although its former port %d is free", key, second[key], first[key])
		}
	}
}
