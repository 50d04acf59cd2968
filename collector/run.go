package collector

import (
	"context"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// Run flushes at each multiple of 100 ms of the wall clock, at the ends of the windows'
// panes, and for urgent keys in between. When ctx ends, it flushes once more, within the
// budget, closes the sink, and returns the error of closing it. A flush that fails is counted
// and not retried, since the next one is due soon. Run is called once.
func (c *Collector) Run(ctx context.Context) error {
	c.runs = true
	start := time.Now()
	c.beginFlush(start, start)
	c.send(ctx, 0) // announces the instance, and makes the sink connect before there are counts
	cut := nextCut(start, c.windows)
	c.budget.beginInterval(c.share(cut.Sub(start)))
	timer, fast := time.NewTimer(time.Until(cut)), time.NewTimer(time.Hour)
	defer timer.Stop()
	defer fast.Stop()
	for {
		var early func(context.Context) // runs ahead of the cut; nil at the cut
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			c.beginFlush(start, time.Now())
			c.budget.beginInterval(c.lines)
			c.flush(last, c.lines, false)
			return c.sink.Close()
		case <-c.nearlyFull:
			early = c.room
		case <-c.hurry:
			// After a quiet time, the first urgent flush is made at once.
			if wait := c.urgent - time.Since(instant(c.urgentAt)); wait > 0 {
				fast.Reset(wait)
				continue
			}
			early = c.flushUrgent
		case <-fast.C:
			early = c.flushUrgent
		case <-c.reloaded: // beginFlush, below, puts the rules in force
			early = c.flushUrgent
		case <-timer.C:
		}
		now := time.Now() // before the flush, since counts added during it may be left for the next one
		c.beginFlush(start, now)
		if sooner := nextCut(now, c.windows); sooner.Before(cut) { // because of new rules
			cut = sooner
			timer.Reset(time.Until(cut))
		}
		if early != nil && now.Before(cut) {
			early(ctx)
			continue
		}
		c.flush(ctx, c.budget.lines, now.Add(base.FlushInterval).Sub(instant(c.lastSend)) > BeatEvery)
		c.sendOrigins(ctx)
		start = now // not cut: the timer may have been late
		next := nextCut(time.Now(), c.windows)
		c.budget.beginInterval(c.share(next.Sub(cut)))
		cut = next
		timer.Reset(time.Until(cut))
	}
}

// share returns the budget of a flush that comes d after the previous one.
func (c *Collector) share(d time.Duration) int {
	if c.lines < 0 || d >= base.FlushInterval {
		return c.lines
	}
	return int(int64(c.lines) * int64(d) / int64(base.FlushInterval))
}

// nextCut returns the first instant after t when a flush must be cut so that no count
// straddles two panes: the next multiple of [base.FlushInterval] or of a pane of one of the
// windows, whichever comes first.
func nextCut(t time.Time, windows []rules.Window) time.Time {
	cut := multipleAfter(t, base.FlushInterval)
	for _, w := range windows {
		if w.Pane%base.FlushInterval != 0 {
			if c := multipleAfter(t, w.Pane); c.Before(cut) {
				cut = c
			}
		}
	}
	return cut
}

// multipleAfter returns the first multiple of step, from the Unix epoch, after t.
func multipleAfter(t time.Time, step time.Duration) time.Time {
	n := base.FloorDiv(t.UnixNano(), int64(step)) + 1
	return t.Add(time.Duration(n*int64(step) - t.UnixNano())) // keeps t's monotonic reading
}
