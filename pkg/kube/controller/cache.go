package controller

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewCache returns a constructor of the cache of a manager that runs until ctx ends. The manager can then be stopped while the cache is being
// filled: up to controller-runtime 0.25.2 its Start does not return before the cache counts as filled.
func NewCache(ctx context.Context) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, options)
		return stoppableCache{Cache: c, until: ctx}, err
	}
}

type stoppableCache struct {
	cache.Cache
	until context.Context
}

// WaitForCacheSync returns true if the cache is filled, or if its manager is stopped.
func (s stoppableCache) WaitForCacheSync(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.until, cancel)()
	return s.Cache.WaitForCacheSync(ctx) || s.until.Err() != nil
}
