package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lines splits a stream into lines, which end in "\n" or with the stream. A line that is too long is
// cut, and reading continues at the next line.
type lines struct {
	line   []byte // with its end; valid until next
	number int64  // number of line, from 1
	err    error  // why the stream ended early, or nil
	in     *bufio.Reader
	ended  bool
}

func newLines(r io.Reader) *lines {
	return &lines{in: bufio.NewReaderSize(r, MaxLine+len("\r\n"))}
}

func (l *lines) next() bool {
	if l.ended {
		return false
	}
	line, err := l.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		// Cloned because the buffer is about to be overwritten.
		line, err = bytes.Clone(line), l.skip()
	}
	if err != nil {
		l.ended = true
		if !errors.Is(err, io.EOF) {
			l.err = err // line is not a whole one
			return false
		}
	}
	l.line = line
	l.number++
	return len(line) > 0
}

// skip reads up to the end of the line.
func (l *lines) skip() error {
	for {
		if _, err := l.in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
