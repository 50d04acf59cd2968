package collector

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// flooder makes keys that were never seen before.
type flooder struct {
	member []byte
	n      uint64
}

func newFlooder() *flooder { return &flooder{member: []byte("terms GET /search?q=........")} }

func (f *flooder) add(c *Collector) {
	f.n++
	binary.LittleEndian.PutUint64(f.member[len(f.member)-8:], f.n)
	c.Add(rules.Hash(f.member), f.member, 1)
}

// A flood brings 50,000 distinct values a second. No count is dropped or shed, and the budget is
// kept. Keys at a candidate's rate are sent in full, with the times of their panes.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds, busy = 2, 20
		out := newArrivals()
		c := newCollector(t, Config{Sink: out, Rules: ruled(over(200, time.Second)), Urgent: -1})
		c.Steer(published.Fleet{Instances: 20}, nil) // candidates from 3 on
		k := newKeys(busy)
		flood := newFlooder()
		var lines int64
		run(t, c, func() {
			for i := range seconds * 1000 {
				for range 50 {
					flood.add(c)
				}
				if i%50 == 0 { // 20 a second: 400 over all instances
					for key := range busy {
						k.add(c, key, 1)
					}
				}
				time.Sleep(ms)
				if i%100 == 50 {
					s := c.Stats()
					if s.Lines-lines > defaultBudget {
						t.Fatalf("%d lines in 100 ms", s.Lines-lines)
					}
					lines = s.Lines
					if i > 1000 && s.Held != 2 {
						t.Fatalf("h is %d", s.Held)
					}
				}
			}
		})
		for _, member := range k.members {
			if n := out.n[string(member)]; n != 20*seconds {
				t.Errorf("%s: %d came through", member, n)
			}
		}
		s := c.Stats()
		if s.Dropped.Sum() != 0 || s.Counts+s.Unsent+s.Aged != seconds*(50_000+20*busy) {
			t.Errorf("%+v", s)
		}
		for _, f := range out.told {
			if f.Unsent != 0 {
				t.Fatalf("%d were shed of a key", f.Unsent)
			}
		}
	})
}

// A new key costs no allocation, even including its share of a replaced table.
func TestAFloodDoesNotAllocate(t *testing.T) {
	c := newCollector(t, Config{Sink: nowhere{}, Rules: ruled(over(200, time.Second)), MaxKeys: 16 * 512})
	flood := newFlooder()
	now := time.Unix(1_700_000_000, 0)
	step := func() {
		for range 500 {
			flood.add(c)
		}
		now = now.Add(base.FlushInterval)
		c.Flush(t.Context(), now)
	}
	for range 40 {
		step()
	}
	if n := testing.AllocsPerRun(50, step); n > 0 {
		t.Errorf("%v allocations per 500 new keys and a flush", n)
	}
	if s := c.Stats(); s.Dropped.Sum() != 0 {
		t.Errorf("%+v", s)
	}
}

// Adders, urgent flushes, steering and replaced tables run at the same time. Each count is sent,
// held back, aged or dropped, and reported as such.
func TestEachCountIsAccountedFor(t *testing.T) {
	const adders, adds = 4, 30_000
	out := newSums()
	c := newCollector(t, Config{Sink: out, Rules: ruled(over(400, time.Second)), MaxKeys: 4096, Budget: 300})
	k := newKeys(2_000)
	ctx, cancel := context.WithCancel(t.Context())
	var running, adding sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			c.Steer(published.Fleet{Instances: i % 5, Suspects: []rules.Key{keyOf(k, i%10)}}, []rules.Key{keyOf(k, i%7)})
			time.Sleep(ms)
		}
	})
	want := make([]map[int]int64, adders)
	for a := range adders {
		adding.Go(func() {
			mine := make(map[int]int64)
			r := rand.New(rand.NewPCG(uint64(a), 3))
			z := rand.NewZipf(r, 1.1, 3, 1_999)
			for range adds {
				key := int(z.Uint64())
				k.add(c, key, 1)
				mine[key]++
				if r.IntN(300) == 0 {
					runtime.Gosched()
				}
			}
			want[a] = mine
		})
	}
	adding.Wait()
	cancel()
	running.Wait()
	s := c.Stats()
	if s.Counts+s.Unsent+s.Aged+s.Dropped.Sum() != adders*adds {
		t.Errorf("added %d: %+v", adders*adds, s)
	}
	sent, _ := out.total()
	if sent != s.Counts {
		t.Errorf("%d arrived, %d were sent", sent, s.Counts)
	}
	for key, member := range k.members {
		var n int64
		for _, mine := range want {
			n += mine[key]
		}
		if got := out.counts[string(member)]; got > n || s.Aged+s.Dropped.Sum() == 0 && n-got >= s.Held {
			t.Errorf("%s: %d arrived of %d, h is %d", member, got, n, s.Held)
		}
	}
}
