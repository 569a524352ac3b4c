package controller

import (
	"slices"

	"github.com/go-logr/logr"
)

// Logger returns a logger for controller-runtime's managers.
//
// It drops one error: whenever a leader shuts down properly, controller-runtime logs the lost leadership with a stack trace. If a lease is
// really lost, the manager ends with that error instead.
//
// It formats the values of a logger when a line is logged: controller-runtime makes a logger for each reconciliation, few of which log
// anything, and formatting took a third of the memory that addon-manager allocated at its start.
func Logger(logger logr.Logger) logr.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	sink := logger.GetSink()
	if deep, ok := sink.(logr.CallDepthLogSink); ok {
		sink = deep.WithCallDepth(1)
	}
	return logger.WithSink(managerSink{LogSink: sink})
}

type managerSink struct {
	logr.LogSink
	values []any
}

func (s managerSink) Info(level int, message string, keysAndValues ...any) {
	s.LogSink.Info(level, message, s.with(keysAndValues)...)
}

func (s managerSink) Error(err error, message string, keysAndValues ...any) {
	if err != nil && err.Error() == "leader election lost" && message == "error received after stop sequence was engaged" {
		return
	}
	s.LogSink.Error(err, message, s.with(keysAndValues)...)
}

func (s managerSink) WithName(name string) logr.LogSink {
	return managerSink{s.LogSink.WithName(name), s.values}
}

func (s managerSink) WithValues(keysAndValues ...any) logr.LogSink {
	return managerSink{s.LogSink, s.with(keysAndValues)}
}

// with returns the logger's values, followed by those.
func (s managerSink) with(keysAndValues []any) []any {
	return append(slices.Clip(s.values), keysAndValues...)
}
