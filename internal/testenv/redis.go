package testenv

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisServer is a real Redis that belongs to one test: one node, no persistence, no password.
// Its methods must be called from the test's own goroutine.
type RedisServer struct {
	tb     testing.TB
	addr   string
	tls    *tls.Config // nil disables TLS
	engine *redisProcess
}

// Redis starts the redis-server of the PATH for the test and returns when it answers.
// Without one the test is skipped (see the package).
func Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return localRedis(tb, redisProgram(tb), redisSetup{})
}

// Addr returns the server's host:port. Restart does not change it.
func (s *RedisServer) Addr() string { return s.addr }

// PID returns the server's process id.
func (s *RedisServer) PID() int { return s.engine.process.PID() }

// URL returns the server's URL in the form of redis.ParseURL, with database 0.
func (s *RedisServer) URL() string {
	if s.tls != nil {
		return "rediss://" + s.addr + "/0"
	}
	return "redis://" + s.addr + "/0"
}

// Kill kills the server (SIGKILL) and returns when it has ended: connections break, and new ones
// are refused.
func (s *RedisServer) Kill() {
	s.tb.Helper()
	s.do("kill", s.engine.kill)
}

// Restart kills the server, if it runs, and restarts it on the same address with no data and a
// new run id. It returns when the server answers.
func (s *RedisServer) Restart() {
	s.tb.Helper()
	s.do("kill", s.engine.kill)
	s.do("start", s.engine.start)
}

// Pause stops the server (SIGSTOP). Connections stay open and the kernel accepts new ones, but
// nothing is answered until Resume.
func (s *RedisServer) Pause() {
	s.tb.Helper()
	s.do("pause", s.engine.pause)
}

// Resume continues a paused server, which then reads everything that was sent to it.
func (s *RedisServer) Resume() {
	s.tb.Helper()
	s.do("resume", s.engine.resume)
}

// Flush deletes all data and the loaded scripts.
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

// withClient runs action with a client that never retries and obeys deadlines. It leaves nothing
// behind.
func withClient(addr string, config *tls.Config, action func(*redis.Client) error) error {
	client := redis.NewClient(&redis.Options{
		Addr:          addr,
		MaxRetries:    -1,
		DialTimeout:   10 * time.Second,
		DialerRetries: 1,
		// Both would keep goroutines running after Close.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		PoolSize:                 2,
		ContextTimeoutEnabled:    true,
		TLSConfig:                config,
	})
	defer client.Close()
	return action(client)
}
