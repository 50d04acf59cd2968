package statsdsink

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/published"
)

// A foreign StatsD gets all counts of a crowd every 100 ms. A key that is hot on this instance
// alone is reported as soon as with our own listener.
func TestNothingIsUrgentToAPatientSink(t *testing.T) {
	for _, patient := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k, out, epoch := newKeys(3), &packets{}, time.Now()
			ruleset := ruled(over(1000, time.Second))
			s, err := New(Config{Rules: ruleset, Sender: out, NoMeta: patient, Instance: "i"})
			if err != nil {
				t.Fatal(err)
			}
			c := newCollector(t, collector.Config{Sink: s, Rules: ruleset})
			hot := time.Duration(0)
			c.OnLocal(func(h published.Hot, is bool) {
				if is && hot == 0 {
					hot = time.Since(epoch)
				}
			})
			want := map[string]int64{}
			run(t, c, func() {
				for i := range 3000 {
					time.Sleep(ms)
					n := uint64(1 + i%2) // 1,500 a second of the first key
					k.add(c, 0, n)
					k.add(c, 1+i%2, 1)
					want["GET%20/search?q=0"] += int64(n)
					want["GET%20/search?q="+string(rune('1'+i%2))]++
				}
			})
			if hot < 600*ms || hot > 690*ms { // between two flushes
				t.Errorf("patient %v: hot here after %v", patient, hot)
			}
			r := receiver{packets: out.all}
			if got := r.counts(t); !maps.Equal(got, want) {
				t.Errorf("patient %v: %v came, want %v", patient, got, want)
			}
			if n := len(out.all); patient != (n <= 31) || !patient && n < 200 {
				t.Errorf("patient %v: %d packets", patient, n)
			}
			t.Logf("patient %v: %d packets, hot here after %v", patient, len(out.all), hot)
		})
	}
}
