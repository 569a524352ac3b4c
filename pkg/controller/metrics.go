package controller

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector, or returns the one that is registered already: a second one in one process shares that of the first.
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
