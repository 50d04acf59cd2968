package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// soon bounds the wait for events that should take a second or two.
const soon = 30 * time.Second

// TestDemo runs the whole demo over real sockets until a key is hot and was refused, and checks
// that it leaves nothing behind.
func TestDemo(t *testing.T) {
	for _, transport := range []string{StatsD, Kafka} {
		t.Run(transport, func(t *testing.T) { testDemo(t, transport) })
	}
}

func testDemo(t *testing.T, transport string) {
	var warnings strings.Builder
	d, err := New(t.Context(), transport, slog.New(slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()

	key := firstHot(ctx, t, d)
	inRedis(ctx, t, d, key)
	refusals := askTooOften(ctx, t, d, key)
	cancel()
	if err := <-ended; err != nil {
		t.Fatalf("Run: %v", err)
	}

	r := d.Result()
	if r.Requests != r.Allowed+r.Limited || r.Allowed == 0 || r.Limited < refusals || r.Failed != 0 {
		t.Errorf("requests %d, allowed %d, limited %d (at least %d), failed %d", r.Requests, r.Allowed, r.Limited, refusals, r.Failed)
	}
	var limited, counted int64
	for i, h := range r.Hot {
		limited += h.Limited
		if i > 0 && h.PeakRate > r.Hot[i-1].PeakRate {
			t.Errorf("%s with peak %v comes after %v", h.Key, h.PeakRate, r.Hot[i-1].PeakRate)
		}
	}
	if limited != r.Limited {
		t.Errorf("the keys' limited are %d in sum, of all requests it is %d", limited, r.Limited)
	}
	for _, a := range d.apis[WithLimits] {
		counted += a.counts.Stats().Counts
	}
	if counted != r.Requests {
		t.Errorf("%d requests were answered, %d were counted", r.Requests, counted)
	}
	if packets := d.transport.stats().Decoder.Packets; packets == 0 {
		t.Error("the aggregator got no packet")
	}
	for reason, n := range r.Dropped {
		if n != 0 {
			t.Errorf("dropped: %s %d", reason, n)
		}
	}
	if p := r.Enforce; p.P50 == nil || p.P99 == nil || *p.P50 <= 0 || *p.P50 > *p.P99 || *p.P99 > 10_000 { // a busy machine has stalls of seconds
		at50, at99 := "none", "none"
		if p.P50 != nil && p.P99 != nil {
			at50, at99 = fmt.Sprint(*p.P50), fmt.Sprint(*p.P99)
		}
		t.Errorf("time to enforce: p50 %s ms, p99 %s ms", at50, at99)
	}
	if warnings.Len() > 0 {
		t.Errorf("logged:\n%s", warnings.String())
	}
	checkJSON(t, r)
}

// firstHot waits until a key is hot and every instance limits it.
func firstHot(ctx context.Context, t *testing.T, d *Demo) string {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			t.Fatal("no key became hot")
		case <-ticker.C:
		}
		s, err := d.Snapshot(ctx)
		if err != nil {
			t.Fatalf("Snapshot: %v", err)
		}
		if len(s.Hot) > 0 && s.Enforce.P50 != nil {
			if h := s.Hot[0]; h.Rate < 1 || h.Limit != Rules().Rules[0].Limit.Rate || h.Since.IsZero() {
				t.Errorf("hot: %+v", h)
			}
			return s.Hot[0].Text
		}
	}
}

func inRedis(ctx context.Context, t *testing.T, d *Demo, key string) {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: d.RedisAddr()})
	defer client.Close()
	members, err := client.ZRevRangeWithScores(ctx, "hotparam:{demo}:hot", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Member == "company "+key {
			return
		}
	}
	t.Errorf("%q is not among %v", key, members)
}

// askTooOften sends more requests for a hot key to one instance than its burst, and returns how
// many were refused.
func askTooOften(ctx context.Context, t *testing.T, d *Demo, key string) (refused int64) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	_, target, _ := strings.Cut(key, " ")
	for range 4 * Rules().Rules[0].Limit.Burst {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URLs()[0]+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests {
			continue
		}
		refused++
		if resp.Header.Get("Retry-After") == "" || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("refused with %v", resp.Header)
		}
	}
	if refused == 0 {
		t.Errorf("%s: nothing was refused", key)
	}
	return refused
}

// checkJSON checks that a result has all fields that scripts rely on.
func checkJSON(t *testing.T, r Result) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Requests, Allowed, Limited *int64
		Hot                        []map[string]any
		Enforce                    map[string]*float64 `json:"time_to_enforce_ms"`
		Dropped                    map[string]int64
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Requests == nil || got.Allowed == nil || got.Limited == nil || got.Hot == nil || len(got.Enforce) != 2 || len(got.Dropped) == 0 {
		t.Errorf("incomplete: %s", text)
	}
	for _, h := range got.Hot {
		if h["key"] == nil || h["peak_rate"] == nil || h["limited"] == nil {
			t.Errorf("incomplete: %v", h)
		}
	}
}

// Scripts find an array and two nulls in an empty result.
func TestEmptyResult(t *testing.T) {
	for _, transport := range []string{StatsD, Kafka} {
		d, err := New(t.Context(), transport, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := d.Run(over); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(d.Result())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"hot":[]`, `"p50":null`, `"p99":null`, `"requests":0`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %s is not in %s", transport, want, text)
			}
		}
	}
}

func TestNewFails(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, transport := range []string{StatsD, Kafka, "pigeon"} {
		if d, err := New(over, transport, slog.New(slog.DiscardHandler)); err == nil || d != nil {
			t.Fatalf("%s: New: %v, %v", transport, d, err)
		}
	}
}

func TestRunEndsWhenAPartFails(t *testing.T) {
	d, err := New(t.Context(), Kafka, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	d.apis[WithLimits][1].listener.Close()
	if err := d.Run(t.Context()); err == nil {
		t.Fatal("Run returned nil, though an instance could not serve")
	}
}

func TestTraffic(t *testing.T) {
	tr, err := newTraffic(t.Context(), newCrowd(), [Variants][]string{WithLimits: {"http://a", "http://b"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.requests) != 9925 || tr.length != 28*time.Second {
		t.Errorf("%d requests in %v", len(tr.requests), tr.length)
	}
	for i, r := range tr.requests {
		if i > 0 && r.after <= tr.requests[i-1].after || r.after >= tr.length {
			t.Fatalf("request %d comes after %v", i, r.after)
		}
		if !strings.HasPrefix(r.target, "/Archives/edgar/data?") || r.instance > 1 {
			t.Fatalf("request %d is for %s of instance %d", i, r.target, r.instance)
		}
	}
}

func TestKeyOf(t *testing.T) {
	for target, want := range map[string]string{
		"/Archives/edgar/data?cik=7&doc=x":     "GET /Archives/edgar/data?cik=7",
		"/Archives/edgar/data?cik=9&a&cik=10":  "GET /Archives/edgar/data?cik=10&cik=9",
		"/Archives/edgar/data?cik=a+b%2F":      "GET /Archives/edgar/data?cik=a%20b%2F",
		"/Archives/edgar/data?CIK=7&accession": "",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := keyOf(r); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
}
