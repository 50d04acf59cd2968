package testenv

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/redis/go-redis/v9"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// dockerEngine is a Redis in a container. Where the engine can reach a registry,
// testcontainers' reaper removes the container even if the test process is killed.
type dockerEngine struct {
	container *testcontainers.DockerContainer
	api       client.APIClient
	addr      string
}

// dockerAnswers returns why no Docker engine can be used, or nil if one can.
func dockerAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	provider, err := testcontainers.NewDockerProvider(quiet)
	if err != nil {
		return fmt.Errorf("find Docker: %w", err)
	}
	defer provider.Close()
	if err := provider.Health(ctx); err != nil {
		return fmt.Errorf("ask Docker for its health: %w", err)
	}
	return nil
}

var quiet = testcontainers.Generic2DockerOptions(testcontainers.WithLogger(log.NewNoopLogger()))[0]

func dockerRedis(tb testing.TB) *RedisServer {
	tb.Helper()
	image := os.Getenv("HOTPARAM_REDIS_IMAGE")
	if image == "" {
		image = "redis:7"
	}
	for range 5 {
		port := FreePort(tb)
		engine, err := runContainer(tb, image, port)
		if err != nil && !isFree(port) {
			continue // another process was faster
		}
		if err != nil {
			tb.Fatalf("testenv: start redis from the image %s: %v", image, err)
		}
		engine.mustAnswer(tb)
		return &RedisServer{tb: tb, addr: engine.addr, engine: engine}
	}
	tb.Fatal("testenv: start redis in Docker: five free ports were taken by other processes before Docker could bind them")
	return nil
}

func (e *dockerEngine) mustAnswer(tb testing.TB) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	if err := e.awaitAnswer(ctx); err != nil {
		tb.Fatalf("testenv: %v. If this process and Docker run in the same container, set TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1", err)
	}
}

func runContainer(tb testing.TB, image string, hostPort int) (*dockerEngine, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*patience) // the image may have to be pulled
	defer cancel()
	provider, err := testcontainers.NewDockerProvider(quiet)
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() { provider.Close() })

	port := network.MustParsePort("6379/tcp")
	c, err := testcontainers.Run(ctx, image,
		testcontainers.WithLogger(log.TestLogger(tb)),
		// Protected mode would refuse every client outside of the container.
		testcontainers.WithCmd("redis-server", "--save", "", "--appendonly", "no", "--protected-mode", "no"),
		testcontainers.WithExposedPorts(port.String()),
		// Docker picks another host port at each start of a container; with a fixed
		// one a restarted server keeps its address.
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.PortBindings = network.PortMap{port: {{HostPort: strconv.Itoa(hostPort)}}}
		}),
	)
	testcontainers.CleanupContainer(tb, c)
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			logContainer(tb, c)
		}
	})
	addr, err := c.Endpoint(ctx, "")
	if err != nil {
		return nil, err
	}
	return &dockerEngine{container: c, api: provider.Client(), addr: addr}, nil
}

// awaitAnswer waits until the server itself answers. An open port would not tell:
// Docker's proxy accepts connections before Redis does.
func (e *dockerEngine) awaitAnswer(ctx context.Context) error {
	return withClient(e.addr, nil, func(client *redis.Client) error {
		for {
			err := client.Ping(ctx).Err()
			if err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("no answer from redis in the container at %s: %w", e.addr, err)
			case <-time.After(10 * time.Millisecond): // a proxied server gives no event
			}
		}
	})
}

func (e *dockerEngine) start(ctx context.Context) error {
	if err := e.container.Start(ctx); err != nil {
		return err
	}
	return e.awaitAnswer(ctx)
}

func (e *dockerEngine) kill(ctx context.Context) error {
	state, err := e.container.State(ctx)
	if err != nil {
		return err
	}
	if !state.Running {
		return nil
	}
	id := e.container.GetContainerID()
	gone := e.api.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	if _, err := e.api.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
		return err
	}
	select {
	case <-gone.Result:
		return nil
	case err := <-gone.Error:
		return err
	}
}

func (e *dockerEngine) pause(ctx context.Context) error {
	_, err := e.api.ContainerPause(ctx, e.container.GetContainerID(), client.ContainerPauseOptions{})
	return err
}

func (e *dockerEngine) resume(ctx context.Context) error {
	_, err := e.api.ContainerUnpause(ctx, e.container.GetContainerID(), client.ContainerUnpauseOptions{})
	return err
}

// logContainer runs in a cleanup, where the test's own context is cancelled already.
func logContainer(tb testing.TB, c *testcontainers.DockerContainer) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	logs, err := c.Logs(ctx)
	if err != nil {
		tb.Logf("testenv: read the container's output: %v", err)
		return
	}
	defer logs.Close()
	text, _ := io.ReadAll(logs) // what could be read is worth showing
	tb.Logf("testenv: output in Docker:\n%s", text)
}
