package bench

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// Fleet measures how instances hold one limit together: see [yardstick.Fleet]. It uses the Redis at
// a URL, or starts one by command if that is empty.
func Fleet(ctx context.Context, command []string, url string, c yardstick.FleetConfig) (result yardstick.FleetResult, err error) {
	h := newHarness(command, url)
	defer func() { err = interrupted(ctx, errors.Join(err, h.stop())) }()
	if err := h.useRedis(ctx); err != nil {
		return result, err
	}
	c.Connect = func() (redis.UniversalClient, error) { return hotkeys.NewClient(h.redis) }
	c.Namespace = h.namespace
	return yardstick.Fleet(ctx, c)
}
