package real

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestRedisCell(t *testing.T) {
	err := testenv.WithRedis(RedisCell(t).Addr(), nil, func(c *redis.Client) error {
		got, err := c.Do(t.Context(), "CL.THROTTLE", "key", 4, 1, 60).Int64Slice()
		if err == nil && (len(got) != 5 || got[0] != 0 || got[1] != 5 || got[2] != 4) {
			t.Errorf("CL.THROTTLE answers %d", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
