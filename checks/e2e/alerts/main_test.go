package alerts

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
