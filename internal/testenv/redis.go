package testenv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// RedisServer is a real Redis that belongs to one test: one node, no persistence, no password.
// Its methods must be called from the test's own goroutine.
type RedisServer struct {
	tb      testing.TB
	dir     string
	port    int
	setup   redisSetup
	process *Process
}

// redisSetup holds the differences of a redis-server from a plain one.
type redisSetup struct {
	arguments []string                   // arguments added to the plain ones
	announce  func(addr string) []string // returns more arguments; may be nil
	config    string                     // a sentinel's configuration; empty if it is not a sentinel
	bus       bool                       // needs port + 10000, too
	tls       *tls.Config                // TLS configuration of its clients; nil means without TLS
}

// Redis starts the redis-server of the PATH for the test and returns when it answers.
// Without one the test is skipped (see the package).
func Redis(tb testing.TB) *RedisServer {
	tb.Helper()
	return startRedis(tb, redisSetup{})
}

// RedisTLS starts a Redis that accepts only TLS, and only clients with a certificate of the same
// authority.
func RedisTLS(tb testing.TB, files CertificateFiles) *RedisServer {
	tb.Helper()
	return startRedis(tb, redisSetup{
		arguments: []string{
			"--tls-ca-cert-file", files.CA, "--tls-cert-file", files.ServerCert, "--tls-key-file", files.ServerKey,
			"--tls-auth-clients", "yes",
		},
		tls: files.Config(tb),
	})
}

// RedisModule is like [Redis], with a module.
func RedisModule(tb testing.TB, path string) *RedisServer {
	tb.Helper()
	return startRedis(tb, redisSetup{arguments: []string{"--loadmodule", path}})
}

// startRedis starts a redis-server on a free port.
func startRedis(tb testing.TB, setup redisSetup) *RedisServer {
	tb.Helper()
	s := &RedisServer{tb: tb, dir: tb.TempDir(), setup: setup}
	OnFreePorts(tb, "redis", func() error {
		s.port = setup.freePort(tb)
		return s.start(tb.Context())
	})
	return s
}

// busOffset is the difference between a cluster node's bus port and its client port.
const busOffset = 10_000

func (s *redisSetup) freePort(tb testing.TB) int {
	tb.Helper()
	for {
		port := FreePort(tb)
		// An outgoing connection may take a port above that before the start.
		if bus := port + busOffset; !s.bus || bus < 32_768 && IsFree(bus) {
			return port
		}
	}
}

var redisReady = regexp.MustCompile(`Ready to accept connections|Sentinel ID is`)

func (s *RedisServer) start(ctx context.Context) error {
	arguments, err := s.arguments()
	if err != nil {
		return err
	}
	path := Program(s.tb, "redis-server", "redis-server")
	s.process = Start(s.tb, exec.Command(path, arguments...))
	if _, err := s.process.Await(ctx, redisReady); err != nil {
		if s.process.HasExited() && (!IsFree(s.port) || strings.Contains(s.process.Stdout(), "Failed listening on port")) {
			return ErrPortTaken
		}
		return fmt.Errorf("%w; %s", err, s.process.Describe())
	}
	return s.checkOwn(ctx)
}

// arguments returns the arguments that start the server on its port.
func (s *RedisServer) arguments() ([]string, error) {
	plain := []string{"--port", strconv.Itoa(s.port)}
	if s.setup.tls != nil {
		plain = []string{"--port", "0", "--tls-port", strconv.Itoa(s.port)}
	}
	plain = append(plain, "--bind", "127.0.0.1", "--dir", s.dir)
	if s.setup.config != "" {
		file := filepath.Join(s.dir, "sentinel.conf") // the sentinel writes its state there
		return append([]string{file, "--sentinel"}, plain...), os.WriteFile(file, []byte(s.setup.config), 0o600)
	}
	plain = append(plain, "--save", "", "--appendonly", "no")
	if s.setup.announce != nil {
		plain = append(plain, s.setup.announce(s.Addr())...)
	}
	return append(plain, s.setup.arguments...), nil
}

// checkOwn verifies that the server answering on the port is the child.
func (s *RedisServer) checkOwn(ctx context.Context) error {
	info, err := s.do(ctx, "INFO", "server").Text()
	if err != nil {
		return fmt.Errorf("ask for its process id: %w", err)
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", s.process.PID())) {
		return fmt.Errorf("%w: %s is answered by another redis", ErrPortTaken, s.Addr())
	}
	return nil
}

// Addr returns the server's host:port. Restart does not change it.
func (s *RedisServer) Addr() string { return Loopback(s.port) }

// PID returns the server's process id.
func (s *RedisServer) PID() int { return s.process.PID() }

// URL returns the server's URL in the form of redis.ParseURL, with database 0.
func (s *RedisServer) URL() string {
	if s.setup.tls != nil {
		return "rediss://" + s.Addr() + "/0"
	}
	return "redis://" + s.Addr() + "/0"
}

// Patient returns redisURL with time-outs so long that the deadlines of the callers apply, so
// that nothing fails on a busy machine.
func Patient(tb testing.TB, redisURL string) string {
	tb.Helper()
	const long = 30 * time.Second
	u, err := url.Parse(redisURL)
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	query := u.Query()
	for _, timeout := range []string{"dial_timeout", "read_timeout", "write_timeout"} {
		query.Set(timeout, long.String())
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// Kill kills the server (SIGKILL) and returns when it has ended: connections break, and new ones
// are refused.
func (s *RedisServer) Kill() { s.process.Kill() }

// Restart kills the server, if it runs, and restarts it on the same address with no data and a
// new run id. It returns when the server answers.
func (s *RedisServer) Restart() {
	s.tb.Helper()
	s.Kill()
	if err := s.start(s.tb.Context()); err != nil {
		s.tb.Fatalf("testenv: start redis at %s: %v", s.Addr(), err)
	}
}

// Pause stops the server (SIGSTOP). Connections stay open and the kernel accepts new ones, but
// nothing is answered until Resume.
func (s *RedisServer) Pause() {
	s.tb.Helper()
	s.process.Pause()
}

// Resume continues a paused server, which then reads everything that was sent to it.
func (s *RedisServer) Resume() {
	s.tb.Helper()
	s.process.Resume()
}

// Flush deletes all data and the loaded scripts.
func (s *RedisServer) Flush() {
	s.tb.Helper()
	ctx, cancel := context.WithTimeout(s.tb.Context(), Patience)
	defer cancel()
	if err := errors.Join(s.do(ctx, "FLUSHALL").Err(), s.do(ctx, "SCRIPT", "FLUSH").Err()); err != nil {
		s.tb.Fatalf("testenv: flush redis at %s: %v", s.Addr(), err)
	}
}

// do runs a command.
func (s *RedisServer) do(ctx context.Context, args ...any) (cmd *redis.Cmd) {
	_ = WithRedis(s.Addr(), s.setup.tls, func(client *redis.Client) error {
		cmd = client.Do(ctx, args...)
		return nil // cmd has the error
	})
	return cmd
}

// WithRedis runs action with a client that never retries and obeys deadlines. It leaves nothing
// behind. A nil config means without TLS.
func WithRedis(addr string, config *tls.Config, action func(*redis.Client) error) error {
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
