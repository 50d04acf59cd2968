package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/rules"
)

const goodRules = `namespace: shop
rules:
  - {id: search-terms, match: {route: "GET /search"}, by: [q], hot: {rate: 200/s}, limit: {rate: 50/s}}
`

// write writes a file of the test, and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func unchanged(*config.File) error { return nil }

// A reload is announced at once, so that the version in the heartbeat is that of the rules in
// force. The same holds for a file that is refused.
func TestReloadIsAnnounced(t *testing.T) {
	t.Parallel()
	path := write(t, goodRules)
	put := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, err := config.Parse(path, []byte(goodRules))
	if err != nil {
		t.Fatal(err)
	}
	announced := 0
	file := newRulesFile(&settings{Config: Config{Path: path, File: first, Override: unchanged, Log: slog.New(slog.DiscardHandler)}}, func(*rules.Rules) error { return nil })
	file.onChange(func() { announced++ })
	for i, step := range []struct {
		text string
		want int
	}{{goodRules, 1}, {strings.Replace(goodRules, "200/s", "300/s", 1), 2}, {strings.Replace(goodRules, "200/s", "many", 1), 3}, {strings.Replace(goodRules, "200/s", "300/s", 1), 4}} {
		put(step.text)
		if file.reload(); announced != step.want {
			t.Errorf("after step %d %d were announced, want %d", i, announced, step.want)
		}
	}
}

// A bad file stays bad while it cannot be read, and after that. Only other contents are checked
// again.
func TestBadFileThatIsUnreadableStaysBad(t *testing.T) {
	t.Parallel()
	first, err := config.Parse("f.yaml", []byte(goodRules))
	if err != nil {
		t.Fatal(err)
	}
	puts := 0
	file := newRulesFile(&settings{Config: Config{Path: "f.yaml", File: first, Override: unchanged, Log: slog.New(slog.DiscardHandler)}}, func(*rules.Rules) error { puts++; return nil })
	want := func(step, problem string, rejected int64, wantPuts int) {
		t.Helper()
		if s := file.read(); !strings.HasPrefix(s.Problem, problem) || (s.Problem == "") != (problem == "") || s.Rejected != rejected || puts != wantPuts {
			t.Errorf("%s: problem %q, %d rejected, %d put in force, want %q, %d, %d", step, s.Problem, s.Rejected, puts, problem, rejected, wantPuts)
		}
	}
	bad := strings.Replace(goodRules, "200/s", "many", 1)
	file.useRules([]byte(bad), false)
	want("bad", "line ", 1, 0)
	file.access(os.ErrPermission)
	want("unreadable", os.ErrPermission.Error(), 2, 0)
	file.access(nil)
	want("readable again", "line ", 2, 0)
	file.useRules([]byte(bad), false)
	want("the same", "line ", 2, 0)
	file.useRules([]byte("# mended\n"+goodRules), false)
	want("mended", "", 2, 0) // the rules in force are those of the file
	file.useRules([]byte(strings.Replace(goodRules, "200/s", "300/s", 1)), false)
	want("other rules", "", 2, 1)
}
