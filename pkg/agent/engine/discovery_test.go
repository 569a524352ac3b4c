package engine

import (
	"slices"
	"testing"
)

func TestThoseWhoAskShareTheNextLook(t *testing.T) {
	s := &sweeper{}
	kafka, first := s.join("kafka")
	if !first {
		t.Error("nobody carries out the look that the first owner waits for")
	}
	if redis, first := s.join("redis"); redis != kafka || first {
		t.Error("the second owner does not share the look that has not begun")
	}
	if owners := s.begin(); !slices.Equal(owners, []string{"kafka", "redis"}) {
		t.Errorf("it looks for %q", owners)
	}
	if late, first := s.join("kafka"); late == kafka || !first {
		t.Error("who comes after a look has begun may want what it has passed already")
	}
}
