package real

import (
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestPostgresAnswersAndLeavesNothing(t *testing.T) {
	var dir string
	switch got := outcome(t, func(tb testing.TB) {
		uri := Postgres(tb, "max_connections=7")
		parsed, err := url.Parse(uri)
		if err != nil {
			tb.Fatal(err)
		}
		dir = parsed.Query().Get("host")
		psql := testenv.Program(tb, "postgresql-client", "psql")
		answer, err := exec.CommandContext(tb.Context(), psql, "-At", uri, "-c", "show max_connections", "-c", "show fsync").CombinedOutput()
		if got := strings.Join(strings.Fields(string(answer)), " "); err != nil || got != "7 off" {
			tb.Errorf("%v %q", err, answer)
		}
	}); got {
	case "skipped":
		testenv.Unavailable(t, "no PostgreSQL")
	case "failed":
		t.Error("see above")
	}
	if isThere(dir) {
		t.Errorf("%s is still there", dir)
	}
}
