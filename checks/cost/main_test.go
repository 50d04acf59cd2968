package cost

import (
	"os"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) {
	if BeInstance() {
		return
	}
	os.Exit(testenv.Main(m))
}
