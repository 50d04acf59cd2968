package collector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
)

// DefaultMaxKeys is how many keys a collector holds by default.
const DefaultMaxKeys = 1 << 16

// shards is how many parts the keys are spread over, a power of two.
const shards = 16

// Config is what a [Collector] needs; Sink is required.
type Config struct {
	// Sink is where the counts go.
	Sink Sink
	// Windows are those of the rules that are counted, so that flushes are cut
	// where their panes are. Most windows need none: see [hotparam.NextCut].
	Windows []hotparam.Window
	// MaxKeys bounds how many keys are held at a time; 0 is [DefaultMaxKeys],
	// about 20 MB.
	MaxKeys int
	// Log takes what goes wrong, once per change; nil: nothing is logged.
	Log *slog.Logger
}

func (c Config) validate() error {
	switch {
	case c.Sink == nil:
		return errors.New("collector: Config.Sink is missing")
	case c.MaxKeys < 0:
		return fmt.Errorf("collector: Config.MaxKeys is %d, must not be negative", c.MaxKeys)
	}
	return nil
}

// Collector counts keys and sends the counts. Add may be called by any number
// of goroutines at any time, before, during and after Run.
type Collector struct {
	sink    Sink
	windows []hotparam.Window
	log     *slog.Logger

	shards [shards]shard
	wake   chan struct{} // a table is full: flush now

	dropped struct{ full, tooLong, failed atomic.Int64 }
	sent    struct{ counts, lines, packets, flushes atomic.Int64 }

	// Of the flushing goroutine alone:
	counts   []Count
	start    time.Time // of the flush to come
	reported int64     // drops that have been told as unsent
	failing  bool
}

// New makes a collector. It starts nothing; [Collector.Run] does.
func New(c Config) (*Collector, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = DefaultMaxKeys
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	col := &Collector{sink: c.Sink, windows: c.Windows, log: c.Log, wake: make(chan struct{}, 1)}
	for i := range col.shards {
		col.shards[i].init(max(16, c.MaxKeys/shards))
	}
	return col, nil
}

// Add counts n for a key: its canonical bytes ([hotparam.Key.String]) and their
// [hotparam.Hash]. It neither blocks nor allocates, keeps no reference to the
// bytes, and is safe for concurrent use. n must be below 2³².
func (c *Collector) Add(hash uint64, member []byte, n uint64) {
	// The table uses the hash's low bits.
	if c.shards[hash>>60&(shards-1)].add(hash, member, n) {
		return
	}
	c.dropped.full.Add(int64(n))
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Fit is the text that a key's long text is counted by and known as to all
// others; most texts are short and stay as they are. See [Sink].
func (c *Collector) Fit(text []byte) []byte {
	if len(text) <= alwaysFits {
		return text
	}
	return c.sink.Fit(text)
}

// alwaysFits is a length that no sink finds too long, so that it is not asked.
const alwaysFits = 80

// Run flushes at each multiple of 100 ms of the wall clock, and where a rule's
// panes need it, until ctx ends; then once more, and closes the sink. It
// returns the error of that close, if any: a failed flush is counted and tried
// no more, since the next one is due in no time.
func (c *Collector) Run(ctx context.Context) error {
	c.start = time.Now()
	timer := time.NewTimer(c.untilCut())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			c.Flush(last, c.start)
			return c.sink.Close()
		case <-c.wake:
			c.Flush(ctx, c.start)
		case <-timer.C:
			now := time.Now() // before the flush: what is added while it sends is left for the next
			c.Flush(ctx, c.start)
			c.start = now // not cut: the timer may have been late
			timer.Reset(c.untilCut())
		}
	}
}

// untilCut is how long it is until the next flush.
func (c *Collector) untilCut() time.Duration {
	return time.Until(hotparam.NextCut(time.Now(), c.windows))
}

// Flush sends what was counted since the last flush as counts of start and
// later. It is for callers that keep their own clock, as replay does, instead
// of Run: never both at a time.
func (c *Collector) Flush(ctx context.Context, start time.Time) {
	c.counts = c.counts[:0]
	sum := int64(0)
	for i := range c.shards {
		c.shards[i].flush(func(member []byte, n uint64) {
			// Bytes that are no key's have no rule that the sink knows, and are
			// counted as such there.
			rule, text, _ := bytes.Cut(member, []byte{' '})
			c.counts = append(c.counts, Count{Rule: rule, Text: text, N: int64(n)})
			sum += int64(n)
		})
	}
	lost := c.dropped.full.Load() + c.dropped.tooLong.Load()
	if len(c.counts) == 0 && lost == c.reported {
		return
	}
	sent := c.sink.Send(ctx, Flush{Start: start, Held: 1, Unsent: lost - c.reported}, c.counts)
	c.reported = lost
	c.account(sent, sum)
}

func (c *Collector) account(sent Sent, sum int64) {
	c.sent.flushes.Add(1)
	c.sent.lines.Add(sent.Lines)
	c.sent.packets.Add(sent.Packets)
	c.sent.counts.Add(sum - sent.TooLong - sent.Failed)
	c.dropped.tooLong.Add(sent.TooLong)
	c.dropped.failed.Add(sent.Failed)
	if failing := sent.Err != nil; failing != c.failing {
		c.failing = failing
		if failing {
			c.log.Warn("counts cannot be sent; requests are not affected", "err", sent.Err)
		} else {
			c.log.Info("counts are sent again")
		}
	}
}

// Stats are the collector's counters since it was made.
type Stats struct {
	Counts  int64 // counts that were sent
	Lines   int64
	Packets int64
	Flushes int64
	Dropped Dropped
}

// Dropped are the counts that were not sent, by reason.
type Dropped struct {
	TableFull int64 // too many distinct keys between two flushes
	TooLong   int64 // the key's line fits no packet
	SendError int64 // the packet could not be sent
}

// Sum is all that was dropped.
func (d Dropped) Sum() int64 { return d.TableFull + d.TooLong + d.SendError }

// Stats tells the counters. It is safe for concurrent use.
func (c *Collector) Stats() Stats {
	return Stats{
		Counts:  c.sent.counts.Load(),
		Lines:   c.sent.lines.Load(),
		Packets: c.sent.packets.Load(),
		Flushes: c.sent.flushes.Load(),
		Dropped: Dropped{
			TableFull: c.dropped.full.Load(),
			TooLong:   c.dropped.tooLong.Load(),
			SendError: c.dropped.failed.Load(),
		},
	}
}
