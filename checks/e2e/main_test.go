package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(senderVariable); text != "" {
		os.Exit(beSender(text))
	}
	if os.Getenv(plainVariable) != "" {
		os.Exit(bePlainServer())
	}
	if os.Getenv(countingVariable) != "" {
		os.Exit(beCountingInstance(os.Args[1:]))
	}
	logging.Disable() // the Redis client's own, a line for each try
	os.Exit(testenv.Main(m))
}

// programs are the paths of the two commands.
type programs struct{ hotparam, api string }

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
		return build(t, "-race")
	}
	return build(t)
}

// quickCommands returns commands built as for production, for tests that measure time or memory.
func quickCommands(t *testing.T) programs {
	t.Helper()
	return build(t)
}

// build returns the commands of this checkout, built with flags.
func build(t *testing.T, flags ...string) programs {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	dir := testenv.Commands(t, flags, "./cmd/hotparam", "./examples/api")
	return programs{hotparam: filepath.Join(dir, "hotparam"), api: filepath.Join(dir, "api")}
}
