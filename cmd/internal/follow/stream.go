package follow

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/base"
)

// followStream reads standard input to its end, or until ctx ends.
func (f *Follower) followStream(ctx context.Context) {
	t := f.tails[0]
	decoder, _ := accesslog.NewLineDecoder(t.options) // New has checked the options
	in := &file{decoder: decoder}
	lines := t.lines(in, f.slots.add)
	var flushed time.Time
	flush := func(time.Time) error {
		flushed = time.Now()
		f.recordState(flushed)
		f.slots.flush(ctx, flushed)
		return nil
	}
	stream := accesslog.NewReads(ctx, f.config.Stdin, nil, flush)
	room := make([]byte, 64<<10)
	for {
		n, err := stream.Read(room)
		in.cut(room[:n], lines)
		if len(f.slots.all) > maxHeld || time.Since(flushed) >= base.FlushInterval {
			_ = flush(time.Time{}) // always returns nil
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			if len(in.partial) > 0 {
				lines(in.partial)
			}
			if !errors.Is(err, io.EOF) {
				f.log.Error("standard input cannot be read", "err", err)
			}
			return
		}
	}
}
