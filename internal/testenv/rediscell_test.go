package testenv

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestRedisCell(t *testing.T) {
	server := RedisCell(t)
	err := withClient(server.Addr(), nil, func(client *redis.Client) error {
		got, err := client.Do(t.Context(), "CL.THROTTLE", "key", 4, 1, 60).Int64Slice()
		if err == nil && (len(got) != 5 || got[0] != 0 || got[1] != 5 || got[2] != 4) {
			t.Errorf("CL.THROTTLE answers %d", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
