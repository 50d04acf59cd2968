package follow

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const longest = 20 * time.Second

// receiver adds up what a follower sends.
type receiver struct {
	conn net.PacketConn

	mu     sync.Mutex
	counts map[string]int64     // by the text of keys
	times  map[string]time.Time // the earliest start that was sent for each
	beats  int                  // packets without counts
}

func receive(t *testing.T) *receiver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{conn: conn, counts: make(map[string]int64), times: make(map[string]time.Time)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		packet := make([]byte, 64<<10)
		for {
			n, _, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			r.packet(t, packet[:n])
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return r
}

func (r *receiver) packet(t *testing.T, packet []byte) {
	first, rest, _ := bytes.Cut(packet, []byte("\n"))
	m, err := wire.ParseMeta(first)
	if err != nil {
		t.Errorf("%q: %v", first, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(rest) == 0 {
		r.beats++
	}
	for text := range strings.Lines(string(rest)) {
		line, err := wire.ParseLine([]byte(strings.TrimSpace(text)))
		if err != nil {
			continue // one about the others
		}
		key := string(line.Key)
		r.counts[key] += line.N
		if start := time.Unix(0, m.Start); r.times[key].IsZero() || start.Before(r.times[key]) {
			r.times[key] = start
		}
	}
}

// count returns the count of a key, and the time of its first count.
func (r *receiver) count(key string) (int64, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts[key], r.times[key]
}

func (r *receiver) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.counts)
}

// seen returns the number of packets without counts.
func (r *receiver) seen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.beats
}

// fixture is a running follower.
type fixture struct {
	*Follower
	got  *receiver
	t    *testing.T
	dir  string
	log  *testenv.LogBuffer
	stop func()
}

const (
	termRule  = `{id: terms, match: {route: "GET /search"}, by: [q], hot: 20/s, limit: {rate: 10/s}}`
	bytesRule = `{id: sizes, match: {route: "GET /file"}, by: [name], count: bytes, hot: 1MB/s}`
	planRule  = `{id: plans, match: {route: "GET /plan"}, by: ["header:x-plan", "addr:ip"], hot: 20/s}`
)

// start follows logs, which are files in f.dir. change may be nil.
func start(t *testing.T, change func(*Config), rules ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), log: new(testenv.LogBuffer), got: receive(t)}
	f.rules(rules...)
	c := Config{Path: f.path("hotparam.yaml"), Logs: []string{f.path("access.log")}, Log: slog.New(slog.NewTextHandler(f.log, nil))}
	if change != nil {
		change(&c)
	}
	for i, log := range c.Logs {
		if log != "-" && !filepath.IsAbs(log) {
			c.Logs[i] = f.path(log)
		}
	}
	var err error
	if f.Follower, err = New(c); err != nil {
		t.Fatal(err)
	}
	f.stop = testenv.Running(t, f.Run)
	return f
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

func (f *fixture) rules(rules ...string) {
	f.t.Helper()
	f.replace("hotparam.yaml", fmt.Sprintf("namespace: shop\nstatsd: {addresses: [%q]}\nrules:\n  - %s\n", f.got.conn.LocalAddr(), strings.Join(rules, "\n  - ")))
}

