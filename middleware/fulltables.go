package middleware

import (
	"context"
	"maps"
	"strings"
	"time"
)

// fullTable identifies a table of keys, by its address, and the rule that it belongs to. This
// process's table for limits with scope: exact belongs to no rule.
type fullTable struct {
	table any
	rule  string
}

// tableUses returns the counters of each table of keys that is kept. The caller holds
// sharing.mu.
func (g *Guard) tableUses() map[fullTable]displacement {
	uses := make(map[fullTable]displacement)
	add := func(s *limitSpec) {
		rule, _, _ := strings.Cut(s.name, "?") // the rest names an exception
		if k := s.kept.keyed; k != nil {
			n := k.Stats()
			uses[fullTable{k, rule}] = displacement{n.Displaced, n.Inherited}
		}
	}
	for _, s := range g.rules.Load().allSpecs {
		add(s)
	}
	for _, s := range g.former.specs {
		add(s)
	}
	if g.local != nil {
		n := g.local.Stats()
		uses[fullTable{table: g.local}] = displacement{n.Displaced, n.Inherited}
	}
	return uses
}

// displaced returns the counters of the tables of keys, by rule.
func (g *Guard) displaced() map[string]displacement {
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	all := make(map[string]displacement)
	maps.Copy(all, g.sharing.gone)
	for t, n := range g.tableUses() {
		all[t.rule] = all[t.rule].plus(n)
	}
	return all
}

// Displaced returns, by rule, the number of keys that lost their place in a limit's full table
// or found none. It includes removed rules. Keys of limits with scope: exact, which this
// process decides on while their backend is unavailable, are under the rule "".
func (g *Guard) Displaced() map[string]int64 {
	all := make(map[string]int64)
	for rule, n := range g.displaced() {
		all[rule] = int64(n.displaced)
	}
	return all
}

// fullEvery is the interval at which the tables are checked.
const fullEvery = 5 * time.Second

// watchTables logs each rule once if a table of its keys was full. It returns when ctx ends.
func (g *Guard) watchTables(ctx context.Context) {
	ticker := time.NewTicker(fullEvery)
	defer ticker.Stop()
	logged := make(map[string]bool)
	for {
		for rule, n := range g.displaced() {
			if n.displaced > 0 && !logged[rule] {
				logged[rule] = true
				g.opts.log.Warn("a limit has more keys in use than max_keys, so it may refuse keys that it should not; raise max_keys, or add an outer limit by addr:ip; logged once, then counted",
					"rule", rule, "max_keys", g.maxKeys, "displaced", n.displaced)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
