package oracle

import (
	"fmt"
	"time"
)

// Office judges whether Redis decides for one process. The process alone asks for a key
// of its own, at well above the rate: Redis lets the whole rate in, a process that
// decides by its part of n lets in an n-th.
type Office struct {
	Key, Process string
	// Rate is what the shared limit lets in, per second.
	Rate float64
	// Deadline is how long after a fault Redis may be out of office.
	Deadline time.Duration
	// Window is how long it is looked at.
	Window time.Duration

	excused  time.Duration
	sent     []time.Duration
	admitted []time.Duration
	silent   time.Duration // since when nothing was asked for a while
	told     time.Duration
}

// Excuse says that up to now Redis may be out of office.
func (o *Office) Excuse(until time.Duration) { o.excused = max(o.excused, until) }

// Answered records a request that was answered, in the order of sending.
func (o *Office) Answered(sent time.Duration, admitted bool) {
	// A pause refills nothing beyond the burst, so the window begins after it.
	if n := len(o.sent); n > 0 && sent-o.sent[n-1] > 300*time.Millisecond {
		o.silent = sent
	}
	o.sent = append(o.sent, sent)
	if admitted {
		o.admitted = append(o.admitted, sent)
	}
}

// Check returns a violation if over the last window fewer than two thirds of the rate
// were let in though enough were asked for, all of it after the deadline.
func (o *Office) Check(now time.Duration, stalls *Stalls) *Violation {
	from := now - o.Window - time.Second // what was sent in the last second may not be answered
	o.sent, o.admitted = after(o.sent, from), after(o.admitted, from)
	w := Span{from, now - time.Second}
	if from < stalls.Extended(o.excused, o.Deadline, now) || from < o.silent || from < o.told || stalls.Within(Span{from, now}) > o.Window/10 {
		return nil
	}
	asked, got := countUntil(o.sent, w.To), countUntil(o.admitted, w.To)
	want := o.Rate * o.Window.Seconds()
	if float64(asked) < 1.3*want || float64(got) >= want*2/3 {
		return nil
	}
	o.told = now
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
	for _, at := range times {
		if at <= t {
			n++
		}
	}
	return n
}