func (f *fixture) replace(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) appendTo(name, text string) {
	f.t.Helper()
	o, err := os.OpenFile(f.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.WriteString(text); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) await(what string, condition func() bool) {
	f.t.Helper()
	testenv.Eventually(f.t, what, condition, func() any { return f.Stats() }, func() any { return f.got.all() }, f.log)
}

// awaitCount waits until a key has the count want.
func (f *fixture) awaitCount(key string, want int64) {
	f.t.Helper()
	f.await(fmt.Sprintf("%d of %s", want, key), func() bool { n, _ := f.got.count(key); return n == want })
}

// lines returns n requests of a value of q, at a time.
func lines(n int, at time.Time, q string) string {
	return strings.Repeat(line(at, "/search?q="+q), n)
}

func line(at time.Time, target string) string {
	return fmt.Sprintf(`{"time":%q,"method":"GET","uri":%q,"status":200,"bytes":500,"remote_addr":"192.0.2.7"}`+"\n", at.UTC().Format(time.RFC3339Nano), target)
}

// Counts have the times of their lines, which come from several files.
func TestFollow(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *Config) { c.Logs = []string{"access.log", "other.log"} }, termRule, bytesRule)
	now := time.Now()
	f.appendTo("access.log", lines(3, now.Add(-700*time.Millisecond), "ph%6Fne")+lines(2, now.Add(-300*time.Millisecond), "lamp"))
	f.appendTo("other.log", lines(2, now.Add(-900*time.Millisecond), "phone")+"no request\n\n"+line(now, "//file?name=a")+lines(9, now.Add(-time.Hour), "phone")+lines(1, now.Add(time.Hour), "future"))
	f.awaitCount(key("/search?q=phone"), 5)
	f.awaitCount(key("/search?q=lamp"), 2)
	f.awaitCount(key("/search?q=future"), 1)
	f.awaitCount(key("/file?name=a"), 500)
	if _, at := f.got.count(key("/search?q=phone")); !at.Equal(now.Add(-900 * time.Millisecond)) {
		t.Errorf("phone is of %v, want 900 ms before %v", at, now)
	}
	if _, at := f.got.count(key("/search?q=lamp")); !at.Equal(now.Add(-300 * time.Millisecond)) {
		t.Errorf("lamp is of %v, want 300 ms before %v", at, now)
	}
	if s := f.Stats(); s.Lines != 20 || s.Requests != 9 || s.Bad != 1 || s.TooLong != 0 || s.Old != 9 || s.Future != 1 ||
		s.Logs != 2 || s.Missing != 0 || s.Files != 2 || s.Behind != 0 || time.Since(s.Looked) > time.Minute {
		t.Errorf("%+v", s)
	}
	f.await("signs of life", func() bool { return f.got.seen() >= 2 })
}

// key returns a key of a GET as sent.
func key(target string) string { return "GET%20" + target }

// Nothing is lost or counted twice by either kind of rotation, and a line is read only when it is
// complete.
func TestRotation(t *testing.T) {
	t.Parallel()
	f := start(t, nil, termRule)
	now := time.Now()
	whole := lines(1, now, "half")
	f.appendTo("access.log", lines(1, now, "a")+whole[:20])
	f.awaitCount(key("/search?q=a"), 1)
	if n, _ := f.got.count(key("/search?q=half")); n != 0 {
		t.Error("half a line was counted")
	}
	f.appendTo("access.log", whole[20:])
	f.awaitCount(key("/search?q=half"), 1)

	// By rename: for a while the server still writes to the old file, and the new file appears
	// late.
	if err := os.Rename(f.path("access.log"), f.path("access.log.1")); err != nil {
		t.Fatal(err)
	}
	f.appendTo("access.log.1", lines(2, now, "late"))
	f.awaitCount(key("/search?q=late"), 2)
	f.appendTo("access.log", lines(3, now, "new"))
	f.awaitCount(key("/search?q=new"), 3)
	f.appendTo("access.log.1", lines(4, now, "later"))
	f.awaitCount(key("/search?q=later"), 4)

	// By truncation.
	f.replace("access.log", "")
	f.await("the truncation", func() bool { return f.Stats().Truncated == 1 })
	f.appendTo("access.log", lines(5, now, "again"))
	f.awaitCount(key("/search?q=again"), 5)
	f.replace("access.log", lines(1, now, "short"))
	f.awaitCount(key("/search?q=short"), 1)

	f.appendTo("access.log", strings.TrimSuffix(lines(1, now, "last"), "\n"))
	f.stop()
	f.awaitCount(key("/search?q=last"), 1)
	for name, want := range map[string]int64{"a": 1, "half": 1, "late": 2, "new": 3, "later": 4, "again": 5, "short": 1} {
		if n, _ := f.got.count(key("/search?q=" + name)); n != want {
			t.Errorf("%s was counted %d times, want %d", name, n, want)
		}
	}
	if s := f.Stats(); s.Rotated != 1 || s.Truncated != 2 || s.Bad != 0 || s.Failed != 0 {
		t.Errorf("%+v", s)
	}
}

