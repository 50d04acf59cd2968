package kafkasource

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// New rules take effect in all partitions. Hot keys stay hot, with the limit of the new rules,
// and cool at once when their rule is gone.
func TestReloadKeepsWhatIsHot(t *testing.T) {
	inWorld(t, 1, 3, func(w *world) {
		m := w.join()
		w.has(m, 3)
		w.instance("a", 3).runs(everywhere(3))
		w.allHot(3)

		rule := quick()
		rule.Hot = append(rule.Hot, rules.NewThreshold(rules.Rate{N: 1000, Per: 10 * time.Second}))
		rule.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 3, Per: time.Second}, Burst: 3}, Mode: rules.ModeLimit}
		other := hotRule("other", 1, time.Second)
		w.reload(m, other, rule)
		w.until("the limit of the new rules is published", func() bool {
			for p := range 3 {
				if w.redis.limit(fmt.Sprint("q=", p)) != 3 {
					return false
				}
			}
			return true
		})
		time.Sleep(20 * time.Second)
		w.unchanged(3)

		other.ID = "another"
		w.reload(m, other)
		w.until("keys of a rule that is gone cool", func() bool { return !w.redis.hot("q=0") && !w.redis.hot("q=1") && !w.redis.hot("q=2") })
	})
}

func (w *world) reload(m *member, ruleset ...rules.Rule) {
	w.Helper()
	m.Reload(&rules.Rules{Namespace: "shop", Rules: ruleset})
}

// limit returns the limit with which a key is published.
func (r *redis) limit(text string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, e := range r.entries {
		if key.Text == text {
			return e.Limit.N
		}
	}
	return 0
}
