package testenv

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRedisSentinelFailsOver(t *testing.T) {
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
	if role := set.role(t.Context(), former); role != "slave" {
		t.Errorf("the server that was restarted is a %s", role)
	}
}

func TestRedisClusterFailsOver(t *testing.T) {
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
	if err := ping(server, patience); err != nil {
		t.Fatal(err)
	}
	server.Flush()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stranger := files.Config(t)
	stranger.Certificates = nil
	untrusting := &tls.Config{MinVersion: tls.VersionTLS12}
	for what, config := range map[string]*tls.Config{"no TLS": nil, "no certificate": stranger, "no authority": untrusting} {
		err := withClient(server.Addr(), config, func(c *redis.Client) error { return c.Ping(ctx).Err() })
		if err == nil {
			t.Errorf("%s: answered", what)
		}
	}
}
