package oracle

import (
	"fmt"
	"time"
)

// Decider judges who decides for one process: Redis, or the process itself. Only that process asks
// for a key of its own, well above the rate. Redis admits the whole rate, while a process that
// decides by its part of n admits an n-th.
type Decider struct {
	Key, Process string
	// Rate is the rate that the shared limit admits, per second.
	Rate float64
	// Deadline is the time after a fault in which the process may decide itself.
	Deadline time.Duration
	// Window is the length of the observed window.
	Window time.Duration

	excused    time.Duration
	sent       []time.Duration
	admitted   []time.Duration
	silent     time.Duration // end of the last pause in asking
	reportedAt time.Duration
}

// Excuse allows the process to decide itself up to the given time.
func (o *Decider) Excuse(until time.Duration) { o.excused = max(o.excused, until) }

// Answered records a request that was answered. Calls come in the order of sending.
func (o *Decider) Answered(sent time.Duration, admitted bool) {
	// A pause refills only up to the burst, so the window begins after it.
	if n := len(o.sent); n > 0 && sent-o.sent[n-1] > 300*time.Millisecond {
		o.silent = sent
	}
	o.sent = append(o.sent, sent)
	if admitted {
		o.admitted = append(o.admitted, sent)
	}
}

// Check returns a violation if fewer than two thirds of the rate were admitted over the last
// window. Enough must have been asked for, and the whole window must lie after the deadline.
func (o *Decider) Check(now time.Duration, stalls *Stalls) *Violation {
	from := now - o.Window - time.Second // requests of the last second may not be answered yet
	o.sent, o.admitted = after(o.sent, from), after(o.admitted, from)
	w := Span{from, now - time.Second}
	if from < stalls.Extended(o.excused, o.Deadline, now) || from < o.silent || from < o.reportedAt || stalls.Within(Span{from, now}) > o.Window/10 {
		return nil
	}
	asked, got := countUntil(o.sent, w.To), countUntil(o.admitted, w.To)
	want := o.Rate * o.Window.Seconds()
	if float64(asked) < 1.3*want || float64(got) >= want*2/3 {
		return nil
	}
	o.reportedAt = now
	return &Violation{At: now, Invariant: I3, Subject: o.Key + " at " + o.Process, Text: fmt.Sprintf(
		"%d of %d let in from %.2fs to %.2fs, where Redis lets in %.0f: it does not decide %.2fs after the last fault",
		got, asked, w.From.Seconds(), w.To.Seconds(), want, (now - o.excused).Seconds())}
}

func after(times []time.Duration, t time.Duration) []time.Duration {
	i := 0
	for i < len(times) && times[i] < t {
		i++
	}
	return append(times[:0], times[i:]...)
}

func countUntil(times []time.Duration, t time.Duration) (n int) {
	for _, when := range times {
		if when <= t {
			n++
		}
	}
	return n
}
