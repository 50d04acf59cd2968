package collector

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sums is a Sink that sums the counts it receives.
type sums struct {
	CountsOnly
	mu      sync.Mutex
	counts  map[string]int64 // counts by member
	flushes []Flush
	closed  int
}

func newSums() *sums { return &sums{counts: make(map[string]int64)} }

func (s *sums) Send(_ context.Context, f Flush, counts []Count) Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range counts {
		s.counts[string(c.Rule)+" "+string(c.Text)] += c.N
	}
	s.flushes = append(s.flushes, f)
	return Sent{Lines: int64(len(counts)), Packets: 1}
}

func (s *sums) Fit(text []byte) []byte { return text }

func (s *sums) Close() error {
	s.closed++
	return nil
}

// total returns the sum of all counts, and of the counts reported as unsent.
func (s *sums) total() (counts, unsent int64) {
	for _, n := range s.counts {
		counts += n
	}
	for _, f := range s.flushes {
		unsent += f.Unsent
	}
	return counts, unsent
}

func newCollector(t testing.TB, c Config) *Collector {
	t.Helper()
	col, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return col
}

// keys are members with their hashes.
type keys struct {
	members [][]byte
	hashes  []uint64
}

func newKeys(n int) (k keys) {
	for i := range n {
		member := fmt.Append(nil, "terms GET /search?q=", i)
		k.members = append(k.members, member)
		k.hashes = append(k.hashes, rules.Hash(member))
	}
	return k
}

func (k keys) add(c *Collector, i int, n uint64) { c.Add(k.hashes[i], k.members[i], n) }
