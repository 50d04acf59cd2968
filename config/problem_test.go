package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// problemsOf parses a file that must be invalid, and returns its problems.
func problemsOf(t *testing.T, source string) Problems {
	t.Helper()
	f, err := Parse("f.yaml", []byte(source))
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 || f != nil {
		t.Fatalf("Parse(%q) = %v, %v; want problems and no file", source, f, err)
	}
	return problems
}

func TestProblemsAreWrittenWithCaret(t *testing.T) {
	source := strings.Join([]string{
		`namespace: my shop`,
		`aggregator: {redis: "http://u:hush@db/0"}`,
		`rules:`,
		`  - id: search`,
		`    match: {route: "GET /search"}`,
		"    hot:\t{rate:\t200}",
		`    limit: {rate: 50/s, 上限: 日本語, scope: cluster}`,
	}, "\n")
	want := strings.Join([]string{
		`f.yaml:1:12: namespace "my shop": want 1 to 64 of A-Z a-z 0-9 _ -`,
		`  namespace: my shop`,
		`             ^`,
		`  hint: for example shop, or shop-eu`,
		`f.yaml:2:21: aggregator.redis: want a URL that begins with redis://, rediss:// or unix://`,
		`  aggregator: {redis: "http://u:****@db/0"}`,
		`                      ^`,
		`  hint: for example redis://host:6379/0; docs/REDIS.md has the forms for Sentinel and Cluster`,
		`f.yaml:6:17: hot.rate "200": want N/D, for example "200/s" or "60/1m"`,
		"      hot:\t{rate:\t200}",
		"          \t      \t^",
		`  hint: 200/s is 200 within a second, 60/1m is 60 within a minute`,
		`f.yaml:7:25: unknown field "上限" in limit`,
		`      limit: {rate: 50/s, 上限: 日本語, scope: cluster}`,
		`                          ^`,
		`  hint: known are rate, burst, algorithm, initial, shape, warm_up, cold_factor, calendar, zone, blocks, count_denied, penalty, scope, when_redis_is_away, on_limit, wait, concurrency, cancel, queue, priority, serve`,
		`f.yaml:7:41: limit.scope "cluster": want instance or share or fleet or exact`,
		`      limit: {rate: 50/s, 上限: 日本語, scope: cluster}`,
		`                                               ^`,
		`  hint: did you mean "fleet"?`,
		``,
	}, "\n")
	problems := problemsOf(t, source)
	var b strings.Builder
	if err := problems.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
	if got := problems.Error(); got+"\n" != want {
		t.Errorf("Error() differs from WriteText:\n%s", got)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteTextTellsOfABrokenWriter(t *testing.T) {
	if err := problemsOf(t, "").WriteText(brokenWriter{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("err = %v, want %v", err, io.ErrClosedPipe)
	}
}

func TestProblemsAsJSON(t *testing.T) {
	got, err := json.Marshal(problemsOf(t, "rules: 1\nevalute: all\nno_match: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := `[` +
		`{"severity":"error","file":"f.yaml","line":1,"column":8,"message":"rules: want a list, found text","hint":"a list is written [a, b]"},` +
		`{"severity":"error","file":"f.yaml","line":2,"column":1,"message":"unknown field \"evalute\" in the file","hint":"did you mean \"evaluate\"?"},` +
		`{"severity":"error","file":"f.yaml","line":3,"column":11,"message":"no_match \"2\": want allow or deny","hint":"for example allow"}` +
		`]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A long line is shown around its column, so that one bad line of a minified
// file does not fill the screen.
func TestExcerptOfALongLine(t *testing.T) {
	problems := problemsOf(t, "rules: ["+strings.Repeat(" ", 500)+"a"+strings.Repeat(" ", 500)+"]")
	lines := strings.Split(problems.Error(), "\n")
	if lines[0] != "f.yaml:1:509: a rule: want fields, found text" {
		t.Errorf("message %q", lines[0])
	}
	shown, caret := []rune(lines[1]), strings.Index(lines[2], "^")
	if len(shown) > before+behind+4 || shown[caret] != 'a' {
		t.Errorf("caret at %d of %q", caret, lines[1])
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	var b strings.Builder
	for i := range 250 {
		fmt.Fprintf(&b, "x%03d: 1\n", i)
	}
	problems := problemsOf(t, b.String()+"rules: [{id: a, match: {route: '*'}, action: ignore}]")
	if len(problems) != maxProblems+1 {
		t.Fatalf("%d problems", len(problems))
	}
	last := problems[maxProblems]
	if last.Line != maxProblems+1 || last.Message != "150 more problems from here on" {
		t.Errorf("the last is %+v", last)
	}
}

func TestLoadWithoutFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	_, err := Load(path)
	want := path + ":1:1: cannot read: no such file or directory\n  hint: name a file that exists and that this user may read"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("the error does not wrap fs.ErrNotExist")
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), ":1:1: cannot read: is a directory") {
		t.Errorf("a directory gives %v", err)
	}
}
