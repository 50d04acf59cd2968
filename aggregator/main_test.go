package aggregator

import (
	"hash/fnv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/internal/aggregatortest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testHash replaces rules.Hash, which differs from run to run.
func testHash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64() * 0x9e3779b97f4a7c15
}

// recorder is a Publisher that keeps everything it receives.
type recorder struct {
	mu       sync.Mutex
	changes  []published.Change
	refresh  [][]published.Hot
	suspects []published.Hot // last published suspects
	told     chan struct{}   // gets a value for each change, if there is room
}

func newRecorder() *recorder { return &recorder{told: make(chan struct{}, 1)} }

func (r *recorder) Publish(c published.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	select {
	case r.told <- struct{}{}:
	default:
	}
}

func (r *recorder) Refresh(_ int, hot []published.Hot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh = append(r.refresh, append([]published.Hot(nil), hot...))
}

// refreshed returns the keys of each refresh.
func (r *recorder) refreshed() (texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, hot := range r.refresh {
		for _, h := range hot {
			texts = append(texts, h.Text)
		}
	}
	return texts
}

// hot returns the keys that are hot after all changes.
func (r *recorder) hot() map[rules.Key]published.Hot {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := make(map[rules.Key]published.Hot)
	for _, c := range r.changes {
		for _, h := range c.Hot {
			set[h.Key] = h
		}
		for _, h := range c.Cool {
			delete(set, h.Key)
		}
	}
	return set
}

func (*recorder) Instances([]published.Instance) {}

func (r *recorder) Suspects(_ int, suspects []published.Hot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspects = suspects
}

var (
	hotRule      = aggregatortest.HotRule
	fields       = aggregatortest.MetaFields
	testRules    = aggregatortest.Rules
	decoderRules = aggregatortest.DecoderRules
	noon         = aggregatortest.Noon
)
