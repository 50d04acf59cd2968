package redisconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	defer func() { _ = client.Close() }()
	for _, c := range []struct {
		namespace string
		client    redis.UniversalClient
		poll      time.Duration
		want      string
	}{
		{"shop", client, 0, ""},
		{"", client, 0, `FooConfig.Namespace "": want one or more of`},
		{"my shop", client, 0, `FooConfig.Namespace "my shop"`},
		{"shop", client, -time.Second, "FooConfig.Poll -1s must not be negative"},
		{"shop", nil, 0, "no Redis client"},
	} {
		err := Check("FooConfig", c.namespace, c.client, NamedDuration{"Every", time.Second}, NamedDuration{"Poll", c.poll})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %v: %v, want %q", c.namespace, c.poll, err, c.want)
		}
	}
}
