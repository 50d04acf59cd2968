package real

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// rateLimitVersion is a commit of envoyproxy/ratelimit, which has no releases.
const rateLimitVersion = "v1.4.1-0.20260122083618-3fb702589d36"

// RateLimit starts envoyproxy/ratelimit, the rate limit service that Envoy's own documentation
// names, with a Redis and a configuration in YAML. It returns when the service listens. If it
// cannot be built, the test is skipped (see the package).
func RateLimit(tb testing.TB, redis *testenv.RedisServer, configuration string) *Gateway {
	tb.Helper()
	path := RateLimitPath(tb)
	data := tb.TempDir()
	if err := os.Mkdir(filepath.Join(data, "config"), 0o755); err != nil {
		tb.Fatalf("real: %v", err)
	}
	testenv.WriteFile(tb, filepath.Join(data, "config", "config.yaml"), configuration)
	return startGateway(tb, "envoyproxy/ratelimit", func(port int) *exec.Cmd {
		cmd := exec.Command(path)
		cmd.Env = append(os.Environ(),
			"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+redis.Addr(),
			"RUNTIME_ROOT="+data, "RUNTIME_WATCH_ROOT=false", "RUNTIME_IGNOREDOTFILES=true",
			"HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "DEBUG_HOST=127.0.0.1",
			fmt.Sprintf("GRPC_PORT=%d", port), fmt.Sprintf("PORT=%d", testenv.FreePort(tb)), fmt.Sprintf("DEBUG_PORT=%d", testenv.FreePort(tb)),
			"DISABLE_STATS=true", "LOG_LEVEL=warn")
		return cmd
	})
}

// RateLimitPath returns the path of envoyproxy/ratelimit. The go command builds it once into the
// user's cache, which takes a minute or two. If that fails, the test is skipped.
func RateLimitPath(tb testing.TB) string {
	tb.Helper()
	dir, err := cached(tb.Context(), "envoyproxy-ratelimit-"+rateLimitVersion, func(ctx context.Context, work string) error {
		return runIn(ctx, work, "env", "GOBIN="+work, "GOWORK=off", "GOFLAGS=-trimpath",
			"go", "install", "github.com/envoyproxy/ratelimit/src/service_cmd@"+rateLimitVersion)
	})
	if err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no envoyproxy/ratelimit: %v", err))
	}
	return filepath.Join(dir, "service_cmd")
}
