package statsdsource

import (
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/internal/aggregatortest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a Publisher that keeps the changes that it receives.
type recorder struct {
	mu        sync.Mutex
	changes   []published.Change
	published chan struct{} // gets a value for each change, if there is room
}

func newRecorder() *recorder { return &recorder{published: make(chan struct{}, 1)} }

func (r *recorder) Publish(c published.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
	select {
	case r.published <- struct{}{}:
	default:
	}
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

func (*recorder) Refresh(int, []published.Hot)   {}
func (*recorder) Suspects(int, []published.Hot)  {}
func (*recorder) Instances([]published.Instance) {}

var (
	hotRule   = aggregatortest.HotRule
	testRules = aggregatortest.Rules
)
