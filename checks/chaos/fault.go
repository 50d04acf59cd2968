package chaos

import "github.com/hotparam/hotparam/checks/overlay"

// Fault is a mistake that is planted in the product to verify that a run finds it.
type Fault struct {
	Name      string
	In        string // the program: hotparam for the aggregators, or instance
	Edits     []Edit
	Redis     string   // the deployment that shows it; empty means single
	Counts    string   // the transport; empty means statsd
	Seed      uint64   // an even seed has two aggregators with a lease
	Only      []string // the events that show it
	Invariant string   // the invariant that breaks, such as "I1"
}

// Edit replaces a text that occurs exactly once in a file.
type Edit overlay.Edit

// Faults returns the faults that the tests plant. Building fails if a text is no longer in the
// source. The fault must then be adapted.
func Faults() []Fault {
	return []Fault{
		{
			Name: "a bucket in Redis that is never charged", In: "instance", Only: []string{"roll"}, Seed: 1, Invariant: "I1",
			Edits: []Edit{
				{"limiter/redislimiter/lua/bucket.lua", "b.owed + n * b.cost - b.full", "0"},
				{"limiter/redislimiter/lua/plain.lua", "owed + (n + keep) * cost - limit * cost", "0"},
			},
		},
		{
			Name: "a clamp of what is missing to the burst of whoever asks", In: "instance", Only: []string{"split", "split", "roll"}, Seed: 1, Invariant: "I1",
			Edits: []Edit{{
				"limiter/redislimiter/lua/bucket.lua", "b.owed = owed - passed * earn end",
				"b.owed = owed - passed * earn end\n      if b.owed > b.full then b.owed, on.dirty = b.full, true end",
			}},
		},
		{
			Name: "a breaker that never closes", In: "instance", Only: []string{"readonly-redis", "nothing"}, Seed: 1, Invariant: "I3",
			Edits: []Edit{{"limiter/internal/breaker/breaker.go", "	n.away.Store(false)\n	s.open.Add(-1)\n", ""}},
		},
		{
			Name: "a breaker for all nodes together", In: "instance", Redis: "cluster", Only: []string{"cut-node"}, Seed: 13, Invariant: "I3",
			Edits: []Edit{{"limiter/redislimiter/node.go", "	key, _ := s.keyName(op.Name, op.Key)\n	return server(ctx, s.client, key)\n", "	return \"all\"\n"}},
		},
		{
			Name: "a back-off that is reset by each try", In: "hotparam", Only: []string{"readonly-redis", "readonly-redis"}, Seed: 39, Invariant: "I4",
			Edits: []Edit{
				{"hotkeys/outage.go", "wait = base.Backoff(o.tries, minBackoff, maxBackoff)", "wait = time.Microsecond"},
				{"hotkeys/outage.go", "\t\"github.com/hotparam/hotparam/internal/base\"\n", ""},
			},
		},
		{
			Name: "a fence that lets everybody through", In: "hotparam", Only: []string{"stop-aggregator", "stop-aggregator"}, Seed: 52, Invariant: "I3",
			Edits: []Edit{{"hotkeys/lua/common.lua", "local function fence()\n", "local function fence()\n  do extend() return end\n"}},
		},
		{
			Name: "a watcher that does not take the set which it has loaded", In: "instance", Only: []string{"kill-instance"}, Seed: 1, Invariant: "I2",
			Edits: []Edit{{"hotkeys/load.go", "	w.state.replace(version, set, issued)\n", "	_ = version\n"}},
		},
		{
			Name: "a refresh that takes no key which it does not know", In: "hotparam", Only: []string{"flood-hot-keys"}, Seed: 1, Invariant: "I2",
			Edits: []Edit{{"hotkeys/desired.go", "case !d.wants(&w):", "case true:"}},
		},
		{
			Name: "a bound of the polls that pushes cause, removed", In: "instance", Only: []string{"flood-published"}, Seed: 1, Invariant: "I4",
			Edits: []Edit{{"hotkeys/hints.go", "	if b.full.Sub(now) > (hintBurst-1)*hintRate {\n		return false\n	}\n", ""}},
		},
		{
			Name: "a sink that obeys any pause and is not watched", In: "instance", Only: []string{"throttled-kafka"}, Seed: 1, Counts: "kafka", Invariant: "I2",
			Edits: []Edit{
				{"collector/kafkasink/answers.go", "ms < 0 || time.Duration(ms)*time.Millisecond > a.limit", "ms < 0"},
				{"collector/kafkasink/run.go", "if s.isStalled(ses, now) {", "if false && s.isStalled(ses, now) {"},
			},
		},
	}
}
