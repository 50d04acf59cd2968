package chaos

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// namespace is the namespace of the rules.
const namespace = "chaos"

// redisName returns the name of one of the namespace's keys in Redis.
func redisName(suffix string) string { return "hotparam:{" + namespace + "}:" + suffix }

// redisServers are the Redis servers of a run. Each process has a relay of its own to a single
// server. If there are several servers, each has one relay, which all processes share and whose
// address it announces to clients. The run itself talks to the servers directly.
type redisServers struct {
	single   *testenv.RedisServer
	sentinel *testenv.RedisSentinelSet
	cluster  *testenv.RedisClusterSet
	relays   map[string]*tcpRelay // relays of several servers, by the address that each listens on
	// whole says that no node of the cluster serves while some slots have no node.
	whole bool
}

func startRedis(s *scope, c *Config) *redisServers {
	r := &redisServers{relays: make(map[string]*tcpRelay), whole: c.Seed%4 < 2}
	advertise := func(addr string) string { return r.relay(s, c, addr).Addr() }
	switch c.Redis {
	case "sentinel":
		r.sentinel = testenv.RedisSentinelWith(s, testenv.RedisSetConfig{Advertise: advertise})
	case "cluster":
		coverage := map[bool]string{true: "yes", false: "no"}[r.whole]
		r.cluster = testenv.RedisClusterWith(s, testenv.RedisSetConfig{
			Advertise: advertise, Arguments: []string{"--cluster-require-full-coverage", coverage},
		})
	default:
		r.single = testenv.Redis(s)
	}
	return r
}

// relay returns the relay to one of several servers.
func (r *redisServers) relay(s *scope, c *Config, addr string) *tcpRelay {
	if relay := r.relays[addr]; relay != nil {
		return relay
	}
	relay := newTCPRelay(s, addr, c.Seed<<8|uint64(200+len(r.relays)), nil)
	r.relays[addr] = relay
	return relay
}

// url returns the URL for a process, which reaches a single server through the relay.
func (r *redisServers) url(relay *tcpRelay) string {
	switch {
	case r.sentinel != nil:
		return r.sentinel.URL()
	case r.cluster != nil:
		return r.cluster.URL()
	}
	return "redis://" + relay.Addr() + "/0"
}

// primary returns the server that has the published set now.
func (r *redisServers) primary() *testenv.RedisServer {
	switch {
	case r.sentinel != nil:
		return r.sentinel.PrimaryServer()
	case r.cluster != nil:
		return r.cluster.Master(redisName("hot"))
	}
	return r.single
}

// masters returns the host:port of each server that takes writes.
func (r *redisServers) masters(ctx context.Context) (addrs []string) {
	if r.cluster == nil {
		return []string{r.primary().Addr()}
	}
	for _, addr := range r.cluster.Addrs() {
		_ = testenv.WithRedis(addr, nil, func(c *redis.Client) error { // a dead node is not a master
			role, err := c.Do(ctx, "ROLE").Slice()
			if err == nil && len(role) > 0 && fmt.Sprint(role[0]) == "master" {
				addrs = append(addrs, addr)
			}
			return err
		})
	}
	return addrs
}

// do runs a command on each master.
func (r *redisServers) do(ctx context.Context, args ...any) error {
	for _, addr := range r.masters(ctx) {
		err := testenv.WithRedis(addr, nil, func(c *redis.Client) error { return c.Do(ctx, args...).Err() })
		if err != nil {
			return fmt.Errorf("%v at %s: %w", args, addr, err)
		}
	}
	return nil
}

// onKey runs a command on the master that has the key.
func (r *redisServers) onKey(ctx context.Context, args ...any) (err error) {
	for _, addr := range r.masters(ctx) {
		err = testenv.WithRedis(addr, nil, func(c *redis.Client) error { return c.Do(ctx, args...).Err() })
		if err == nil || !strings.HasPrefix(err.Error(), "MOVED") {
			return err
		}
	}
	return err
}

// limitKeys returns the names of all keys of exact limits.
func (r *redisServers) limitKeys(ctx context.Context) (map[string]bool, error) {
	keys := make(map[string]bool)
	for _, addr := range r.masters(ctx) {
		err := testenv.WithRedis(addr, nil, func(c *redis.Client) error {
			names, err := c.Keys(ctx, "hotparam:{"+namespace+"/*}:limit").Result()
			for _, name := range names {
				keys[name] = true
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}
