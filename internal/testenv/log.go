package testenv

import (
	"bytes"
	"strings"
	"sync"
)

// Log is an [io.Writer] that is read while it is written, as a program's log is. The
// zero value is empty. A Log is safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String returns all that has been written so far, and was not taken.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Lines returns the lines of String; without any, one that is empty.
func (l *Log) Lines() []string { return strings.Split(strings.TrimSuffix(l.String(), "\n"), "\n") }

// Take returns what String does, and empties the log.
func (l *Log) Take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}
