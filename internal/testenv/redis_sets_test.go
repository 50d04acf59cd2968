package testenv

import (
	"context"
	"crypto/tls"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRedisSentinelFailsOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	from := time.Now()
	set := RedisSentinel(t)
	t.Logf("ready after %v", time.Since(from).Round(time.Millisecond))
	options, err := redis.ParseFailoverURL(set.URL())
	if err != nil || options.MasterName != set.Master() || len(options.SentinelAddrs) != 3 {
		t.Fatalf("ParseFailoverURL(%q): %+v, %v", set.URL(), options, err)
	}
	former := set.Primary()
	from = time.Now()
	set.KillPrimary()
	if now := set.AwaitFailover(former); now == former || now != set.Primary() {
		t.Errorf("the primary is %s, and was %s", now, former)
	}
	t.Logf("failed over after %v", time.Since(from).Round(time.Millisecond))
	set.RestartOld()
}

func TestRedisClusterFailsOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	from := time.Now()
	set := RedisCluster(t)
	t.Logf("ready after %v", time.Since(from).Round(time.Millisecond))
	options, err := redis.ParseClusterURL(set.URL())
	if err != nil || len(options.Addrs) != 6 {
		t.Fatalf("ParseClusterURL(%q): %+v, %v", set.URL(), options, err)
	}
	former := set.Master("key")
	from = time.Now()
	former.Kill()
	if now := set.AwaitFailover("key", former); now == former {
		t.Errorf("the master is still %s", now.Addr())
	}
	t.Logf("failed over after %v", time.Since(from).Round(time.Millisecond))
}

func TestRedisTLSWantsACertificate(t *testing.T) {
	files := Certificates(t)
	server := RedisTLS(t, files)
	if err := ping(server, Patience); err != nil {
		t.Fatal(err)
	}
	server.Flush()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	stranger := files.Config(t)
	stranger.Certificates = nil
	untrusting := &tls.Config{MinVersion: tls.VersionTLS12}
	for what, config := range map[string]*tls.Config{"no TLS": nil, "no certificate": stranger, "no authority": untrusting} {
		err := WithRedis(server.Addr(), config, func(c *redis.Client) error { return c.Ping(ctx).Err() })
		if err == nil {
			t.Errorf("%s: answered", what)
		}
	}
}

// Clients see only advertised addresses, before and after a failover and a restart.
func TestRedisSetsAdvertise(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	relays := make(map[string]string)
	config := RedisSetConfig{Advertise: func(addr string) string {
		if relays[addr] == "" {
			relays[addr] = NewRelay(t, addr).Addr()
		}
		return relays[addr]
	}}
	isAdvertised := func(addr string) bool {
		return slices.Contains(slices.Collect(maps.Values(relays)), addr)
	}

	cluster := RedisClusterWith(t, config)
	former := cluster.Master("key")
	former.Kill()
	cluster.AwaitFailover("key", former)
	former.Restart()
	former.AwaitReplica()
	options, err := redis.ParseClusterURL(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClusterClient(options)
	t.Cleanup(func() { client.Close() })
	awaitRedis(t, "a client is told all six nodes", func(ctx context.Context) bool {
		text, err := client.ClusterNodes(ctx).Result()
		well := 0
		for line := range strings.Lines(text) { // its id, its address, its role, and more
			fields := strings.Fields(line)
			addr, _, _ := strings.Cut(fields[1], "@")
			if !isAdvertised(addr) {
				t.Errorf("a client is told %s", addr)
			}
			if !strings.Contains(fields[2], "fail") {
				well++
			}
		}
		return err == nil && well == 6 || t.Failed()
	})

	sentinel := RedisSentinelWith(t, config)
	ask := func(want int) {
		t.Helper()
		options, err := redis.ParseFailoverURL(sentinel.URL())
		if err != nil {
			t.Fatal(err)
		}
		client := redis.NewSentinelClient(&redis.Options{Addr: options.SentinelAddrs[0]})
		defer client.Close()
		primary, err := client.GetMasterAddrByName(t.Context(), sentinel.Master()).Result()
		if err != nil || !isAdvertised(net.JoinHostPort(primary[0], primary[1])) {
			t.Errorf("a client is told %s, %v", primary, err)
		}
		replicas, err := client.Replicas(t.Context(), sentinel.Master()).Result()
		if err != nil || len(replicas) < want {
			t.Errorf("replicas: %v, %v", replicas, err)
		}
		for _, r := range replicas {
			if !isAdvertised(net.JoinHostPort(r["ip"], r["port"])) {
				t.Errorf("a client is told the replica %s:%s", r["ip"], r["port"])
			}
		}
	}
	ask(1)
	address := sentinel.Primary()
	sentinel.KillPrimary()
	sentinel.AwaitFailover(address)
	ask(0)
	sentinel.RestartOld()
	ask(1)
}
