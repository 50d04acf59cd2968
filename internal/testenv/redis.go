package testenv

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
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
	engine redisEngine
}

// redisEngine runs one server, as a child process or in a container.
type redisEngine interface {
	// start starts the server on the address that it had before and returns when it
	// answers there.
	start(ctx context.Context) error
	kill(ctx context.Context) error
	pause(ctx context.Context) error
	resume(ctx context.Context) error
}

// Redis starts a Redis for the test and returns when it answers. It is the
// redis-server of the PATH or, without one, the image redis:7 in Docker;
// HOTPARAM_TEST_REDIS=local or docker forces one way, HOTPARAM_REDIS_IMAGE names
// another image. With neither the test is skipped (see the package).
func Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	choice := os.Getenv("HOTPARAM_TEST_REDIS")
	switch choice {
	case "", "local", "docker":
	default:
		tb.Fatalf("testenv: HOTPARAM_TEST_REDIS=%q: must be local, docker or empty", choice)
	}
	if choice != "docker" {
		if path, err := exec.LookPath("redis-server"); err == nil {
			return localRedis(tb, path, redisSetup{})
		}
		if choice == "local" {
			unavailable(tb, "HOTPARAM_TEST_REDIS=local, but no redis-server in PATH: install it (Debian: apt-get install redis-server)")
		}
	}
	if err := dockerAnswers(tb.Context()); err != nil {
		unavailable(tb, fmt.Sprintf("no redis-server in PATH and no Docker: install redis-server (Debian: apt-get install redis-server) or start Docker (%v)", err))
	}
	return dockerRedis(tb)
}

// Addr is the server's host:port. It stays the same over Restart.
func (s *RedisServer) Addr() string { return s.addr }

// PID returns the server's process id. It reports false if the server runs in a container.
func (s *RedisServer) PID() (int, bool) {
	local, ok := s.engine.(*localEngine)
	if !ok {
		return 0, false
	}
	return local.process.PID(), true
}

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
	ctx, cancel := context.WithTimeout(s.tb.Context(), patience)
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
