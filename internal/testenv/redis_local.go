package testenv

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

var (
	redisReady = regexp.MustCompile(`Ready to accept connections`)

	// errPortTaken means that another process was faster.
	errPortTaken = errors.New("another process has the port")
)

// localEngine is a redis-server that is a child of the test process.
type localEngine struct {
	tb      testing.TB
	path    string
	dir     string
	port    int
	process *Process
}

func localRedis(tb testing.TB, path string) *RedisServer {
	tb.Helper()
	e := &localEngine{tb: tb, path: path, dir: tb.TempDir()}
	for range 5 {
		e.port = FreePort(tb)
		err := e.start(tb.Context())
		if err == nil {
			return &RedisServer{tb: tb, addr: loopback(e.port), engine: e}
		}
		if !errors.Is(err, errPortTaken) {
			tb.Fatalf("testenv: start redis: %v", err)
		}
	}
	tb.Fatal("testenv: start redis: five free ports were taken by other processes before redis could bind them")
	return nil
}

func (e *localEngine) start(ctx context.Context) error {
	e.process = Start(e.tb, exec.Command(e.path,
		"--port", strconv.Itoa(e.port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", e.dir))
	if _, err := e.process.await(ctx, redisReady); err != nil {
		if e.process.hasExited() && !isFree(e.port) {
			return errPortTaken
		}
		return fmt.Errorf("%w; %s", err, e.process.describe())
	}
	return e.checkOwn(ctx)
}

// checkOwn makes sure that the server which answers on the port is the child.
func (e *localEngine) checkOwn(ctx context.Context) error {
	return withClient(loopback(e.port), func(client *redis.Client) error {
		info, err := client.Info(ctx, "server").Result()
		if err != nil {
			return fmt.Errorf("ask for its process id: %w", err)
		}
		if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", e.process.PID())) {
			return fmt.Errorf("%w: %s is answered by another redis", errPortTaken, loopback(e.port))
		}
		return nil
	})
}

func (e *localEngine) kill(context.Context) error {
	e.process.Kill()
	return nil
}

func (e *localEngine) pause(ctx context.Context) error {
	e.process.Signal(syscall.SIGSTOP)
	return awaitStopped(ctx, e.process.PID())
}

func (e *localEngine) resume(context.Context) error {
	e.process.Signal(syscall.SIGCONT)
	return nil
}
