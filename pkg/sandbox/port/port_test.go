package port

import (
	"net"
	"testing"
)

func TestAPortIsReservedOnceAndCanBeServedOn(t *testing.T) {
	found, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	if found.Port < First || found.Port >= Last {
		t.Errorf("port %d is out of range", found.Port)
	}
	if _, ok := Take(found.Port); ok {
		t.Error("a port that is reserved was given out")
	}
	for range 2 { // a restarted program listens again
		listener, err := net.Listen("tcp", found.Address())
		if err != nil {
			t.Fatalf("a reserved port cannot be served on: %v", err)
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
	}
	found.Release()
}

func TestAPortThatIsReleasedIsGivenOutAgain(t *testing.T) {
	for range 3 { // another process may take it first
		found, err := Find()
		if err != nil {
			t.Fatal(err)
		}
		found.Release()
		if again, ok := Take(found.Port); ok {
			again.Release()
			return
		}
	}
	t.Error("no port that was released is given out")
}

func TestAPortThatIsServedOnIsNotGivenOut(t *testing.T) {
	found, err := Find()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", found.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	found.Release()
	if _, ok := Take(found.Port); ok {
		t.Error("a port that is served on was given out")
	}
}
