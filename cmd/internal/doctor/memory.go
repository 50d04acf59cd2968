package doctor

import (
	"context"
	"fmt"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
)

// memory checks the memory of the aggregators' windows. Keys without a counter of their own are
// normal if there are many keys. They become a problem, as in the alert, once keys cannot be
// distinguished from hot ones.
func (x *examination) memory(ctx context.Context, members []published.Member) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	suspects, err := hotkeys.ListSuspects(call, x.Client, x.Namespace)
	if err != nil {
		x.add("memory", Unknown, fmt.Sprintf("suspects cannot be read: %v", err), "")
	}
	full, known := 0, 0
	for i := range members {
		m := &members[i]
		if m.Role != published.RoleAggregator || m.MemoryMax == 0 {
			continue
		}
		known++
		if float64(m.MemoryUsed) < nearlyFull*float64(m.MemoryMax) && m.Floor == 0 {
			continue
		}
		full++
		status, what := Warning, fmt.Sprintf("aggregator %s uses %s of its %s", m.Name, megabytes(m.MemoryUsed), megabytes(m.MemoryMax))
		if m.Floor > 0 {
			what += fmt.Sprintf(", and keys with counts up to %d have no counter of their own", m.Floor)
			if len(suspects) > 0 {
				status = Problem
				what += fmt.Sprintf("; of %s it is not known whether they are hot", hotwords.Plural(len(suspects), "key"))
			}
		}
		x.add("memory", status, what, "raise aggregator.memory and restart it, or count fewer names: by fewer parameters, or ignore what scanners send")
	}
	switch {
	case full > 0:
	case known == 0:
		x.add("memory", Unknown, "no aggregator says how much of its memory it uses", "")
	default:
		x.add("memory", OK, hotwords.Plural(known, "aggregator")+" with room for counters", "")
	}
}

// tables checks that the limits of instances have places for their keys.
func (x *examination) tables(members []published.Member) {
	full := 0
	for i := range members {
		if m := &members[i]; m.Displaced > 0 {
			full++
			x.add("tables", Warning, fmt.Sprintf("instance %s: limits found no place for %s in the last minute, and may refuse keys that they should not", m.Name, hotwords.Plural(int(m.Displaced), "key")),
				"raise max_keys, or add an outer limit by addr:ip; hotparam_app_displaced_keys_total has the rules")
		}
	}
	if full == 0 {
		x.add("tables", OK, "each limit has places for its keys", "")
	}
}

// places checks that the published set has room for all hot keys.
func (x *examination) places(members []published.Member) {
	full := 0
	for i := range members {
		if m := &members[i]; m.Waiting > 0 {
			full++
			x.add("places", Problem, fmt.Sprintf("%s of aggregator %s are limited nowhere, as the published set is full", hotwords.Plural(int(m.Waiting), "hot key"), m.Name),
				"raise the threshold of the rule that has most keys: its metric hotparam_published_waiting_keys has the rules, hotparam list the keys")
		}
	}
	if full == 0 {
		x.add("places", OK, "each hot key has its place in the published set", "")
	}
}
