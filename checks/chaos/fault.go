package chaos

import "github.com/hotparam/hotparam/checks/overlay"

// Fault is a mistake that is planted in the product to verify that a run finds it.
type Fault struct {
	Name      string
	In        string // the program: hotparam for the aggregators, or instance
	Edits     []overlay.Edit
	Redis     string   // the deployment that shows it; empty means single
	Counts    string   // the transport; empty means statsd
	Seed      uint64   // an even seed has two aggregators with a lease
	Only      []string // the events that show it
	Invariant string   // the invariant that breaks, such as "I1"
}

// Faults returns the faults that the tests plant. Building fails if a text is no longer in the
// source. The fault must then be adapted.
func Faults() []Fault {
	return []Fault{
		{
			Name: "a bucket in Redis that is never charged", In: "instance", Only: []string{"roll"}, Seed: 1, Invariant: "I1",
			Edits: []overlay.Edit{
				{File: "limiter/redislimiter/lua/bucket.lua", Old: "b.owed + n * b.cost - b.full", New: "0"},
				{File: "limiter/redislimiter/lua/plain.lua", Old: "owed + (n + keep) * cost - limit * cost", New: "0"},
			},
		},
		{
			Name: "a clamp of what is missing to the burst of whoever asks", In: "instance", Only: []string{"split", "split", "roll"}, Seed: 1, Invariant: "I1",
			Edits: []overlay.Edit{{
				File: "limiter/redislimiter/lua/bucket.lua", Old: "b.owed = owed - passed * earn end",
				New: "b.owed = owed - passed * earn end\n      if b.owed > b.full then b.owed, on.dirty = b.full, true end",
			}},
		},
		{
			Name: "a settlement of the fleet that is applied twice", In: "instance", Only: []string{"nothing"}, Seed: 1, Invariant: "I1",
			Edits: []overlay.Edit{{File: "limiter/fleet/settle.go", Old: "	s.held.Add(answer.Granted + a.owed)\n", New: "	s.held.Add(2*answer.Granted + a.owed)\n"}},
		},
		{
			Name: "a settlement of the fleet that is not debited", In: "instance", Only: []string{"nothing"}, Seed: 1, Invariant: "I1",
			Edits: []overlay.Edit{{File: "limiter/redislimiter/lua/lease.lua", Old: "  b.owed = b.owed + grant * cost\n", New: ""}},
		},
		{
			Name: "a breaker that never closes", In: "instance", Only: []string{"readonly-redis", "nothing"}, Seed: 1, Invariant: "I3",
			Edits: []overlay.Edit{{File: "limiter/internal/breaker/breaker.go", Old: "	n.unavailable.Store(false)\n	s.open.Add(-1)\n", New: ""}},
		},
		{
			Name: "a breaker for all nodes together", In: "instance", Redis: "cluster", Only: []string{"cut-node"}, Seed: 13, Invariant: "I3",
			Edits: []overlay.Edit{{File: "limiter/redislimiter/node.go", Old: "	key, _ := s.keyName(op.Name, op.Key)\n	return server(ctx, s.client, key)\n", New: "	return \"all\"\n"}},
		},
		{
			Name: "a back-off that is reset by each try", In: "hotparam", Only: []string{"readonly-redis", "readonly-redis"}, Seed: 39, Invariant: "I4",
			Edits: []overlay.Edit{
				{File: "hotkeys/outage.go", Old: "wait = base.Backoff(o.tries, minBackoff, maxBackoff)", New: "wait = time.Microsecond"},
				{File: "hotkeys/outage.go", Old: "\t\"github.com/hotparam/hotparam/internal/base\"\n", New: ""},
			},
		},
		{
			Name: "a fence that lets everybody through", In: "hotparam", Only: []string{"stop-aggregator", "stop-aggregator"}, Seed: 52, Invariant: "I3",
			Edits: []overlay.Edit{{File: "hotkeys/lua/common.lua", Old: "local function fence()\n", New: "local function fence()\n  do extend() return end\n"}},
		},
		{
			Name: "a watcher that does not take the set which it has loaded", In: "instance", Only: []string{"kill-instance"}, Seed: 1, Invariant: "I2",
			Edits: []overlay.Edit{{File: "hotkeys/load.go", Old: "	w.state.replace(version, set, issued)\n", New: "	_ = version\n"}},
		},
		{
			Name: "a refresh that takes no key which it does not know", In: "hotparam", Only: []string{"flood-hot-keys"}, Seed: 1, Invariant: "I2",
			Edits: []overlay.Edit{{File: "hotkeys/desired.go", Old: "case !d.wants(&w):", New: "case true:"}},
		},
		{
			Name: "a bound of the polls that pushes cause, removed", In: "instance", Only: []string{"flood-published"}, Seed: 1, Invariant: "I4",
			Edits: []overlay.Edit{{File: "hotkeys/poller.go", Old: "hintRate, time.Now()); ok {", New: "hintRate, time.Now()); ok || true {"}},
		},
		{
			Name: "a sink that obeys any pause and is not watched", In: "instance", Only: []string{"throttled-kafka"}, Seed: 1, Counts: "kafka", Invariant: "I2",
			Edits: []overlay.Edit{
				{File: "collector/kafkasink/session.go", Old: "isAhead && pause > s.longestPause", New: "false"},
				{File: "collector/kafkasink/run.go", Old: "if s.isStalled(ses, now) {", New: "if false && s.isStalled(ses, now) {"},
			},
		},
		{
			Name: "a change of an answer in memory that other instances ignore", In: "instance", Only: []string{"nothing"}, Seed: 1, Invariant: "I5",
			Edits: []overlay.Edit{{File: "hotkeys/invalidator_follow.go", Old: "		v.cache.InvalidateTarget(id)\n", New: "		_ = id\n"}},
		},
		{
			Name: "an operator's release of answers that instances ignore", In: "instance", Only: []string{"nothing", "nothing"}, Seed: 1, Invariant: "I5",
			Edits: []overlay.Edit{{File: "hotkeys/invalidator_follow.go", Old: "		v.cache.InvalidateTag(id)\n", New: "		_ = id\n"}},
		},
		{
			Name: "a header in vary that does not tell answers apart", In: "instance", Only: []string{"nothing"}, Seed: 1, Invariant: "I5",
			Edits: []overlay.Edit{{File: "internal/onhot/key.go", Old: "range p.headers {\n		values := r.Header[name]\n		b =", New: "range p.headers[:0] {\n		values := r.Header[name]\n		b ="}},
		},
		{
			Name: "a stale answer without an end", In: "instance", Only: []string{"nothing"}, Seed: 1, Invariant: "I5",
			Edits: []overlay.Edit{
				{File: "internal/onhot/store.go", Old: "e == nil || !now.Before(e.until):", New: "e == nil || e.answer == nil && !now.Before(e.until):"},
				{File: "internal/onhot/store.go", Old: "time.Until(e.Value.until)\n", New: "time.Until(e.Value.until) + time.Hour\n"},
			},
		},
		{
			Name: "an answer that is kept though its run began before a change", In: "instance", Only: []string{"nothing", "nothing", "nothing"}, Seed: 1, Invariant: "I5",
			Edits: []overlay.Edit{{
				File: "internal/onhot/flight.go", Old: "	e := &entry{answer: a, reason: reason, stamp: f.stamp}\n",
				New: "	f.stamp.targetSeen = f.stamp.target.Load()\n	e := &entry{answer: a, reason: reason, stamp: f.stamp}\n",
			}},
		},
		{
			Name: "an answer that users with cookies share", In: "instance", Only: []string{"nothing"}, Seed: 1, Invariant: "I5",
			Edits: []overlay.Edit{{File: "internal/onhot/request.go", Old: `has(h, "Cookie") && len(p.cookies) == 0:`, New: `has(h, "Cookie") && len(p.cookies) < 0:`}},
		},
		{
			Name: "an answer that outlives the rule that it was kept by", In: "instance", Only: []string{"split", "roll"}, Seed: 1, Invariant: "I5",
			Edits: []overlay.Edit{{File: "middleware/sharing/sharing.go", Old: "reflect.DeepEqual(x.rule, *r)", New: "reflect.DeepEqual(x.rule.ID, r.ID)"}},
		},
	}
}
