package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the length of the longest line that is read, without its end.
const maxLine = 1 << 20

var (
	errLong = errors.New("the line is longer than 1 MiB")
	bom     = []byte("\uFEFF")
)

// lines splits a stream into lines, which end in "\n" or "\r\n" or with the stream. A line that
// is too long is returned cut and with a reason, and reading continues at the next line. Blank
// lines are skipped, but counted in number.
type lines struct {
	line   []byte // line without its end and the spaces around it; valid until next
	number int64  // number of line, from 1
	reason error  // why line is bad, or nil
	err    error  // why the stream ended early, or nil
	in     *bufio.Reader
	ended  bool
}

func newLines(r io.Reader) *lines {
	return &lines{in: bufio.NewReaderSize(r, maxLine+len("\r\n"))}
}

func (l *lines) next() bool {
	for !l.ended {
		raw, err := l.in.ReadSlice('\n')
		l.reason = nil
		if errors.Is(err, bufio.ErrBufferFull) {
			// Cloned because the buffer is about to be overwritten.
			raw, err = bytes.Clone(raw[:maxExcerpt*4]), l.skip()
			l.reason = errLong
		}
		if err != nil {
			l.ended = true
			if !errors.Is(err, io.EOF) {
				l.err = err // raw is not a whole line
				return false
			}
		}
		if len(raw) == 0 {
			return false
		}
		l.number++
		if l.number == 1 {
			raw = bytes.TrimPrefix(raw, bom)
		}
		raw = bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte{'\n'}), []byte{'\r'})
		if len(raw) > maxLine {
			l.reason = errLong
		}
		if l.line = bytes.TrimSpace(raw); len(l.line) > 0 || l.reason != nil {
			return true
		}
	}
	return false
}

// skip reads up to the end of the line.
func (l *lines) skip() error {
	for {
		if _, err := l.in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}
