package testenv

import (
	"context"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisSentinelSet is a primary with a replica, and three sentinels that promote the replica
// about two seconds after the primary died. Its methods must be called from the test's own
// goroutine.
type RedisSentinelSet struct {
	tb        testing.TB
	c         RedisSetConfig
	servers   []*RedisServer
	sentinels []*RedisServer
	dead      *RedisServer // the killed primary
}

// sentinelMaster is the sentinels' name for the primary.
const sentinelMaster = "main"

// prompt makes a primary send its data to a replica at once instead of after five seconds.
var prompt = []string{"--repl-diskless-sync-delay", "0"}

// RedisSentinel starts a set and returns when a failover is possible.
func RedisSentinel(tb testing.TB) *RedisSentinelSet {
	tb.Helper()
	return RedisSentinelWith(tb, RedisSetConfig{})
}

// RedisSentinelWith is like RedisSentinel, but with other settings.
func RedisSentinelWith(tb testing.TB, c RedisSetConfig) *RedisSentinelSet {
	tb.Helper()
	s := &RedisSentinelSet{tb: tb, c: c}
	primary := startRedis(tb, redisSetup{announce: s.c.announceReplica, arguments: s.arguments("")})
	address := Advertised(c.Advertise, primary.Addr())
	replica := startRedis(tb, redisSetup{announce: s.c.announceReplica, arguments: s.arguments(address)})
	s.servers = []*RedisServer{primary, replica}
	// A sentinel that discovers a replica before it is in sync never chooses it.
	replica.AwaitReplica()
	awaitRedis(tb, "the replica is sent what is written", func(ctx context.Context) bool { return isSent(ctx, primary) })
	host, port, _ := net.SplitHostPort(address)
	for range 3 {
		s.sentinels = append(s.sentinels, startRedis(tb, redisSetup{config: strings.Join([]string{
			"sentinel monitor " + sentinelMaster + " " + host + " " + port + " 2",
			"sentinel down-after-milliseconds " + sentinelMaster + " 1000",
			"sentinel failover-timeout " + sentinelMaster + " 5000",
		}, "\n") + "\n"}))
	}
	for _, sentinel := range s.sentinels {
		// Redis 7 has an option to announce itself sooner than after two seconds. Another makes
		// it connect to a new primary before the second passes that makes the primary count as
		// down.
		_ = s.ask(sentinel, "DEBUG", "publish-period", "100", "ping-period", "200")
	}
	for _, sentinel := range s.sentinels {
		awaitRedis(tb, "the sentinels know each other and the replica", func(ctx context.Context) bool {
			client := redis.NewSentinelClient(&redis.Options{Addr: sentinel.Addr()})
			defer client.Close()
			known, err := client.Master(ctx, sentinelMaster).Result()
			return err == nil && known["num-other-sentinels"] == "2" && known["num-slaves"] == "1"
		})
	}
	return s
}

// arguments returns the arguments of a replica of the primary that advertises the address. If
// primary is empty, they are those of a server that starts as a primary.
func (s *RedisSentinelSet) arguments(primary string) []string {
	all := append(slices.Clone(prompt), s.c.Arguments...)
	if host, port, err := net.SplitHostPort(primary); err == nil {
		all = append(all, "--replicaof", host+" "+port)
	}
	return all
}

// Master returns the sentinels' name for the primary.
func (s *RedisSentinelSet) Master() string { return sentinelMaster }

// Sentinels returns the sentinels themselves.
func (s *RedisSentinelSet) Sentinels() []*RedisServer { return slices.Clone(s.sentinels) }

// Addrs returns the sentinels' host:port.
func (s *RedisSentinelSet) Addrs() []string {
	var addrs []string
	for _, sentinel := range s.sentinels {
		addrs = append(addrs, sentinel.Addr())
	}
	return addrs
}

// URL returns the set's URL in the form of redis.ParseFailoverURL, with database 0.
func (s *RedisSentinelSet) URL() string {
	addrs := s.Addrs()
	query := url.Values{"master_name": {s.Master()}, "addr": addrs[1:]}
	return "redis://" + addrs[0] + "/0?" + query.Encode()
}

// Primary returns the host:port of the primary according to most sentinels, which is the address
// that it advertises.
func (s *RedisSentinelSet) Primary() string {
	s.tb.Helper()
	votes := make(map[string]int)
	for _, sentinel := range s.sentinels {
		addr, err := s.ask(sentinel, "GET-MASTER-ADDR-BY-NAME", sentinelMaster).StringSlice()
		if err == nil && len(addr) == 2 {
			votes[net.JoinHostPort(addr[0], addr[1])]++
		}
	}
	for addr, n := range votes {
		if 2*n > len(s.sentinels) {
			return addr
		}
	}
	return ""
}

// PrimaryServer returns the primary itself.
func (s *RedisSentinelSet) PrimaryServer() *RedisServer {
	s.tb.Helper()
	addr := s.Primary()
	i := slices.IndexFunc(s.servers, func(r *RedisServer) bool { return Advertised(s.c.Advertise, r.Addr()) == addr })
	if i < 0 {
		s.tb.Fatalf("testenv: the sentinels name %q as the primary, which is none of ours", addr)
	}
	return s.servers[i]
}

// Replica returns the server that is not the primary.
func (s *RedisSentinelSet) Replica() *RedisServer {
	s.tb.Helper()
	primary := s.PrimaryServer()
	return s.servers[slices.IndexFunc(s.servers, func(r *RedisServer) bool { return r != primary })]
}

// KillPrimary kills the primary (SIGKILL) and returns at once.
func (s *RedisSentinelSet) KillPrimary() {
	s.tb.Helper()
	s.dead = s.PrimaryServer()
	s.dead.Kill()
}

// AwaitFailover waits until a server other than former is the primary and takes writes, and
// returns its host:port.
func (s *RedisSentinelSet) AwaitFailover(former string) string {
	s.tb.Helper()
	var addr string
	awaitRedis(s.tb, "another primary than "+former, func(ctx context.Context) bool {
		addr = s.Primary()
		return addr != "" && addr != former && isPrimary(ctx, addr)
	})
	return addr
}

// RestartOld restarts the server that KillPrimary killed, with no data, as a replica of the
// present primary. It returns when the replica is in sync.
func (s *RedisSentinelSet) RestartOld() {
	s.tb.Helper()
	s.dead.setup.arguments = s.arguments(s.Primary())
	s.dead.Restart()
	s.dead.AwaitReplica()
}

// ask asks a sentinel, which may be paused.
func (s *RedisSentinelSet) ask(sentinel *RedisServer, question ...any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(s.tb.Context(), time.Second)
	defer cancel()
	return sentinel.do(ctx, append([]any{"SENTINEL"}, question...)...)
}

// isPrimary reports whether the server at addr takes messages and is a primary.
func isPrimary(ctx context.Context, addr string) bool {
	var role []any
	err := WithRedis(addr, nil, func(c *redis.Client) (err error) {
		if err = c.Do(ctx, "PUBLISH", "testenv", "").Err(); err == nil {
			role, err = c.Do(ctx, "ROLE").Slice()
		}
		return err
	})
	return err == nil && len(role) > 0 && role[0] == "master"
}

// inStep reports whether a replica has all data of its primary.
func inStep(ctx context.Context, replica *RedisServer) bool {
	info, _ := replica.do(ctx, "INFO", "replication").Text()
	return strings.Contains(info, "master_link_status:up")
}

// isSent reports whether an empty primary sends writes to its replica. The primary starts to send
// with the first message of a synced replica, which comes up to a second later. Writes before
// that are lost if the primary dies.
func isSent(ctx context.Context, primary *RedisServer) bool {
	n := 0
	_ = WithRedis(primary.Addr(), primary.setup.tls, func(c *redis.Client) (err error) {
		conn := c.Conn() // WAIT covers only the writes of its own connection
		defer func() { _ = conn.Close() }()
		if err = conn.FlushAll(ctx).Err(); err != nil {
			return err
		}
		n, err = conn.Do(ctx, "WAIT", 1, 100).Int()
		return err
	})
	return n > 0
}

// awaitRedis is [Eventually], with a context for the questions.
func awaitRedis(tb testing.TB, what string, done func(context.Context) bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), Patience)
	defer cancel()
	Eventually(tb, "redis: "+what, func() bool { return done(ctx) })
}
