package aggregator

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/aggregator/internal/blame"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// costs finds the hot keys of rules with a cost. Such rules have no windows: instances report the
// usage of keys, and a judge of each pool decides by it every 100 ms.
type costs struct {
	pools       []*pool
	byRule      []poolRule  // by number of the rule; empty for rules without a cost, or of another part
	next        time.Time   // end of the present interval
	onlySuspect bool        // see [DetectorConfig.OnlySuspect]
	standby     func() bool // whether another process decides; nil if none can
	records     bool        // whether OnTops is set
}

type poolRule struct {
	*pool
	id string
}

// pool is what rules with one back end share.
type pool struct {
	name   string
	shadow bool
	judge  *blame.Judge
	rules  map[string]*rules.Rule // by id
	routes map[string]*blame.RouteUsage
	keys   map[rules.Key]*blame.KeyUsage
	spent  map[rules.Key]time.Duration // since the last [Tops]; used with OnTops
	hot    map[rules.Key]*costly

	capacities capacities
}

// lateUsage is how old a report may be. Older ones say nothing of the present, as after an outage
// of Kafka.
const lateUsage = 2 * time.Second

// maxPoolKeys bounds the keys of a pool in an interval. Others count for their route alone.
const maxPoolKeys = 1 << 15

// setRules puts rules in force, of which this part has those that has returns true for. It returns
// the keys of rules that it no longer has.
func (c *costs) setRules(n *decode.Numbered, has func(number int) bool) (gone []published.Hot) {
	before := c.pools
	all := n.ByNumber().Rules
	c.pools, c.byRule = nil, make([]poolRule, len(all))
	for i := range all {
		rule := &all[i]
		if !n.Has(i) || !rule.HasCost() || !has(i) {
			continue
		}
		p := c.pool(rule.Pool())
		if p == nil {
			p = &pool{name: rule.Pool(), rules: make(map[string]*rules.Rule)}
			p.clear()
			c.pools = append(c.pools, p)
		}
		c.byRule[i], p.rules[rule.ID] = poolRule{p, rule.ID}, rule
		p.shadow = p.shadow || c.onlySuspect || rule.Limit == nil || rule.Limit.Mode == rules.ModeShadow || rule.Limit.Concurrency != rules.AutoConcurrency
	}
	for _, p := range c.pools {
		p.judge, p.hot = p.newJudge(), make(map[rules.Key]*costly)
	}
	for _, old := range before {
		p := c.pool(old.name)
		if p != nil {
			p.capacities = old.capacities
			p.capacities.dropOthers(func(rule string) bool { return p.rules[rule] != nil })
		}
		if p != nil && p.shadow == old.shadow {
			p.judge, p.hot = old.judge, old.hot
		}
		for key, h := range old.hot {
			if p == nil || p.rules[key.Rule] == nil || p.shadow != old.shadow {
				delete(old.hot, key)
				gone = append(gone, h.Hot)
			}
		}
	}
	return gone
}

func (c *costs) pool(name string) *pool {
	i := slices.IndexFunc(c.pools, func(p *pool) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return c.pools[i]
}

func (p *pool) newJudge() *blame.Judge {
	return blame.New(blame.Config{Pool: p.name, Shadow: p.shadow})
}

func (p *pool) clear() {
	p.routes, p.keys = make(map[string]*blame.RouteUsage), make(map[rules.Key]*blame.KeyUsage)
}

// add adds the usage that an instance reports.
func (c *costs) add(o *decode.OriginCount, now time.Time) {
	if o.Rule >= len(c.byRule) || c.byRule[o.Rule].pool == nil || now.Sub(o.When) > lateUsage {
		return
	}
	p, rule := c.byRule[o.Rule].pool, c.byRule[o.Rule].id
	u, ok := wire.ParseUsage(o.N, o.Name)
	if !ok {
		return
	}
	text := string(o.Text)
	route := routeOf(rule, text)
	if o.Kind == wire.RouteUsage {
		r := p.routes[route]
		if r == nil && len(p.routes) < maxPoolKeys {
			r = &blame.RouteUsage{Route: route}
			p.routes[route] = r
		}
		if r != nil {
			r.Add(&u)
		}
		return
	}
	key := rules.Key{Rule: rule, Text: text}
	k := p.keys[key]
	if k == nil && len(p.keys) < maxPoolKeys {
		k = &blame.KeyUsage{Key: key, Route: route}
		p.keys[key] = k
	}
	if k != nil {
		k.Add(&u)
	}
}

// save returns what the judges have learned, by pool.
func (c *costs) save() map[string]blame.State {
	learned := make(map[string]blame.State, len(c.pools))
	for _, p := range c.pools {
		learned[p.name] = p.judge.Save()
	}
	return learned
}

// load continues with what the judges of another process have learned.
func (c *costs) load(learned map[string]blame.State) {
	for _, p := range c.pools {
		if state, ok := learned[p.name]; ok {
			p.judge.Load(state)
		}
	}
}
