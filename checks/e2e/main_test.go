package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(workerVariable); addr != "" {
		os.Exit(beWorker(addr))
	}
	if text := os.Getenv(senderVariable); text != "" {
		os.Exit(beSender(text))
	}
	if os.Getenv(plainVariable) != "" {
		os.Exit(bePlainServer())
	}
	logging.Disable() // the Redis client's own, a line for each try
	dir, err := os.MkdirTemp("", "hotparam-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	buildDir = dir
	code := testenv.Main(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// programs are the paths of the two commands.
type programs struct{ hotparam, api string }

var (
	buildDir string
	quick    = sync.OnceValues(func() (programs, error) { return build("quick") })
	checked  = sync.OnceValues(func() (programs, error) { return build("checked", "-race") })
)

// build builds the commands of this checkout.
func build(name string, flags ...string) (programs, error) {
	dir := filepath.Join(buildDir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return programs{}, err
	}
	cmd := exec.Command("go", append([]string{"build", "-o", dir}, append(flags, "./cmd/hotparam", "./examples/api")...)...)
	cmd.Dir = filepath.Join("..", "..")
	if output, err := cmd.CombinedOutput(); err != nil {
		return programs{}, fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return programs{hotparam: filepath.Join(dir, "hotparam"), api: filepath.Join(dir, "api")}, nil
}

// raceVariable asks for commands built with the race detector.
const raceVariable = "HOTPARAM_RACE_COMMANDS"

// atLength reports whether tests run at full length, as make verify-stories does. Otherwise those
// that take minutes run in a shorter form, with the same checks.
func atLength() bool { return os.Getenv("HOTPARAM_STORIES") == "full" }

// commands returns commands that are built with the race detector if [raceVariable] asks for it.
// A process with a data race exits with 66. The tests themselves go without it: their traffic and
// checks would cost several times as much.
func commands(t *testing.T) programs {
	t.Helper()
	if os.Getenv(raceVariable) != "" {
		return built(t, checked)
	}
	return built(t, quick)
}

// quickCommands returns commands built as for production, for tests that measure time or memory.
func quickCommands(t *testing.T) programs {
	t.Helper()
	return built(t, quick)
}

func built(t *testing.T, build func() (programs, error)) programs {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	p, err := build()
	if err != nil {
		t.Fatalf("e2e: %v", err)
	}
	return p
}
