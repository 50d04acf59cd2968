package rulesfile

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/config"
)

const goodRules = `namespace: shop
rules:
  - {id: search-terms, match: {route: "GET /search"}, by: [q], hot: {rate: 200/s}, limit: {rate: 50/s}}
`

var (
	badRules   = strings.Replace(goodRules, "200/s", "many", 1)
	otherRules = strings.Replace(goodRules, "200/s", "300/s", 1)
)

// fixture follows a file and counts what its follower does.
type fixture struct {
	*Follower
	t                 *testing.T
	puts, read, asBad int
}

func follow(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t}
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	start, err := config.Parse(path, []byte(goodRules))
	if err != nil {
		t.Fatal(err)
	}
	f.Follower = New(Config{Path: path, Data: []byte(goodRules), Start: start, Put: func(*config.File) error { f.puts++; return nil }, Log: slog.New(slog.DiscardHandler)})
	f.OnRead(func(file *config.File) {
		f.read++
		if file == nil {
			f.asBad++
		}
	})
	return f
}

func (f *fixture) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.Path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// Each reading is announced at once, so that the version in the heartbeat is that of the rules in
// force. The same holds for a file that is refused.
func TestReloadIsAnnounced(t *testing.T) {
	t.Parallel()
	f := follow(t)
	for i, step := range []struct {
		text        string
		read, asBad int
	}{{goodRules, 1, 0}, {otherRules, 2, 0}, {badRules, 3, 1}, {otherRules, 4, 1}} {
		f.write(step.text)
		if err := f.Reload(); (err != nil) != (step.text == badRules) || f.read != step.read || f.asBad != step.asBad {
			t.Errorf("step %d: %v, %d were announced, %d as bad, want %d, %d", i, err, f.read, f.asBad, step.read, step.asBad)
		}
	}
}

// Rules that Reload has put in force are not put in force again because the file changed.
func TestReload(t *testing.T) {
	t.Parallel()
	f := follow(t)
	f.write(otherRules)
	if err := f.Reload(); err != nil {
		t.Fatal(err)
	}
	f.changed([]byte(otherRules))
	if s := f.Stats(); s.Reloads != 1 || f.read != 1 {
		t.Errorf("%d reloads, read %d times, want 1 each", s.Reloads, f.read)
	}
}

// A bad file stays bad while it cannot be read, and after that. Only other contents are checked
// again.
func TestBadFileThatIsUnreadableStaysBad(t *testing.T) {
	t.Parallel()
	f := follow(t)
	want := func(step, problem string, rejected int64, puts int) {
		t.Helper()
		if s := f.Stats(); !strings.HasPrefix(s.Problem, problem) || (s.Problem == "") != (problem == "") || s.Rejected != rejected || f.puts != puts {
			t.Errorf("%s: problem %q, %d rejected, %d put in force, want %q, %d, %d", step, s.Problem, s.Rejected, f.puts, problem, rejected, puts)
		}
	}
	f.changed([]byte(badRules))
	want("bad", f.Path+":", 1, 0)
	f.access(os.ErrPermission)
	want("unreadable", os.ErrPermission.Error(), 2, 0)
	f.access(nil)
	want("readable again", f.Path+":", 2, 0)
	f.changed([]byte(badRules))
	want("the same", f.Path+":", 2, 0)
	f.changed([]byte("# mended\n" + goodRules))
	want("mended", "", 2, 0) // the rules in force are those of the file
	f.changed([]byte(otherRules))
	want("other rules", "", 2, 1)
}

// A file whose reading blocks, such as a pipe, does not hold up Stats.
func TestReadBlocks(t *testing.T) {
	t.Parallel()
	f := follow(t)
	f.reading.Lock() // as a Reload that reads has it
	defer f.reading.Unlock()
	if f.Stats().Version == "" || f.Rules() == nil {
		t.Error("no version")
	}
}
