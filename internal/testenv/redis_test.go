package testenv

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRedisLosesDataAndKeepsAddressOverRestart(t *testing.T) {
	server := Redis(t)
	before := runID(t, server)
	set(t, server, "key", "value")

	server.Restart()

	if got := exists(t, server, "key"); got != 0 {
		t.Errorf("EXISTS key after Restart = %d, want 0", got)
	}
	if after := runID(t, server); after == before {
		t.Errorf("run id after Restart is still %s", after)
	}
}

func TestRedisKilledRefusesConnectionsUntilRestart(t *testing.T) {
	server := Redis(t)
	server.Kill()
	mustRefuse(t, server)
	server.Kill() // once more is allowed
	server.Restart()
	if err := ping(server, Patience); err != nil {
		t.Fatalf("PING after Restart: %v", err)
	}
}

func TestRedisPausedAnswersAfterResume(t *testing.T) {
	server := Redis(t)
	server.Pause()
	var timeout net.Error
	if err := ping(server, 100*time.Millisecond); !errors.As(err, &timeout) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("PING while paused: %v, want a timeout", err)
	}
	server.Resume()
	if err := ping(server, Patience); err != nil {
		t.Errorf("PING after Resume: %v", err)
	}
}

func TestRedisIsStoppedEvenIfPaused(t *testing.T) {
	var server *RedisServer
	t.Run("owner", func(t *testing.T) {
		server = Redis(t)
		server.Pause()
	})
	mustRefuse(t, server)
}

func TestRedisFlush(t *testing.T) {
	server := Redis(t)
	set(t, server, "key", "value")
	server.Flush()
	if got := exists(t, server, "key"); got != 0 {
		t.Errorf("EXISTS key after Flush = %d, want 0", got)
	}
}

func TestRedisURLParses(t *testing.T) {
	server := Redis(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if options.Addr != server.Addr() || options.DB != 0 {
		t.Errorf("ParseURL(%q) = %s, database %d; want %s, database 0", server.URL(), options.Addr, options.DB, server.Addr())
	}
}

func TestRedisServersAreSeparate(t *testing.T) {
	one, other := Redis(t), Redis(t)
	set(t, one, "key", "value")
	if got := exists(t, other, "key"); got != 0 {
		t.Error("a key of one server is in the other")
	}
}

// A port that another server holds must be reported as taken, whether that server prevents redis
// from binding it or answers on its behalf.
func TestLocalRedisSeesThatThePortIsTaken(t *testing.T) {
	other := Redis(t)
	second := &RedisServer{tb: t, dir: t.TempDir(), port: other.port}
	if err := second.start(t.Context()); !errors.Is(err, ErrPortTaken) {
		t.Errorf("start on a port in use: %v, want ErrPortTaken", err)
	}
	if err := second.checkOwn(t.Context()); !errors.Is(err, ErrPortTaken) {
		t.Errorf("check against another server: %v, want ErrPortTaken", err)
	}
}

func mustRefuse(t *testing.T, s *RedisServer) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr(), Patience)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connect to %s: %v, want connection refused", s.Addr(), err)
	}
}

func ping(s *RedisServer, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return s.do(ctx, "PING").Err()
}

func set(t *testing.T, s *RedisServer, key, value string) {
	t.Helper()
	if err := s.do(t.Context(), "SET", key, value).Err(); err != nil {
		t.Fatal(err)
	}
}

func exists(t *testing.T, s *RedisServer, key string) int64 {
	t.Helper()
	n, err := s.do(t.Context(), "EXISTS", key).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func runID(t *testing.T, s *RedisServer) string {
	t.Helper()
	info, err := s.do(t.Context(), "INFO", "server").Text()
	_, rest, _ := strings.Cut(info, "\nrun_id:")
	id, _, _ := strings.Cut(rest, "\r\n")
	if err != nil || id == "" {
		t.Fatalf("run id %q: %v", id, err)
	}
	return id
}
