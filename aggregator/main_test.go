package aggregator

import (
	"hash/fnv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testHash stands for hotparam.Hash, which differs from run to run.
func testHash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64() * 0x9e3779b97f4a7c15
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// hotRule is a rule that finds hot keys: threshold n in a window of per.
func hotRule(id string, n int64, per time.Duration) hotparam.Rule {
	route, err := hotparam.ParseRoute("*")
	if err != nil {
		panic(err)
	}
	return hotparam.Rule{
		ID:    id,
		Match: hotparam.Match{Route: route},
		By:    hotparam.By{Kind: hotparam.ByAll},
		Hot:   []hotparam.Threshold{hotparam.NewThreshold(hotparam.Rate{N: n, Per: per})},
	}
}

func testRules(rules ...hotparam.Rule) *hotparam.Rules {
	return &hotparam.Rules{Namespace: "shop", Rules: rules}
}

func decoderRules() *hotparam.Rules {
	custom := hotRule("custom", 1, time.Second)
	custom.Prefix = "web.front"
	limit := hotRule("limit-only", 1, time.Second)
	limit.Hot, limit.Limit = nil, &hotparam.Limit{Quota: hotparam.Quota{Rate: hotparam.Rate{N: 1, Per: time.Second}, Burst: 1}, Mode: hotparam.ModeLimit}
	return testRules(hotRule("terms", 1, time.Second), limit, custom)
}

// recorder is a Publisher that keeps what it is given.
type recorder struct {
	mu       sync.Mutex
	changes  []hotparam.Change
	refresh  [][]hotparam.Hot
	suspects []hotparam.Hot // as they were told last
	told     chan struct{}  // gets a value for each change, if there is room
}

func newRecorder() *recorder { return &recorder{told: make(chan struct{}, 1)} }

func (r *recorder) Publish(c hotparam.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	select {
	case r.told <- struct{}{}:
	default:
	}
}

func (r *recorder) Refresh(_ int, hot []hotparam.Hot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refresh = append(r.refresh, append([]hotparam.Hot(nil), hot...))
}

// refreshed are the keys of each refresh.
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

// hot is the set of keys that are hot after all changes.
func (r *recorder) hot() map[hotparam.Key]hotparam.Hot {
	r.mu.Lock()
	defer r.mu.Unlock()
	set := make(map[hotparam.Key]hotparam.Hot)
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

func (*recorder) Instances([]hotparam.Instance) {}

func (r *recorder) Suspects(_ int, suspects []hotparam.Hot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspects = suspects
}
