package engine

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestThoseWhoAskShareTheNextLook(t *testing.T) {
	s := &sweeper{}
	kafka, first := s.join("kafka", []schema.GroupKind{{Kind: "A"}})
	if !first {
		t.Error("nobody carries out the look that the first owner waits for")
	}
	if redis, first := s.join("redis", []schema.GroupKind{{Kind: "B"}}); redis != kafka || first {
		t.Error("the second owner does not share the look that has not begun")
	}
	s.begin()
	want := map[schema.GroupKind]bool{{Kind: "A"}: true, {Kind: "B"}: true}
	if !maps.Equal(kafka.owners, map[string]bool{"kafka": true, "redis": true}) || !maps.Equal(kafka.kinds, want) || kafka.all {
		t.Errorf("it looks for %v in %v, all: %v", kafka.owners, kafka.kinds, kafka.all)
	}
	late, first := s.join("kafka", nil)
	if late == kafka || !first {
		t.Error("who comes after a look has begun may want what it has passed already")
	}
	s.join("redis", []schema.GroupKind{{Kind: "B"}})
	if !late.all {
		t.Error("a caller that needs all kinds shares a look through some")
	}
}
