package accesslog

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Kept is a log in memory, sorted by time. It can be read any number of times.
type Kept struct {
	entries iter.Seq[Entry]
	stats   Stats
	broken  error
}

// Keep reads the whole log into memory, including standard input. It can be called once.
func (l *Log) Keep(ctx context.Context) (*Kept, error) {
	if l.started.Swap(true) {
		return nil, errors.New("access log: its entries can be read once only")
	}
	return l.load(ctx)
}

// Entries yields the requests in the order of time. See [Kept.Broken].
func (k *Kept) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e := range k.entries {
			if err := ctx.Err(); err != nil {
				yield(Entry{}, fmt.Errorf("access log: %w", err))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Broken returns the errors of sources that broke after good lines.
func (k *Kept) Broken() error { return k.broken }

// IsStream returns false, since the end is known.
func (*Kept) IsStream() bool { return false }

// Stats returns the counts of the lines that were read.
func (k *Kept) Stats() Stats { return k.stats }
