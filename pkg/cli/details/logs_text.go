package details

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/tandem-addons/tandem/pkg/text"
)

const (
	// maxLogLine is the number of bytes after which a line of a log continues on another line.
	maxLogLine = 64 << 10
	// maxLogErrors limits the errors that are reported.
	maxLogErrors = 10
)

// logPrinter prints the lines of several logs.
type logPrinter struct {
	cluster *podCluster
	options corev1.PodLogOptions
	// maxBytes limits the bytes of each log; 0 is no limit.
	maxBytes int64
	prefix   bool
	// own is the namespace whose name is not part of a prefix.
	own string
	out io.Writer
	// lock keeps lines whole.
	lock sync.Mutex
}

// print prints logs one after the other. A log that cannot be read does not affect the others.
func (p *logPrinter) print(ctx context.Context, logs []podLog) error {
	var problems []error
	for _, log := range logs {
		if err := p.printLog(ctx, log); err != nil {
			problems = append(problems, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if more := len(problems) - maxLogErrors; more > 0 {
		problems = append(problems[:maxLogErrors:maxLogErrors], fmt.Errorf("%s more could not be read", text.Plural(more, "log")))
	}
	return errors.Join(problems...)
}

// follow prints logs together until all have ended, or ctx ends. It warns immediately of a log that cannot be read, because that may take long.
func (p *logPrinter) follow(ctx context.Context, logs []podLog) error {
	var group sync.WaitGroup
	var failed atomic.Int32
	for _, log := range logs {
		group.Go(func() {
			if err := p.printLog(ctx, log); err != nil && ctx.Err() == nil {
				failed.Add(1)
				_ = p.warn(err.Error()) // it is counted in any case
			}
		})
	}
	group.Wait()
	if n := int(failed.Load()); n > 0 && ctx.Err() == nil {
		return fmt.Errorf("%s of %d could not be read to the end", text.Plural(n, "log"), len(logs))
	}
	return nil
}

func (p *logPrinter) warn(message string) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.cluster.warn(message)
}

// printLog prints the log of a container.
func (p *logPrinter) printLog(ctx context.Context, log podLog) error {
	if !log.isScheduled {
		return fmt.Errorf("there is no log of %s yet: the pod is not scheduled", log)
	}
	options := p.options
	options.Container = log.container
	if p.maxBytes > 0 {
		options.LimitBytes = ptr.To(p.maxBytes + 1)
	}
	stream, err := p.cluster.logs.Pods(log.namespace).GetLogs(log.pod, &options).Stream(ctx)
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("reading the log of %s: %w: you need permission to get pods/log there", log, err)
	}
	if err != nil {
		return fmt.Errorf("reading the log of %s: %w", log, err)
	}
	defer stream.Close()
	var limited io.Reader = stream
	if p.maxBytes > 0 {
		limited = io.LimitReader(stream, p.maxBytes)
	}
	if err := p.printLines(limited, p.prefixOf(log)); err != nil {
		return fmt.Errorf("reading the log of %s: %w", log, err)
	}
	if n, _ := stream.Read(make([]byte, 1)); n > 0 {
		return p.warn(fmt.Sprintf("the log of %s continues after %d bytes: see --limit-bytes, --tail and --since", log, p.maxBytes))
	}
	return nil
}

// prefixOf returns the beginning of the lines of a log.
func (p *logPrinter) prefixOf(log podLog) string {
	switch {
	case !p.prefix:
		return ""
	case log.namespace == p.own:
		return fmt.Sprintf("[%s/%s] ", text.Word(log.pod), text.Word(log.container))
	}
	return fmt.Sprintf("[%s/%s/%s] ", text.Word(log.namespace), text.Word(log.pod), text.Word(log.container))
}

// printLines prints the lines of a log, each with the prefix. Containers write what they like: control characters are escaped.
func (p *logPrinter) printLines(log io.Reader, prefix string) error {
	lines := bufio.NewScanner(log)
	lines.Buffer(make([]byte, 0, 4<<10), maxLogLine+1)
	lines.Split(splitLine)
	for lines.Scan() {
		p.lock.Lock()
		_, err := io.WriteString(p.out, prefix+text.Escape(lines.Text())+"\n")
		p.lock.Unlock()
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

// splitLine is a bufio.SplitFunc that returns lines without their end, and splits those that are longer than maxLogLine between characters.
func splitLine(data []byte, atEOF bool) (int, []byte, error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 && end <= maxLogLine {
		return end + 1, bytes.TrimSuffix(data[:end], []byte("\r")), nil
	}
	switch {
	case len(data) > maxLogLine:
		cut := maxLogLine
		for back := 0; back < utf8.UTFMax-1 && !utf8.RuneStart(data[cut]); back++ {
			cut--
		}
		return cut, data[:cut], nil
	case atEOF && len(data) > 0:
		return len(data), data, nil
	}
	return 0, nil, nil
}
