//go:build real && !race

package redislimiter_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Under the race detector, TestConforms covers the same code.
func TestConformsOnCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: testenv.RedisCluster(t).Addrs(), MaxRetries: -1, ContextTimeoutEnabled: true,
		DialTimeout: calm, ReadTimeout: calm, WriteTimeout: calm, PoolTimeout: calm,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { client.Close() })
	testAll(t, client, 30)
}

func TestConformsAtLength(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	testStore(t, calmClient(t), 100)
}
