package deploy_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) {
	logging.Disable() // the Redis client's own, a line for each try
	os.Exit(testenv.Main(m))
}

// quietRules make nothing hot in these tests.
const quietRules = `rules: [{id: search, match: {route: GET /search}, by: [q], hot: 30/10s, limit: 50/s}]`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
