package follow

import (
	"context"
	"io"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/pace"
)

// stream reads standard input in a goroutine of its own, since a Read of a pipe cannot be
// interrupted. If ctx ends first, that Read is abandoned.
type stream struct {
	in     io.Reader
	chunks chan []byte // closed at the end
	done   chan struct{}
	err    error // of the last Read; set when chunks is closed
}

func newStream(in io.Reader) *stream {
	return &stream{in: in, chunks: make(chan []byte, 1), done: make(chan struct{})}
}

func (s *stream) run() {
	defer close(s.chunks)
	for {
		room := make([]byte, 64<<10)
		n, err := s.in.Read(room)
		if n > 0 {
			select {
			case s.chunks <- room[:n]:
			case <-s.done:
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				s.err = err
			}
			return
		}
	}
}

// followStream reads the stream to its end.
func (f *Follower) followStream(ctx context.Context) {
	t := f.tails[0]
	decoder, _ := accesslog.NewLineDecoder(t.options) // New has checked the options
	in := &file{decoder: decoder}
	lines := t.lines(in, f.slots.add)
	go f.stream.run()
	defer close(f.stream.done)
	ticker := time.NewTicker(pace.Flush)
	defer ticker.Stop()
	for {
		f.look(time.Now())
		select {
		case <-ctx.Done():
			return
		case chunk, more := <-f.stream.chunks:
			if !more {
				if len(in.partial) > 0 {
					lines(in.partial)
				}
				if f.stream.err != nil {
					f.log.Error("standard input cannot be read", "err", f.stream.err)
				}
				return
			}
			if in.cut(chunk, lines); len(f.slots.all) > maxHeld {
				f.slots.flush(ctx, time.Now())
			}
		case <-ticker.C:
			f.slots.flush(ctx, time.Now())
		}
	}
}
