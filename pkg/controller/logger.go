package controller

import "github.com/go-logr/logr"

// WithoutLeaderElectionLost returns a logger for controller-runtime's managers that drops one error: whenever a leader shuts down properly, it logs the lost
// leadership with a stack trace. If a lease is really lost, the manager ends with that error instead.
func WithoutLeaderElectionLost(logger logr.Logger) logr.Logger {
	if logger.GetSink() == nil {
		return logger
	}
	return logger.WithSink(withoutLeaderElectionLost{logger.GetSink()})
}

type withoutLeaderElectionLost struct{ logr.LogSink }

func (c withoutLeaderElectionLost) Error(err error, message string, keysAndValues ...any) {
	if err != nil && err.Error() == "leader election lost" && message == "error received after stop sequence was engaged" {
		return
	}
	sink := c.LogSink
	if deep, ok := sink.(logr.CallDepthLogSink); ok {
		sink = deep.WithCallDepth(1)
	}
	sink.Error(err, message, keysAndValues...)
}

func (c withoutLeaderElectionLost) WithName(name string) logr.LogSink {
	return withoutLeaderElectionLost{c.LogSink.WithName(name)}
}

func (c withoutLeaderElectionLost) WithValues(keysAndValues ...any) logr.LogSink {
	return withoutLeaderElectionLost{c.LogSink.WithValues(keysAndValues...)}
}
