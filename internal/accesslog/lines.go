package accesslog

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the longest line that is read, its end not counted.
const maxLine = 1 << 20

var (
	errLong = errors.New("the line is longer than 1 MiB")
	bom     = []byte("\uFEFF")
)

// lines cuts a stream into lines that end in "\n" or "\r\n", or with the stream.
// A line too long is given with a reason, cut, and the one after it is found all
// the same. Blank lines are left out, but counted in number.
type lines struct {
	line   []byte // without its end and the spaces around it; valid until next
	number int64  // of line; the first is 1
	reason error  // why line is bad, if it is
	err    error  // why there are no more, nil at the end of the stream
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
			// Copied, because the buffer is about to be overwritten.
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
