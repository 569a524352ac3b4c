package controller

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
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

// A value of another user cannot write a line of its own into the log of the programs, which log JSON by default.
func TestAValueIsNoLineOfTheLog(t *testing.T) {
	const forged = "a\n{\"level\":\"info\",\"msg\":\"all is well\"}\r\u2028\x1b[2J"
	var out strings.Builder
	logger := Logger(zap.New(zap.WriteTo(&out))).WithName(forged).WithValues("cluster", forged)
	logger.Info(forged, "name", forged)
	logger.Error(errors.New(forged), forged)
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2 || strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("got %d lines:\n%q", len(lines), out.String())
	}
	for _, line := range lines {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["msg"] != forged {
			t.Errorf("got %v, %v", fields, err)
		}
	}
}
