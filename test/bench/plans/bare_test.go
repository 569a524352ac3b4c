package main

import (
	"context"
	"errors"
	"slices"
	"testing"

	kudo "github.com/tandem-addons/tandem/pkg/api/kudo/v1beta1"
)

func TestSerialItemsFollowEachOtherAndStopAtAnError(t *testing.T) {
	broken := errors.New("broken")
	var done []int
	err := inOrder(t.Context(), kudo.Serial, []int{1, 2, 3, 4}, func(_ context.Context, item int) error {
		done = append(done, item)
		if item == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) || !slices.Equal(done, []int{1, 2, 3}) {
		t.Errorf("did %v, error %v", done, err)
	}
}

func TestParallelItemsRunSideBySide(t *testing.T) {
	meet := make(chan int)
	err := inOrder(t.Context(), kudo.Parallel, []int{1, 2}, func(ctx context.Context, item int) error {
		select {
		case meet <- item:
		case <-meet:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}
