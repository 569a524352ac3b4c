package sandbox

import (
	"net"
	"testing"

	"github.com/tandem-addons/tandem/pkg/sandbox/port"
)

func TestAllocatePorts(t *testing.T) {
	keys := []string{"hub/etcd", "hub/kube-apiserver", "cluster1/etcd"}
	first, release, err := allocatePorts(keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, key := range keys {
		number := first[key]
		if number < port.First || number >= port.Last || seen[number] {
			t.Errorf("port %d of %s is out of range or given twice", number, key)
		}
		seen[number] = true
	}
	other, releaseOther, err := allocatePorts(keys, first)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseOther()
	for _, key := range keys {
		if seen[other[key]] {
			t.Errorf("another sandbox got port %d of this one, whose programs do not listen yet", other[key])
		}
	}
	listener, err := net.Listen("tcp", loopback(first["hub/etcd"]))
	if err != nil {
		t.Fatalf("an allocated port is not free: %v", err)
	}
	defer listener.Close()
	release()
	second, releaseSecond, err := allocatePorts(keys, first)
	if err != nil {
		t.Fatal(err)
	}
	defer releaseSecond()
	if second["hub/etcd"] == first["hub/etcd"] {
		t.Error("a port that is taken was given out")
	}
	for _, key := range keys[1:] {
		if second[key] != first[key] {
			t.Errorf("%s got %d, although its former port %d is free", key, second[key], first[key])
		}
	}
}
