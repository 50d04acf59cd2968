package testenv

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
)

// LogBuffer is an [io.Writer] that can be read while it is written, like a program's log. The zero
// value is an empty log. A LogBuffer is safe for concurrent use.
type LogBuffer struct {
	mu    sync.Mutex
	buf   bytes.Buffer
	grown chan struct{} // closed by the next write; nil if no one waits for it
}

func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
	return l.buf.Write(p)
}

// String returns everything written so far and not taken.
func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Lines returns the lines of String, or one empty line if there are none.
func (l *LogBuffer) Lines() []string {
	return strings.Split(strings.TrimSuffix(l.String(), "\n"), "\n")
}

// Take returns the same as String and empties the log.
func (l *LogBuffer) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}

// findLine searches for the pattern in the complete lines. It ignores an unfinished line, since
// half an address could match, too. Without a match it returns a channel that is closed once there
// is more.
func (l *LogBuffer) findLine(pattern *regexp.Regexp) (match []string, more <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range bytes.Lines(l.buf.Bytes()) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue
		}
		if match = pattern.FindStringSubmatch(string(bytes.TrimRight(line, "\r\n"))); match != nil {
			return match, nil
		}
	}
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return nil, l.grown
}
