package cost

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Limiter is what protects the database.
type Limiter string

// The limiters.
const (
	None     Limiter = "none"
	Envoy    Limiter = "Envoy"
	Sentinel Limiter = "Sentinel"
	Hotparam Limiter = "hotparam"
)

const (
	instances   = 2
	connections = 8 // of all instances to the database, together
)

// Database is a PostgreSQL with the table of orders.
type Database struct{ uri string }

// OpenDatabase starts a PostgreSQL and fills its table, which takes some ten seconds. Without
// PostgreSQL the test is skipped.
func OpenDatabase(tb testing.TB) *Database {
	tb.Helper()
	uri := real.Postgres(tb, "shared_buffers=1GB", "autovacuum=off", "jit=off")
	if err := fillDatabase(tb.Context(), uri); err != nil {
		tb.Fatal(err)
	}
	return &Database{uri}
}

// startInstance starts this program as an instance of the API and returns its address.
func startInstance(tb testing.TB, c instanceConfig) (addr string) {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), instanceVariable+"="+string(text))
	return testenv.Start(tb, cmd).WaitFor(`instance is up.* address=(\S+)`)[1]
}

const namespace = "shop"

const rulesFile = `
namespace: %s
aggregator: {listen: "127.0.0.1:%d", redis: "%s", http: "127.0.0.1:0"}
rules:
  - id: orders
    match: {route: "GET /orders"}
    by: %s
    hot: {cost: auto}
    limit: {concurrency: auto, cancel: true}
    backend: postgres
  - id: exports
    match: {route: "GET /export"}
    by: [sort]
    hot: {cost: auto}
    limit: {concurrency: auto, cancel: true}
    backend: postgres
`

// startAggregator starts Redis and the program's aggregator. It returns the rules file.
func startAggregator(tb testing.TB, program, by string) (file, redisURL string) {
	tb.Helper()
	redisURL = testenv.Redis(tb).URL()
	file = filepath.Join(tb.TempDir(), "hotparam.yaml")
	testenv.WriteFile(tb, file, fmt.Sprintf(rulesFile, namespace, testenv.FreePort(tb), redisURL, by))
	testenv.Start(tb, exec.Command(program, "aggregator", "--config", file)).WaitFor("aggregator is up")
	return file, redisURL
}
