package history

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Condition is the state of a history in Redis.
type Condition struct {
	Newest time.Time // newest second that is written; zero if there is none
	Bytes  int64     // size of all chunks
	// Used and Max are the memory of the server. Max is zero if it has no bound.
	Used, Max int64
	// StopsAt is the memory of the server at which nothing more is written.
	StopsAt int64
}

// Condition reads the state. Without the right to call INFO, only the history's own is known.
func (s *Store) Condition(ctx context.Context) (c Condition, err error) {
	states, err := s.states(ctx)
	if err != nil {
		return c, err
	}
	for _, state := range states {
		c.Bytes += state.Bytes
		if newest := time.Unix(state.Until, 0); newest.After(c.Newest) {
			c.Newest = newest
		}
	}
	if r, err := s.room(ctx); err == nil {
		c.Used, c.Max, c.StopsAt = r.used, r.most, int64(stopAt*float64(r.most))
	}
	return c, nil
}

// MissingRights returns the commands that the user may not run although a writer does. keys reports
// whether the user may not write the keys of the history. It sets and deletes a key of its own.
func (s *Store) MissingRights(ctx context.Context) (commands []string, keys bool, err error) {
	key := s.prefix + "doctor"
	calls := [][]any{
		{"evalsha", strings.Repeat("0", 40), 1, key}, {"eval", "return 1", 1, key},
		{"hset", key, "f", "1"}, {"pexpire", key, 1000}, {"hget", key, "f"}, {"hmget", key, "f"}, {"hgetall", key}, {"hkeys", key},
		{"hstrlen", key, "f"}, {"hincrby", key, "f", 1}, {"hdel", key, "f"}, {"info", "memory"},
	}
	answers := make([]*redis.Cmd, len(calls))
	_, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, call := range calls {
			answers[i] = p.Do(ctx, call...)
		}
		return nil
	})
	var answer redis.Error
	if err != nil && !errors.As(err, &answer) {
		return nil, false, err
	}
	for i, answer := range answers {
		switch err := answer.Err(); {
		case !redis.HasErrorPrefix(err, "NOPERM"):
		case strings.Contains(err.Error(), "run the"):
			commands = append(commands, calls[i][0].(string))
		default:
			keys = true
		}
	}
	return commands, keys, nil
}
