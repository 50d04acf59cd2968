package collector

import (
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// Stats are a collector's state, and its counters since it was made.
type Stats struct {
	Counts  int64 // sum of the counts that were sent; it falls if a sink later reports some as failed
	Lines   int64
	Packets int64
	Flushes int64 // flushes that sent something, including urgent ones
	Urgent  int64 // urgent flushes
	Dropped Dropped
	// Aged is the sum of the counts that were never sent because they were held back until they
	// were older than the window, or until their room was needed. Receivers are informed of it.
	Aged int64
	// MarkRaised is the number of times that the candidates alone exceeded the budget.
	MarkRaised int64

	// As of the last flush:
	Unsent     int64 // sum of the counts that are held back
	Held       int64 // h: each key's held-back count is below it; 1 if nothing is held back
	Candidates int64 // keys that were sent in full regardless of their count
	MarkFactor int64 // factor that the candidates' mark is multiplied by; 1 if all fit
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
	s := c.stats.Load()
	s.Dropped.TableFull = c.full.Load()
	return s
}

// publishFigures makes the flushing goroutine's figures available to Stats.
func (c *Collector) publishFigures() {
	c.stats.Change(func(s *Stats) {
		s.Aged, s.MarkRaised, s.Unsent, s.Held, s.Candidates = c.aged, c.raised, c.unsent, c.held, c.candidates
		s.MarkFactor, s.Local = int64(min(c.factor, 1<<62)), int64(c.local.hot)
	})
	c.publishCounted()
}

// recordSent records the result of a flush of counts with this sum.
func (c *Collector) recordSent(sent Sent, sum int64) {
	c.stats.Change(func(s *Stats) {
		s.Lines += sent.Lines
		s.Packets += sent.Packets
		s.Counts += sum - sent.TooLong - sent.Failed
		s.Dropped.TooLong += sent.TooLong
		s.Dropped.SendError += sent.Failed
	})
	c.failing.Report(c.log, failureLog, time.Now(), sent.Err, loglimit.OutageText{
		Begun: "counts cannot be sent; requests are not affected", Over: "counts are sent again",
	})
}

// failureLog is the minimum interval between two log lines about failing counts, and so
// between those about their recovery.
const failureLog = 10 * time.Second
