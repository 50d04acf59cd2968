package kafkasource

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/decode"
)

// If brokers stamp records, the counts of an instance whose clock is off have the time at which
// the broker received them. They delay no others, however late they are read. Otherwise the clock
// is only reported.
func TestClocksOfRecords(t *testing.T) {
	for _, test := range []struct {
		name      string
		ahead     time.Duration // the instance's clock
		readAfter time.Duration // time that records wait to be read
		create    bool          // senders stamp them
		hot       bool
		off       time.Duration
	}{
		{name: "right", hot: true},
		{name: "slow by 8 s", ahead: -8 * time.Second, hot: true, off: 8 * time.Second},
		{name: "slow by an hour", ahead: -time.Hour, hot: true, off: time.Hour},
		{name: "fast by an hour", ahead: time.Hour, hot: true, off: -time.Hour},
		{name: "right, read late", readAfter: time.Minute, hot: true},
		{name: "slow, read late", ahead: -8 * time.Second, readAfter: time.Minute, hot: true, off: 8 * time.Second},
		{name: "slow, stamped by senders", ahead: -8 * time.Second, create: true, hot: true, off: 8 * time.Second},
		{name: "fast, stamped by senders", ahead: time.Hour, create: true, hot: true, off: -time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := bench(t)
			var clock time.Time
			for i := range 40 {
				start := noon.Add(time.Duration(i) * 100 * time.Millisecond)
				sent := start.Add(100 * time.Millisecond)
				h := head(uint64(i+1), start.Add(test.ahead))
				h.Sent = sent.Add(test.ahead).UnixNano()
				lines := ""
				if i >= 25 {
					lines = line("q=1", 20)
				}
				r := stamped(headed(h, 0, lines), int64(i), sent.Add(5*time.Millisecond))
				if test.create {
					r.Timestamp, r.Attrs = sent.Add(test.ahead), kgo.RecordAttrs{}
				}
				clock = sent.Add(10*time.Millisecond + test.readAfter)
				w.record(r, 0, clock)
			}
			w.runDue(clock)
			if test.readAfter > 0 { // liveness is decided by our clock
				clocks := w.decoder.Clocks(clock.Add(-test.readAfter))
				w.clocks.Store(&clocks)
			}
			if hot := w.published().hot("q=1"); hot != test.hot {
				t.Errorf("hot: %v, want %v; %d counts were late", hot, test.hot, w.detector.Stats().Late)
			}
			off := offClocks([]*worker{w, w})
			if test.off == 0 {
				if len(off) > 0 {
					t.Errorf("told %v", off)
				}
			} else if len(off) != 1 || (off[0].Behind-test.off).Abs() > decode.DefaultLag || off[0].Corrected == test.create {
				t.Errorf("told %v, want %v", off, test.off)
			}
			newest := noon.Add(3900 * time.Millisecond) // the newest record's counts begin
			if behind := newest.Sub(w.mark.complete); !test.create && behind > decode.DefaultLag {
				t.Errorf("the partition is complete up to %v before its newest record", behind)
			}
		})
	}
}

// If an instance writes to several partitions, the one with the largest clock offset is reported.
func TestClocksOfPartitions(t *testing.T) {
	var workers []*worker
	for _, behind := range []time.Duration{time.Second, -4 * time.Second, 0} {
		w := bench(t)
		if clocks := []decode.SenderClock{{Name: "b", Behind: behind}, {Name: "a", Behind: time.Second}}; behind != 0 {
			w.clocks.Store(&clocks)
		}
		workers = append(workers, w)
	}
	off := offClocks(workers)
	if len(off) != 2 || off[0].Name != "a" || off[1].Behind != -4*time.Second || !strings.HasSuffix(off[1].Words(), "4s fast") {
		t.Errorf("%v", off)
	}
}
