package testenv

import (
	"bytes"
	"strings"
	"sync"
)

// Log is an [io.Writer] that can be read while it is written, like a program's log. The zero
// value is an empty log. A Log is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns everything written so far and not taken.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Lines returns the lines of String, or one empty line if there are none.
func (l *Log) Lines() []string { return strings.Split(strings.TrimSuffix(l.String(), "\n"), "\n") }

// Take returns the same as String and empties the log.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}
