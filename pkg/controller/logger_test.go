package controller

import (
	"errors"
	"regexp"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
)

func TestLogsWithoutLostLeadership(t *testing.T) {
	var lines []string
	logger := Logger(funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{LogCaller: funcr.Error}))
	named := logger.WithName("manager").WithValues("a", 1)
	for _, l := range []logr.Logger{logger, named} {
		l.Error(errors.New("leader election lost"), "error received after stop sequence was engaged")
	}
	named.Error(errors.New("disk full"), "error received after stop sequence was engaged")
	named.Error(errors.New("leader election lost"), "problem running manager")
	named.Error(nil, "error received after stop sequence was engaged")
	named.Info("error received after stop sequence was engaged")

	here := regexp.MustCompile(`"caller"=\{"file"="logger_test.go" "line"=\d+\} `)
	for i, line := range lines {
		lines[i] = here.ReplaceAllString(line, "")
	}
	want := []string{
		`manager "msg"="error received after stop sequence was engaged" "error"="disk full" "a"=1`,
		`manager "msg"="problem running manager" "error"="leader election lost" "a"=1`,
		`manager "msg"="error received after stop sequence was engaged" "error"=null "a"=1`,
		`manager "level"=0 "msg"="error received after stop sequence was engaged" "a"=1`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("what is logged (-want +got):\n%s", diff)
	}
}

func TestLoggerTakesALoggerThatLogsNothing(t *testing.T) {
	Logger(logr.Logger{}).Error(errors.New("disk full"), "is not heard")
}