// A log is read from its end or from its beginning. In both cases the first line is read if it
// names the columns.
func TestWhereItBegins(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fields, err := accesslog.ParseFields("time=when,method=verb,uri=target", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	csv := filepath.Join(dir, "access.csv")
	row := func(n int, q string) string {
		return strings.Repeat(fmt.Sprintf("%s,GET,/search?q=%s\r\n", now.UTC().Format(time.RFC3339Nano), q), n)
	}
	if err := os.WriteFile(csv, []byte("when,verb,target\r\n"+row(3, "before")+row(1, "cut")[:30]), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(c *Config) { c.Logs, c.Format, c.Fields = []string{csv}, accesslog.CSV, fields }
	end := start(t, ask, termRule)
	all := start(t, func(c *Config) { ask(c); c.FromStart = true }, termRule)
	o, err := os.OpenFile(csv, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if _, err := o.WriteString(row(1, "cut")[30:] + row(2, "after")); err != nil {
		t.Fatal(err)
	}
	for _, f := range []*fixture{end, all} {
		f.awaitCount(key("/search?q=after"), 2)
		if s := f.Stats(); s.Bad != 0 {
			t.Errorf("%+v; the log:\n%s", s, f.log)
		}
	}
	all.awaitCount(key("/search?q=before"), 3)
	all.awaitCount(key("/search?q=cut"), 1)
	if n, _ := end.got.count(key("/search?q=before")); n != 0 {
		t.Errorf("%d requests were counted that were there before", n)
	}
}

// Rules may change, and the follower ends with its standard input.
func TestStreamAndReload(t *testing.T) {
	t.Parallel()
	in, out := io.Pipe()
	f := start(t, func(c *Config) { c.Logs, c.Stdin = []string{"-"}, in }, termRule)
	now := time.Now()
	write := func(text string) {
		t.Helper()
		if _, err := io.WriteString(out, text); err != nil {
			t.Fatal(err)
		}
	}
	write(lines(2, now, "a") + line(now, "/file?name=a"))
	f.awaitCount(key("/search?q=a"), 2)
	f.rules(termRule, bytesRule, planRule)
	f.await("the rules", func() bool { return strings.Contains(f.log.String(), "rules are in force") })
	write(line(now, "/file?name=b"))
	f.awaitCount(key("/file?name=b"), 500)
	if !strings.Contains(f.log.String(), "header:x-plan") {
		t.Errorf("nothing is said of a header that is not read; the log:\n%s", f.log)
	}
	f.replace("hotparam.yaml", "rules: [")
	f.await("the bad file", func() bool { return strings.Contains(f.log.String(), "the rules stay as they are") })
	f.Reload() // as by SIGHUP
	if s := f.Rules(); s.Reloads != 1 || s.Rejected < 1 || s.Problem == "" || s.Rules != 3 || s.Version == "" {
		t.Errorf("%+v", s)
	}
	write(strings.TrimSuffix(lines(1, now, "last"), "\n"))
	out.Close()
	f.awaitCount(key("/search?q=last"), 1)
	f.stop()
	if n, _ := f.got.count(key("/file?name=a")); n != 0 {
		t.Error("a request was counted by a rule that came later")
	}
}

// Stats report unread bytes and missing logs.
func TestBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "access.log")
	text := strings.Repeat("x", accesslog.MaxLine+10) + "\n" + lines(3, time.Now(), "a")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "hotparam.yaml")
	if err := os.WriteFile(file, []byte("statsd: {addresses: [\"127.0.0.1:9\"]}\nrules:\n  - "+termRule), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := New(Config{Path: file, Logs: []string{path, filepath.Join(dir, "none.log")}, FromStart: true})
	if err != nil {
		t.Fatal(err)
	}
	const room = 1 << 10
	f.tails[0].poll(make([]byte, room), time.Now(), f.slots.add)
	f.recordState(time.Now())
	if s := f.Stats(); s.Behind != int64(len(text)-room) || s.Files != 1 || s.Missing != 1 || s.Logs != 2 {
		t.Errorf("%+v", s)
	}
	for range len(text) / room {
		f.tails[0].poll(make([]byte, room), time.Now(), f.slots.add)
	}
	f.recordState(time.Now())
	if s := f.Stats(); s.Behind != 0 || s.Bad != 1 || s.TooLong != 1 || s.Lines != 4 {
		t.Errorf("%+v", s)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - "+termRule), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]Config{
		"no log is named":    {Path: file},
		"cannot be combined": {Path: file, Logs: []string{"-", "a"}},
		"no such file":       {Path: file + "x", Logs: []string{"a"}},
		"not a regular file": {Path: file, Logs: []string{t.TempDir()}},
		"its columns have":   {Path: file, Logs: []string{"a"}, Format: accesslog.CSV},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
