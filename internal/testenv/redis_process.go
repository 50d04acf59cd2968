package testenv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

var (
	redisReady = regexp.MustCompile(`Ready to accept connections|Sentinel ID is`)

	// ErrPortTaken means that another process took the port first.
	ErrPortTaken = errors.New("another process has the port")
)

// redisProcess is a redis-server that is a child of the test process.
type redisProcess struct {
	tb      testing.TB
	path    string
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

// ports returns the arguments for the port that clients use.
func (s redisSetup) ports(port int) []string {
	if s.tls != nil {
		return []string{"--port", "0", "--tls-port", strconv.Itoa(port)}
	}
	return []string{"--port", strconv.Itoa(port)}
}

// localRedis starts a redis-server on a free port.
func localRedis(tb testing.TB, path string, setup redisSetup) *RedisServer {
	tb.Helper()
	e := &redisProcess{tb: tb, path: path, dir: tb.TempDir(), setup: setup}
	for range 5 {
		e.port = setup.freePort(tb)
		err := e.start(tb.Context())
		if err == nil {
			return &RedisServer{tb: tb, addr: Loopback(e.port), tls: setup.tls, engine: e}
		}
		if !errors.Is(err, ErrPortTaken) {
			tb.Fatalf("testenv: start redis: %v", err)
		}
	}
	tb.Fatal("testenv: start redis: five free ports were taken by other processes before redis could bind them")
	return nil
}

// busOffset is the difference between a cluster node's bus port and its client port.
const busOffset = 10_000

func (s redisSetup) freePort(tb testing.TB) int {
	tb.Helper()
	for {
		port := FreePort(tb)
		// An outgoing connection may take a port above that before the start.
		if bus := port + busOffset; !s.bus || bus < 32_768 && claim(bus) && IsFree(bus) {
			return port
		}
	}
}

// command returns the command that starts the server on its port.
func (e *redisProcess) command() (*exec.Cmd, error) {
	plain := append(e.setup.ports(e.port), "--bind", "127.0.0.1", "--dir", e.dir)
	if e.setup.config == "" {
		plain = append(plain, "--save", "", "--appendonly", "no")
		if e.setup.announce != nil {
			plain = append(plain, e.setup.announce(Loopback(e.port))...)
		}
		return exec.Command(e.path, append(plain, e.setup.arguments...)...), nil
	}
	file := filepath.Join(e.dir, "sentinel.conf") // the sentinel writes its state there
	if err := os.WriteFile(file, []byte(e.setup.config), 0o600); err != nil {
		return nil, err
	}
	return exec.Command(e.path, append([]string{file, "--sentinel"}, plain...)...), nil
}

func (e *redisProcess) start(ctx context.Context) error {
	command, err := e.command()
	if err != nil {
		return err
	}
	e.process = Start(e.tb, command)
	if _, err := e.process.Await(ctx, redisReady); err != nil {
		if e.process.HasExited() && (!IsFree(e.port) || strings.Contains(e.process.Stdout(), "Failed listening on port")) {
			return ErrPortTaken
		}
		return fmt.Errorf("%w; %s", err, e.process.Describe())
	}
	return e.checkOwn(ctx)
}

// checkOwn verifies that the server answering on the port is the child.
func (e *redisProcess) checkOwn(ctx context.Context) error {
	return withClient(Loopback(e.port), e.setup.tls, func(client *redis.Client) error {
		info, err := client.Info(ctx, "server").Result()
		if err != nil {
			return fmt.Errorf("ask for its process id: %w", err)
		}
		if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", e.process.PID())) {
			return fmt.Errorf("%w: %s is answered by another redis", ErrPortTaken, Loopback(e.port))
		}
		return nil
	})
}

func (e *redisProcess) kill(context.Context) error {
	e.process.Kill()
	return nil
}

func (e *redisProcess) pause(ctx context.Context) error {
	e.process.Signal(syscall.SIGSTOP)
	return AwaitStopped(ctx, e.process.PID())
}

func (e *redisProcess) resume(context.Context) error {
	e.process.Signal(syscall.SIGCONT)
	return nil
}
