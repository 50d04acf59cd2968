package history

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Parts of the server's maxmemory at which nothing more is written, and below which it is again. A
// full server refuses writes or evicts keys, whatever its policy, and limits are among them.
const (
	stopAt   = 0.80
	resumeAt = 0.75
)

// room is the memory of the server that holds the history.
type room struct {
	used, most int64 // most is 0 if the server has no bound
	policy     string
}

// fraction returns the part of the memory that is used.
func (r room) fraction() float64 {
	if r.most == 0 {
		return 0
	}
	return float64(r.used) / float64(r.most)
}

// words describes a server that is too full.
func (r room) words() string {
	return fmt.Sprintf("Redis uses %.0f%% of its maxmemory (%s): history is not written from %.0f%% on, so that no limit is lost, until it is below %.0f%%",
		100*r.fraction(), r.policy, 100*stopAt, 100*resumeAt)
}

// room reads the memory of the server.
func (s *Store) room(ctx context.Context) (r room, err error) {
	var text string
	if c, ok := s.client.(*redis.ClusterClient); ok {
		node, err := c.MasterForKey(ctx, s.owners)
		if err != nil {
			return r, err
		}
		text, err = node.Info(ctx, "memory").Result()
		if err != nil {
			return r, err
		}
	} else if text, err = s.client.Info(ctx, "memory").Result(); err != nil {
		return r, err
	}
	return parseRoom(text), nil
}

// parseRoom reads the answer to INFO memory. A server that does not name its bound has none.
func parseRoom(text string) (r room) {
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		switch name {
		case "used_memory":
			r.used, _ = strconv.ParseInt(value, 10, 64)
		case "maxmemory":
			r.most, _ = strconv.ParseInt(value, 10, 64)
		case "maxmemory_policy":
			r.policy = value
		}
	}
	return r
}
