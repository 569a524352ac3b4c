package controller

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector, or returns the registered one: a second user in the same process shares it.
func Register[C prometheus.Collector](registry prometheus.Registerer, collector C) (C, error) {
	err := registry.Register(collector)
	var shared prometheus.AlreadyRegisteredError
	if errors.As(err, &shared) {
		return shared.ExistingCollector.(C), nil
	}
	if err != nil {
		return collector, fmt.Errorf("registering metrics: %w", err)
	}
	return collector, nil
}
