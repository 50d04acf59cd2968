package testenv

import (
	"bytes"
	"regexp"
	"sync"
)

// output keeps what a child process writes and wakes waiting goroutines when there is
// more. It is safe for concurrent use.
type output struct {
	mu             sync.Mutex
	stdout, stderr bytes.Buffer
	grown          chan struct{} // closed and replaced by every write
}

func newOutput() *output {
	return &output{grown: make(chan struct{})}
}

// stream is the io.Writer of one of the child's two streams.
type stream struct {
	output *output
	buf    *bytes.Buffer
}

func (s stream) Write(p []byte) (int, error) {
	s.output.mu.Lock()
	defer s.output.mu.Unlock()
	s.buf.Write(p)
	close(s.output.grown)
	s.output.grown = make(chan struct{})
	return len(p), nil
}

func (o *output) text(buf *bytes.Buffer) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return buf.String()
}

// findLine searches for the pattern in the complete lines of both streams. It ignores an unfinished
// line, since half an address could match, too. Without a match it returns a channel that is
// closed once there is more output.
func (o *output) findLine(pattern *regexp.Regexp) (match []string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, text := range [][]byte{o.stdout.Bytes(), o.stderr.Bytes()} {
		for line := range bytes.Lines(text) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				continue
			}
			if found := pattern.FindSubmatch(bytes.TrimRight(line, "\r\n")); found != nil {
				for _, group := range found {
					match = append(match, string(group))
				}
				return match, nil
			}
		}
	}
	return nil, o.grown
}
