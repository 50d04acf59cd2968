package aggregator

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/blame"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// costly is a key that is published because of its cost.
type costly struct {
	published.Hot
	perSecond float64 // recent mean of the milliseconds that its requests take in a second
}

// smoothing is the weight of the newest interval in costly.perSecond.
const smoothing = 0.2

// advance ends the intervals up to now, and returns what changes by the judges' decisions.
func (c *costs) advance(now time.Time) (change published.Change) {
	if len(c.pools) == 0 || now.Before(c.next) {
		return change
	}
	if c.next = c.next.Add(base.FlushInterval); c.next.Before(now) { // the first, or after a pause
		c.next = now.Add(base.FlushInterval)
	}
	standby := c.standby != nil && c.standby()
	for _, p := range c.pools {
		p.judge.Observe(now, values(p.routes), values(p.keys))
		p.capacities.add(now, p.routes, p.rules)
		if c.records {
			p.recordSpent()
		}
		if standby {
			p.stand()
			continue
		}
		for key, h := range p.hot {
			took := 0.0
			if k := p.keys[key]; k != nil {
				took = float64(k.Busy.Milliseconds()) * float64(time.Second/base.FlushInterval)
			}
			h.perSecond += smoothing * (took - h.perSecond)
		}
		p.clear()
		p.compare(now, &change)
	}
	return change
}

// stand ends an interval of a process that is not in office. Its judge learns, and none of its holds
// takes effect, so it would learn the wrong things from them.
func (p *pool) stand() {
	p.clear()
	clear(p.hot)
	if len(p.judge.Held()) > 0 {
		learned := p.judge.Save()
		p.judge = p.newJudge()
		p.judge.Load(learned)
	}
}

func values[K comparable, V any](m map[K]*V) []V {
	all := make([]V, 0, len(m))
	for _, v := range m {
		all = append(all, *v)
	}
	return all
}

// compare adds to a change the keys whose treatment differs from the published one.
func (p *pool) compare(now time.Time, change *published.Change) {
	held := make(map[rules.Key]bool)
	for _, x := range p.judge.Held() {
		rule := p.rules[x.Key.Rule]
		if rule == nil {
			continue
		}
		held[x.Key] = true
		h, hold := p.hot[x.Key], x.Hold
		isNew := h == nil
		if isNew {
			h = &costly{Hot: newCostly(rule, x.Key, x.Since), perSecond: hold.Share * float64(time.Second/time.Millisecond)}
			p.hot[x.Key] = h
		}
		before := h.Hold
		h.Hold = &hold
		// New evidence alone is published with the next renewal.
		if isNew || before.Permits != hold.Permits || before.Stage != hold.Stage {
			change.Hot = append(change.Hot, h.present())
		}
	}
	for _, x := range p.judge.Released() {
		if h := p.hot[x.Key]; h != nil && !held[x.Key] {
			delete(p.hot, x.Key)
			cooled := h.present()
			cooled.Until, cooled.Released = now, x.Why
			change.Cool = append(change.Cool, cooled)
		}
	}
}

// newCostly returns a key with the limit of its rule.
func newCostly(rule *rules.Rule, key rules.Key, since time.Time) published.Hot {
	h := published.Hot{Key: key, Since: since, Cause: published.Cause{Kind: rules.Cost, Rate: rules.CostRate, Unit: rule.Count}}
	limit := rule.Limit
	if x := rule.Exception(key.Text); x != nil && x.Limit != nil {
		limit = x.Limit
	}
	if h.Limit, h.Burst, h.Mode = limit.Published(); limit != nil {
		h.Scope = rule.ScopeOf(limit)
	}
	return h
}

// present returns the key with its present usage.
func (h *costly) present() published.Hot {
	now := h.Hot
	now.Low = int64(h.perSecond)
	now.High, now.Rate, now.Ratio = now.Low, h.perSecond, 1
	if usual := h.Hold.Usual; usual > 0 {
		now.Ratio = max(1, float64(h.Hold.Each)/float64(usual))
	}
	return now
}

// routeOf names the route of a key's requests within its pool.
func routeOf(rule, text string) string {
	route, _, _ := strings.Cut(text, "?")
	return rule + " " + route
}

// find returns a key that is hot because of its cost, or nil.
func (c *costs) find(key rules.Key) *costly {
	for _, p := range c.pools {
		if h := p.hot[key]; h != nil {
			return h
		}
	}
	return nil
}

// listed returns the keys that are hot because of their cost.
func (c *costs) listed() (hot []published.Hot) {
	for _, p := range c.pools {
		for _, key := range slices.SortedFunc(maps.Keys(p.hot), rules.Key.Compare) {
			hot = append(hot, p.hot[key].present())
		}
	}
	return hot
}

// adopt continues a hold that another process, or another part, has published. It reports false if
// the key's rule is not here.
func (c *costs) adopt(h *published.Hot, now time.Time) bool {
	for _, p := range c.pools {
		rule := p.rules[h.Rule]
		if rule == nil || h.Hold == nil {
			continue
		}
		p.judge.Adopt([]blame.Held{{Key: h.Key, Route: routeOf(h.Rule, h.Text), Since: h.Since, Hold: *h.Hold}}, now)
		x := &costly{Hot: newCostly(rule, h.Key, h.Since), perSecond: h.Rate}
		x.Hold = h.Hold
		p.hot[h.Key] = x
		return true
	}
	return false
}
