package collector

import "time"

// Stats are the collector's state, and its counters since it was made.
type Stats struct {
	Counts  int64 // sum of the counts that were sent; it falls if a sink reports later that some were not
	Lines   int64
	Packets int64
	Flushes int64 // flushes that sent something, urgent ones included
	Urgent  int64 // urgent flushes
	Dropped Dropped
	// Aged is the sum of the counts that were never sent, as they were held back until
	// they were older than the window, or until their room was needed. Receivers know it.
	Aged int64
	// MarkRaised is how often the candidates alone exceeded the budget.
	MarkRaised int64

	// As of the last flush:
	Unsent     int64 // sum of the counts that are held back
	Held       int64 // h: each key's count that is held back is below it; 1 if none is
	Candidates int64 // keys that were sent in full whatever their count
	MarkFactor int64 // by which the candidates' mark is multiplied; 1 if all fit
	Local      int64 // keys that are hot by the count of this instance alone
}

// Dropped are the sums of counts that were not sent, by reason.
type Dropped struct {
	TableFull int64 // too many distinct keys between two flushes
	TooLong   int64 // the key's line does not fit into a packet
	SendError int64 // the packet could not be sent
}

// Sum returns the sum of all reasons.
func (d Dropped) Sum() int64 { return d.TableFull + d.TooLong + d.SendError }

// Stats returns the collector's state and counters. It is safe for concurrent use. At the
// end of a flush, Counts, Unsent, Aged and Dropped together are all counts that were added.
func (c *Collector) Stats() Stats {
	return Stats{
		Counts:  c.sent.counts.Load(),
		Lines:   c.sent.lines.Load(),
		Packets: c.sent.packets.Load(),
		Flushes: c.sent.flushes.Load(),
		Urgent:  c.sent.urgent.Load(),
		Dropped: Dropped{
			TableFull: c.dropped.full.Load(),
			TooLong:   c.dropped.tooLong.Load(),
			SendError: c.dropped.failed.Load(),
		},
		Aged:       c.figures.aged.Load(),
		MarkRaised: c.figures.raised.Load(),
		Unsent:     c.figures.unsent.Load(),
		Held:       c.figures.held.Load(),
		Candidates: c.figures.candidates.Load(),
		MarkFactor: c.figures.factor.Load(),
		Local:      c.figures.local.Load(),
	}
}

// publishFigures makes the flushing goroutine's figures available to Stats.
func (c *Collector) publishFigures() {
	c.figures.aged.Store(c.aged)
	c.figures.raised.Store(c.raised)
	c.figures.unsent.Store(c.unsent)
	c.figures.held.Store(c.held)
	c.figures.candidates.Store(c.candidates)
	c.figures.factor.Store(int64(min(c.factor, 1<<62)))
	c.figures.local.Store(int64(c.local.hot))
	c.publishCounted()
}

// recordSent records the result of a flush of counts with this sum.
func (c *Collector) recordSent(sent Sent, sum int64) {
	c.sent.lines.Add(sent.Lines)
	c.sent.packets.Add(sent.Packets)
	c.sent.counts.Add(sum - sent.TooLong - sent.Failed)
	c.dropped.tooLong.Add(sent.TooLong)
	c.dropped.failed.Add(sent.Failed)
	now := time.Now()
	if sent.Err != nil {
		if c.failing.Begin(failureLog, now) {
			c.log.Warn("counts cannot be sent; requests are not affected", "err", sent.Err)
		}
	} else if _, log := c.failing.End(now); log {
		c.log.Info("counts are sent again")
	}
}

// failureLog is the shortest time between two log lines that counts cannot be sent, and so
// between those that they can be again.
const failureLog = 10 * time.Second
