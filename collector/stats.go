package collector

import "time"

// Stats are the collector's counters since it was made, and how things are now.
type Stats struct {
	Counts  int64 // counts that were sent; less, when a sink tells later that some were not
	Lines   int64
	Packets int64
	Flushes int64 // that sent something, urgent ones among them
	Urgent  int64 // flushes between two others, of urgent keys only
	Dropped Dropped
	// Aged are counts that were never sent: held back until no window would hold
	// them any more, or until their place was needed for others. They are told.
	Aged int64
	// MarkRaised is how often candidates alone passed the budget.
	MarkRaised int64

	// As of the last flush:
	Unsent     int64 // counts held back, of all keys
	Held       int64 // h: of each key less than this is held back; 1 if nothing is
	Candidates int64 // keys that were sent in full whatever their count
	MarkFactor int64 // by what the candidates' mark is multiplied; 1 if all fit
	Local      int64 // keys that are hot by the count of this instance alone
}

// Dropped are the counts that were not sent, by reason.
type Dropped struct {
	TableFull int64 // too many distinct keys between two flushes
	TooLong   int64 // the key's line fits no packet
	SendError int64 // the packet could not be sent
}

// Sum is all that was dropped.
func (d Dropped) Sum() int64 { return d.TableFull + d.TooLong + d.SendError }

// Stats tells the counters. It is safe for concurrent use. At the end of a
// flush, what was added is Counts, Unsent, Aged and Dropped together.
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

// publishFigures publishes the flushing goroutine's figures for Stats.
func (c *Collector) publishFigures() {
	c.figures.aged.Store(c.aged)
	c.figures.raised.Store(c.raised)
	c.figures.unsent.Store(c.unsent)
	c.figures.held.Store(c.held)
	c.figures.candidates.Store(c.candidates)
	c.figures.factor.Store(int64(min(c.factor, 1<<62)))
	c.figures.local.Store(int64(c.local.hot))
}

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

// failureLog is how often at most it is logged that counts cannot be sent, and so that
// they are again, however often that changes.
const failureLog = 10 * time.Second
