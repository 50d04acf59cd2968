package benchmarks

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/go-kratos/aegis/topk"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

const (
	accuracyEvents    = 1_000_000
	accuracyKeys      = 1_000_000 // by Zipf's law with exponent 1.0
	accuracyThreshold = accuracyEvents / 2000
)

// accuracyKey is a key in both forms that summaries take.
type accuracyKey struct {
	text string
	raw  []byte
}

// accuracyStream returns the events, and the keys that are truly hot among them.
var accuracyStream = sync.OnceValues(func() ([]*accuracyKey, map[string]bool) {
	below := make([]float64, accuracyKeys) // cumulated 1/rank
	sum := 0.0
	for i := range below {
		sum += 1 / float64(i+1)
		below[i] = sum
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	known, counts := map[int]*accuracyKey{}, map[int]int{}
	events := make([]*accuracyKey, accuracyEvents)
	for i := range events {
		rank := sort.SearchFloat64s(below, rnd.Float64()*sum)
		k, ok := known[rank]
		if !ok {
			text := fmt.Sprintf("GET /search?b=2&q=%d", rank)
			k = &accuracyKey{text: text, raw: []byte(text)}
			known[rank] = k
		}
		counts[rank]++
		events[i] = k
	}
	hot := map[string]bool{}
	for rank, n := range counts {
		if n >= accuracyThreshold {
			hot[known[rank].text] = true
		}
	}
	return events, hot
})

// summary counts a stream in less memory than exact counting would take.
type summary interface {
	add(*accuracyKey)
	// hot returns the keys that, by its estimate, have reached the threshold.
	hot() []string
}

// BenchmarkAccuracy looks for the keys that make up at least 0.05% of 1,000,000 events. An
// operation is an event. KB is the size of the summary after all events, and allocations are the
// total for all of them.
func BenchmarkAccuracy(b *testing.B) {
	for _, c := range []struct {
		name string
		make func(b *testing.B) summary
	}{
		{"hotparam", func(b *testing.B) summary { return newDetector(b, aggregator.MinMemory) }},
		{"hotparam_default_memory", func(b *testing.B) summary { return newDetector(b, aggregator.DefaultMemory) }},
		{"exact_map", func(*testing.B) summary { return exactMap{} }},
		{"aegis_HeavyKeeper_100", func(*testing.B) summary { return heavyKeeper{topk.NewHeavyKeeper(100, 4096, 4, 0.925, 0)} }},
		{"aegis_HeavyKeeper_1000", func(*testing.B) summary { return heavyKeeper{topk.NewHeavyKeeper(1000, 6144, 4, 0.925, 0)} }},
		{"Space-Saving_1000", func(*testing.B) summary { return estimated{newSpaceSaving(1000)} }},
		{"Space-Saving_1000_guaranteed", func(*testing.B) summary { return guaranteed{newSpaceSaving(1000)} }},
		{"Space-Saving_5000", func(*testing.B) summary { return estimated{newSpaceSaving(5000)} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			events, truth := accuracyStream()
			before := heap()
			s := c.make(b)
			for _, k := range events {
				s.add(k)
			}
			held := heap() - before
			precision, recall := judge(s.hot(), truth)
			if _, exact := s.(exactMap); exact && (precision < 1 || recall < 1) {
				b.Fatal("the exact count is not exact")
			}
			b.ReportAllocs()
			for b.Loop() {
				s = c.make(b)
				for _, k := range events {
					s.add(k)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/accuracyEvents, "ns/op")
			b.ReportMetric(precision, "precision")
			b.ReportMetric(recall, "recall")
			b.ReportMetric(float64(held)/1024, "KB")
			runtime.KeepAlive(s)
		})
	}
}

func judge(found []string, truth map[string]bool) (precision, recall float64) {
	right := 0
	for _, key := range found {
		if truth[key] {
			right++
		}
	}
	return float64(right) / float64(max(len(found), 1)), float64(right) / float64(len(truth))
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// detector is the project's own detector, with a window that contains all events.
type detector struct {
	*aggregator.Detector
	reported *reported
	now      time.Time
	events   int
}

func newDetector(b *testing.B, memory int64) *detector {
	b.Helper()
	p := &reported{}
	return &detector{reported: p, now: time.Unix(1_700_000_000, 0), Detector: aggregator.NewDetector(aggregator.DetectorConfig{
		Rules:     testRules(b, "*", rules.Rate{N: accuracyThreshold, Per: 10 * time.Second}, nil),
		Publisher: p, Memory: memory,
	})}
}

func (d *detector) add(k *accuracyKey) {
	d.now = d.now.Add(time.Microsecond)
	if d.events++; d.events%1000 == 0 {
		d.Advance(d.now)
	}
	d.Count(decode.Count{Hash: rules.Hash(k.raw), Text: k.raw, N: 1, When: d.now})
}

func (d *detector) hot() []string { return d.reported.hot }

// reported records the keys that became hot.
type reported struct{ hot []string }

func (p *reported) Publish(c published.Change) {
	for _, h := range c.Hot {
		p.hot = append(p.hot, h.Text)
	}
}
func (*reported) Refresh(int, []published.Hot) {}

type exactMap map[string]*int64

func (m exactMap) add(k *accuracyKey) {
	c, ok := m[k.text]
	if !ok {
		c = new(int64)
		m[k.text] = c
	}
	*c++
}

func (m exactMap) hot() (keys []string) {
	for key, n := range m {
		if *n >= accuracyThreshold {
			keys = append(keys, key)
		}
	}
	return keys
}

type heavyKeeper struct{ topk.Topk }

func (h heavyKeeper) add(k *accuracyKey) { h.Topk.Add(k.text, 1) }

func (h heavyKeeper) hot() (keys []string) {
	for _, item := range h.List() {
		if item.Count >= accuracyThreshold {
			keys = append(keys, item.Key)
		}
	}
	return keys
}

// estimated and guaranteed use Space-Saving's upper and lower bound of a key's count.
type (
	estimated  struct{ *spaceSaving }
	guaranteed struct{ *spaceSaving }
)

func (s estimated) add(k *accuracyKey)  { s.spaceSaving.add(k.text) }
func (s guaranteed) add(k *accuracyKey) { s.spaceSaving.add(k.text) }

func (s estimated) hot() []string {
	return s.where(func(c *ssCounter) bool { return c.count >= accuracyThreshold })
}

func (s guaranteed) hot() []string {
	return s.where(func(c *ssCounter) bool { return c.count-c.error >= accuracyThreshold })
}

func (s *spaceSaving) where(hot func(*ssCounter) bool) (keys []string) {
	for _, c := range s.heap {
		if hot(c) {
			keys = append(keys, c.key)
		}
	}
	return keys
}

func (*reported) Suspects(int, []published.Hot) {}

func (*reported) Instances([]published.Instance) {}
