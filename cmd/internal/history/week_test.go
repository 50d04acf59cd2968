package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// putWeek writes a week of keys, each of which has a daily course, noise and refusals in its peaks, as
// a writer leaves it. It returns the bytes and the end.
func putWeek(tb testing.TB, s *Store, keys int, end int64) (bytes int64) {
	tb.Helper()
	const week = 7 * 24 * 3600
	random := rand.New(rand.NewPCG(3, 4))
	state := ownerState{Until: end - 1, Seen: "0"}
	epoch, err := s.claim(tb.Context(), "statsd")
	must(tb, err)
	for level := range levels {
		keep := int64(week)
		if k := steps[level].keep; k > 0 {
			keep = int64(k / time.Second)
		}
		step, span := steps[level].step, steps[level].span
		state.First[level] = floor(end-keep, span)
		for start := floor(end-keep, span); start < end; start += span {
			c := newChunk(start, step, int(span/step))
			r := c.rule("search", rules.Requests, 1)
			for i := range c.known {
				c.known[i] = true
				n := random.Int64N(1000 * step)
				r.rest[i] = restCell{true, n, n, 3 * step}
			}
			for i := range keys {
				k := r.key(fmt.Sprintf("GET /search?q=word-%d&category=%d", i*7919%100_003, i%17))
				mean := float64(step) * (5 + 2000/float64(10+i))
				for column := range c.known {
					at := float64(start+int64(column)*step) / 86_400
					rate := mean * (1 + 0.8*math.Sin(2*math.Pi*(at+float64(i)/50)))
					n := int64(max(0, rate+math.Sqrt(rate)*random.NormFloat64()))
					x := Cell{column, n, n, published.Unknown}
					if over := n - int64(1.5*mean); over > 0 {
						x.Refused = over
					}
					k.cells = append(k.cells, x)
				}
			}
			data := c.encode()
			bytes += int64(len(data)) + fieldCost
			answer, err := s.write(tb.Context(), "statsd", epoch, "0", state, week*time.Second, map[field][]byte{{1 + level, start}: data}, nil)
			must(tb, err)
			if answer != answerOK {
				tb.Fatal(answer)
			}
		}
	}
	return bytes
}

// A week of a thousand keys fits into the default memory, and each part of it is read in time.
func BenchmarkWeek(b *testing.B) {
	s := testStore(b)
	const end = epoch0 + 7*24*3600
	bytes := putWeek(b, s, 1000, end)
	if bytes > 64<<20 {
		b.Errorf("%d bytes", bytes)
	}
	used, err := s.room(b.Context())
	must(b, err)
	b.Logf("a week of 1,000 keys: %.1f MB, Redis uses %.1f MB", float64(bytes)/1e6, float64(used.used)/1e6)
	for _, span := range []time.Duration{7 * 24 * time.Hour, 3 * 24 * time.Hour, 24 * time.Hour, 6 * time.Hour, time.Hour, 10 * time.Minute} {
		b.Run(fmt.Sprint(span), func(b *testing.B) {
			size := 0
			for b.Loop() {
				v := read(b, s, end-int64(span/time.Second), end, 1000)
				if len(v.Rows) != 1000 || len(v.Gaps) > 0 {
					b.Fatalf("%d rows, gaps %v", len(v.Rows), v.Gaps)
				}
				size = len(v.AppendJSON(nil))
			}
			b.ReportMetric(float64(size)/1e6, "MB")
		})
	}
}
