package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/cmd/internal/history"
)

// History is the history that the file switches on.
type History struct {
	Store  *history.Store
	Client redis.UniversalClient // of Store
	Memory int64                 // its bound in bytes
	// Own reports whether it has a Redis user of its own. Otherwise the user of an instance needs no
	// right to it.
	Own bool
}

// lateHistory is the time without a new second from which the history is reported.
const lateHistory = 30 * time.Second

// history checks the rights to write the history, the memory of its Redis, and that it is written.
func (x *examination) history(ctx context.Context) {
	h := x.History
	if h == nil {
		return
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	commands, keys, err := h.Store.MissingRights(call)
	switch {
	case err != nil:
		x.add("history", Problem, fmt.Sprintf("the Redis of the history does not answer: %v", plainError(err)), "start it, or correct aggregator.history.redis")
		return
	case !h.Own && !x.aggregator && (keys || len(commands) > 0):
		x.add("history", OK, "the user of Redis may not read the history, as is right for an instance", "")
		return
	case keys || len(commands) > 0:
		x.lackHistory(commands, keys)
		return
	}
	c, err := h.Store.Condition(call)
	if err != nil {
		x.add("history", Unknown, fmt.Sprintf("the history cannot be read: %v", err), "")
		return
	}
	before := len(x.found)
	x.historyMemory(&c)
	age := time.Since(c.Newest).Round(time.Second)
	switch {
	case !x.published:
	case c.Newest.IsZero():
		x.add("history", Problem, "no aggregator has written a history", "restart the aggregators: they read aggregator.history only at the start")
	case age > lateHistory:
		x.add("history", Problem, fmt.Sprintf("the history was last written %v ago", age), "the log of the aggregator and its /-/ready say why; hotparam_history_dropped_total counts the missing seconds")
	}
	if len(x.found) == before {
		x.add("history", OK, fmt.Sprintf("the history has %s of at most %s", megabytes(c.Bytes), megabytes(h.Memory)), "")
	}
}

// historyMemory checks that the server has room for the history. Most of what it has is in use by
// others if the server is nearly full.
func (x *examination) historyMemory(c *history.Condition) {
	full := c.Used + max(0, x.History.Memory-c.Bytes) // when the history has reached its bound
	const mend = "raise maxmemory, lower aggregator.history.memory, or give the history a Redis of its own by aggregator.history.redis"
	switch {
	case c.Max == 0:
	case c.Used >= c.StopsAt:
		x.add("history", Problem, fmt.Sprintf("the history has stopped: its Redis uses %s of %s of memory (maxmemory), and limits need the rest", megabytes(c.Used), megabytes(c.Max)), mend)
	case full > c.StopsAt:
		x.add("history", Warning, fmt.Sprintf("the history will stop before it has %s: its Redis uses %s, and at %s of its %s (maxmemory) nothing more is written", megabytes(x.History.Memory), megabytes(c.Used), megabytes(c.StopsAt), megabytes(c.Max)), mend)
	}
}

// lackHistory reports rights that a writer of the history lacks.
func (x *examination) lackHistory(commands []string, keys bool) {
	slices.Sort(commands)
	var words []string
	if keys {
		words = append(words, "'~hotparam-history:{"+x.Namespace+"}:*'")
	}
	for _, command := range commands {
		words = append(words, "+"+command)
	}
	rights := strings.Join(words, " ")
	x.add("history", Problem, "the user of Redis may not write the history: it lacks "+rights, "ACL SETUSER "+userOf(x.History.Client)+" "+rights+"; docs/REDIS.md has the whole list (hotparam-historian)")
}
