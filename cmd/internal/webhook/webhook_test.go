package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotkeytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// receiver is a real HTTP server that accepts events once it works.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	ids    []string // IDs of the accepted requests
	bodies [][]byte
	asked  atomic.Int64
	answer func(n int64, w http.ResponseWriter, r *http.Request) (took bool)
}

const secret = "geheim"

func newReceiver(t *testing.T, answer func(n int64, w http.ResponseWriter, r *http.Request) bool) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		stamp, sum, _ := strings.Cut(q.Header.Get(SignatureHeader), ",v1=")
		stamp = strings.TrimPrefix(stamp, "t=")
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%s.%s", stamp, body)
		if sum != hex.EncodeToString(mac.Sum(nil)) {
			t.Errorf("the signature is %q", q.Header.Get(SignatureHeader))
		}
		if r.answer != nil && !r.answer(r.asked.Add(1), w, q) {
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ids, r.bodies = append(r.ids, q.Header.Get(IDHeader)), append(r.bodies, body)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) took() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

func newClient(t *testing.T) redis.UniversalClient {
	t.Helper()
	client, err := hotkeys.NewClient(testenv.Patient(t, testenv.Redis(t).URL()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// happen makes n keys hot in Redis, as a publisher does.
func happen(t *testing.T, client redis.UniversalClient, run string, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		change := fmt.Sprintf(`{"version":"%s:%d","at":%d,"beat_ms":5000,"hot":[{"rule":"search-terms","key":%q,"rate":1,"ttl_ms":15000,"info":{"low":1,"high":2,"since":1,"until":2,"limit":"50/s","burst":100,"mode":"limit","owner":"statsd"}}],"cool":[]}`,
			run, i+1, time.Now().UnixMilli(), hotkeytest.Text(i))
		if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: published.NewLayout("shop").Events, Values: []string{"version", "x", "change", change}}).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func yes() bool { return true }

// quick returns a configuration with short times.
func quick(url string, edit func(*Config)) Config {
	c := Config{
		Namespace: "shop", URL: func() (string, error) { return url, nil }, Secret: func() (string, error) { return secret, nil }, Publishes: yes,
		lease: 2 * time.Second, timeout: 300 * time.Millisecond, least: 20 * time.Millisecond, longest: 100 * time.Millisecond, every: 20 * time.Millisecond,
	}
	if edit != nil {
		edit(&c)
	}
	return c
}

// start runs a sender until stop is called, or the test ends.
func start(t *testing.T, client redis.UniversalClient, c Config) (s *Sender, stop func()) {
	t.Helper()
	s, err := New(client, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return s, stop
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	testenv.Eventually(t, what, is)
}

func sends(s *Sender) func() bool { return func() bool { return s.Stats().Sending } }

// One of several aggregators sends. When it ends another continues where it stopped, and no event
// is posted twice or left out.
func TestOneSendsAndAnotherGoesOn(t *testing.T) {
	t.Parallel()
	client, r := newClient(t), newReceiver(t, nil)
	a, stopA := start(t, client, quick(r.URL, nil))
	eventually(t, "the first sends", sends(a))
	b, stopB := start(t, client, quick(r.URL, nil))
	happen(t, client, "aa", 0, 5)
	eventually(t, "5 events", func() bool { return len(r.took()) == 5 })
	if b.Stats().Sending {
		t.Error("two send")
	}
	// If one ends before it has the answer, the other posts that event again.
	eventually(t, "5 are counted as posted", func() bool { return a.Stats().Posted == 5 })
	stopA()
	happen(t, client, "aa", 5, 5) // while no aggregator sends
	eventually(t, "the second sends", sends(b))
	happen(t, client, "aa", 10, 5)
	eventually(t, "15 events", func() bool { return len(r.took()) >= 15 })
	eventually(t, "15 are counted as posted", func() bool { return a.Stats().Posted+b.Stats().Posted == 15 })
	stopB()
	c, _ := start(t, client, quick(r.URL, nil)) // after a restart
	happen(t, client, "aa", 15, 1)
	eventually(t, "16 events", func() bool { return len(r.took()) >= 16 })
	ids := r.took()
	if len(ids) != 16 || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != 16 {
		t.Errorf("16 events came as %d: %q", len(ids), ids)
	}
	eventually(t, "16 are counted as posted", func() bool { return a.Stats().Posted+b.Stats().Posted+c.Stats().Posted == 16 })
	var e map[string]any
	if err := json.Unmarshal(r.bodies[0], &e); err != nil || e["type"] != "hot" || e["id"] != ids[0] || e["key"] != hotkeytest.Text(0) {
		t.Errorf("the first body is %s, %v", r.bodies[0], err)
	}
}

// A receiver that fails, hangs or asks for a delay gets each event once it can, in order.
func TestAReceiverThatFails(t *testing.T) {
	t.Parallel()
	client := newClient(t)
	var putOff, again time.Time
	release := make(chan struct{})
	r := newReceiver(t, func(n int64, w http.ResponseWriter, q *http.Request) bool {
		switch n {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			select {
			case <-release:
			case <-q.Context().Done():
			}
		case 3:
			putOff = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 4:
			again = time.Now()
			panic(http.ErrAbortHandler) // the connection breaks
		case 5:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			return true
		}
		return false
	})
	defer close(release)
	s, _ := start(t, client, quick(r.URL, nil))
	eventually(t, "it sends", sends(s))
	happen(t, client, "aa", 0, 3)
	eventually(t, "3 events", func() bool { return len(r.took()) == 3 })
	eventually(t, "3 are counted as posted", func() bool { return s.Stats().Posted == 3 })
	if wait := again.Sub(putOff); wait < 900*time.Millisecond {
		t.Errorf("the next request came %v after Retry-After: 1", wait)
	}
	if got := s.Stats(); got.Retries != 5 || got.Refused+got.GaveUp+got.QueueFull != 0 {
		t.Errorf("%+v", got)
	}
	if !slices.IsSorted(r.took()) {
		t.Errorf("out of order: %q", r.took())
	}
}

// Events that cannot be posted are dropped and counted by reason, and redirects are not followed.
func TestDrops(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := newReceiver(t, func(int64, http.ResponseWriter, *http.Request) bool { elsewhere.Add(1); return true })
	for name, test := range map[string]struct {
		answer func(int64, http.ResponseWriter, *http.Request) bool
		edit   func(*Config)
		count  func(Stats) uint64
		want   uint64
	}{
		"refused": {func(_ int64, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(400); return false }, nil, func(s Stats) uint64 { return s.Refused }, 4},
		"redirect": {func(_ int64, w http.ResponseWriter, q *http.Request) bool {
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
			return false
		}, nil, func(s Stats) uint64 { return s.Refused }, 4},
		"gave up": {func(_ int64, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return false }, func(c *Config) { c.patience = 50 * time.Millisecond }, func(s Stats) uint64 { return s.GaveUp }, 4},
		"full":    {func(_ int64, w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(500); return false }, func(c *Config) { c.queue = 1 }, func(s Stats) uint64 { return s.QueueFull }, 3},
		"too old": {nil, func(c *Config) { c.maxAge = time.Nanosecond }, func(s Stats) uint64 { return s.TooOld }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, r := newClient(t), newReceiver(t, test.answer)
			var log bytes.Buffer
			var mu sync.Mutex
			s, stop := start(t, client, quick(r.URL+"/geheimer-pfad", func(c *Config) {
				c.Logger = slog.New(slog.NewTextHandler(locked{&mu, &log}, nil))
				if test.edit != nil {
					test.edit(c)
				}
			}))
			eventually(t, "it sends", sends(s))
			happen(t, client, "aa", 0, 4)
			eventually(t, fmt.Sprintf("%d are dropped", test.want), func() bool { return test.count(s.Stats()) == test.want })
			stop()
			if s.Stats().Posted > 0 || len(r.took()) > 0 && name != "too old" {
				t.Errorf("posted: %+v", s.Stats())
			}
			if text := log.String(); strings.Contains(text, "geheim") || !strings.Contains(text, "drops events") {
				t.Errorf("the log is %s", text)
			}
		})
	}
	t.Cleanup(func() {
		if elsewhere.Load() > 0 {
			t.Error("a redirect was followed")
		}
	})
}

type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// A process that does not publish does not send, and one that stops publishing gives way.
func TestOnlyWhoPublishesSends(t *testing.T) {
	t.Parallel()
	client, r := newClient(t), newReceiver(t, nil)
	var aPublishes, bPublishes atomic.Bool
	bPublishes.Store(true)
	a, _ := start(t, client, quick(r.URL, func(c *Config) { c.Publishes = aPublishes.Load }))
	b, _ := start(t, client, quick(r.URL, func(c *Config) { c.Publishes = bPublishes.Load }))
	eventually(t, "the one that publishes sends", sends(b))
	if a.Stats().Sending {
		t.Error("a standby sends")
	}
	aPublishes.Store(true)
	bPublishes.Store(false)
	eventually(t, "the other sends", func() bool { return a.Stats().Sending && !b.Stats().Sending })
	happen(t, client, "aa", 0, 1)
	eventually(t, "an event", func() bool { return a.Stats().Posted == 1 })
}

// A message for people combines several events, and a value cannot write markup.
func TestSlack(t *testing.T) {
	t.Parallel()
	body, err := slackBody([]live.Event{
		{Type: live.Hot, Namespace: "shop", Rule: "search-terms", Key: "GET /search?q=<!channel>`&\x1b[31m", Why: "212 in 1s", Limit: "50/s"},
		{Type: live.Block, Namespace: "shop", Rule: "r", Key: "k", Why: "scraper", By: "ops", Until: time.Unix(0, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Text string }
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := "*hot* search-terms `GET /search?q=&lt;!channel&gt;'&amp;\ufffd[31m` in shop: 212 in 1s; limit 50/s\n*block* r `k` in shop: scraper; until 00:00:00 UTC, by ops"
	if got.Text != want {
		t.Errorf("got\n%s\nwant\n%s", got.Text, want)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "99999": maxRetryAfter, "-1": 0, "x": 0,
		"Thu, 01 Jan 2026 00:00:30 GMT": 30 * time.Second, "Wed, 31 Dec 2025 00:00:00 GMT": 0,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

// The receiver that the documentation shows takes what we sign, and nothing else.
func TestDocumentedReceiver(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	switch {
	case err != nil && os.Getenv("CI") == "true":
		t.Fatal("no python3:", err)
	case err != nil:
		t.Skip("no python3 (Debian: apt-get install python3):", err)
	}
	page, err := os.ReadFile("../../../docs/WATCHING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```python\n")
	code, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/WATCHING.md has no block of Python")
	}
	body := []byte(`{"id":"1-0.h0"}`)
	good := Sign(secret, time.Now(), body)
	call := func(header, body string) string { // a file's text, with the line break at its end
		return fmt.Sprintf("print(is_ours(%q, %q.encode(), b%q))\n", header, body, secret+"\r\n")
	}
	program := "import hashlib, hmac, time\n" + code +
		call(good, string(body)) + call(good, "{}") + call(Sign("other", time.Now(), body), string(body)) + call(Sign(secret, time.Now().Add(-time.Hour), body), string(body))
	out, err := exec.CommandContext(t.Context(), python, "-c", program).CombinedOutput()
	if got := strings.Join(strings.Fields(string(out)), " "); err != nil || got != "True False False False" {
		t.Errorf("%v: %s", err, out)
	}
}
