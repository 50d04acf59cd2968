package testenv

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisServer is a real Redis that belongs to one test: one node, no persistence,
// no password. Its methods belong to the test's own goroutine.
type RedisServer struct {
	tb     testing.TB
	addr   string
	tls    *tls.Config // nil: without TLS
	engine *redisProcess
}

// Redis starts the redis-server of the PATH for the test and returns when it answers.
// Without one the test is skipped (see the package).
func Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return localRedis(tb, redisProgram(tb), redisSetup{})
}

// Addr is the server's host:port. It stays the same over Restart.
func (s *RedisServer) Addr() string { return s.addr }

// PID returns the server's process id.
func (s *RedisServer) PID() int { return s.engine.process.PID() }

// URL is the server's address as redis.ParseURL takes it, database 0.
func (s *RedisServer) URL() string {
	if s.tls != nil {
		return "rediss://" + s.addr + "/0"
	}
	return "redis://" + s.addr + "/0"
}

// Kill ends the server at once (SIGKILL) and returns when it is gone: connections
// break and new ones are refused.
func (s *RedisServer) Kill() {
	s.tb.Helper()
	s.do("kill", s.engine.kill)
}

// Restart kills the server, if it runs, and starts it again on the same address
// with no data and a new run id. It returns when it answers.
func (s *RedisServer) Restart() {
	s.tb.Helper()
	s.do("kill", s.engine.kill)
	s.do("start", s.engine.start)
}

// Pause stops the server in its tracks (SIGSTOP): connections stay open, new ones
// are accepted by the kernel, nothing is answered until Resume.
func (s *RedisServer) Pause() {
	s.tb.Helper()
	s.do("pause", s.engine.pause)
}

// Resume lets a paused server go on, with all that was sent to it meanwhile.
func (s *RedisServer) Resume() {
	s.tb.Helper()
	s.do("resume", s.engine.resume)
}

// Flush deletes everything and forgets the loaded scripts.
func (s *RedisServer) Flush() {
	s.tb.Helper()
	s.do("flush", func(ctx context.Context) error {
		return withClient(s.addr, s.tls, func(client *redis.Client) error {
			if err := client.FlushAll(ctx).Err(); err != nil {
				return err
			}
			return client.ScriptFlush(ctx).Err()
		})
	})
}

func (s *RedisServer) do(what string, action func(context.Context) error) {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(s.tb.Context(), Patience)
	defer cancel()
	if err := action(ctx); err != nil {
		s.tb.Fatalf("testenv: %s redis at %s: %v", what, s.addr, err)
	}
}

// withClient runs the action with a client that never retries and obeys deadlines,
// and leaves nothing of it behind.
func withClient(addr string, config *tls.Config, action func(*redis.Client) error) error {
	client := redis.NewClient(&redis.Options{
		Addr:          addr,
		MaxRetries:    -1,
		DialTimeout:   10 * time.Second,
		DialerRetries: 1,
		// Both would go on in goroutines of their own after Close.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		PoolSize:                 2,
		ContextTimeoutEnabled:    true,
		TLSConfig:                config,
	})
	defer client.Close()
	return action(client)
}
