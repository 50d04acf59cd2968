package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// get decodes an answer of the API and returns its status.
func (f *fixture) get(t *testing.T, path string, value any) int {
	t.Helper()
	resp, err := f.server.Client().Get(f.server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, value); err != nil || resp.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("%s: %s: %v", path, text, err)
	}
	return resp.StatusCode
}

// follow opens a stream and returns its lines.
func (f *fixture) follow(t *testing.T, path, last string) (lines <-chan string, resp *http.Response) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.server.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", last)
	if resp, err = f.server.Client().Do(req); err != nil {
		t.Fatal(err)
	}
	c := make(chan string, 1000)
	go func() {
		defer close(c)
		s := bufio.NewScanner(resp.Body)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			c <- s.Text()
		}
	}()
	t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	return c, resp
}

// next returns the next line that has the prefix, without it.
func next(t *testing.T, lines <-chan string, prefix string) string {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		select {
		case line, open := <-lines:
			if !open {
				t.Fatalf("the stream ended without %q", prefix)
			}
			if text, ok := strings.CutPrefix(line, prefix); ok {
				return text
			}
		case <-limit:
			t.Fatalf("no line with %q", prefix)
		}
	}
}

// The API has the fields of `hotparam list --json`.
func TestAPI(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 50*time.Millisecond, "")
	f.publish(t, search("<script>&phone", 240), search("laptop", 900))
	f.publisher.Suspects(0, []published.Hot{{Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=charger"}, Rate: 181}})
	var hot []listed.Hot
	if status := f.get(t, "/api/v1/hot", &hot); status != http.StatusOK || len(hot) != 2 || hot[0].Key != "GET /search?q=laptop" || hot[0].Limit != "50/s" || hot[0].Threshold != "200/s" || hot[1].Key != "GET /search?q=<script>&phone" || hot[1].Top.Callers[0].Name != "203.0.113.7" {
		t.Errorf("hot: %d %+v", status, hot)
	}
	eventually(t, func() error {
		var suspects []listed.Suspect
		if status := f.get(t, "/api/v1/suspects", &suspects); status != http.StatusOK || len(suspects) != 1 || suspects[0].Rate != 181 {
			return fmt.Errorf("suspects: %d %+v", status, suspects)
		}
		return nil
	})
	for _, path := range []string{"/api/v1/controls", "/api/v1/instances"} {
		var list []any
		if status := f.get(t, path, &list); status != http.StatusOK || list == nil {
			t.Errorf("%s: %d %v, want an empty array", path, status, list)
		}
	}
	var rules RuleList
	if f.get(t, "/api/v1/rules", &rules); rules.Version != testRules().Version || len(rules.Rules) != 3 {
		t.Errorf("rules: %+v", rules)
	}
	var problem struct{ Error string }
	if status := f.get(t, "/api/v1/warm", &problem); status != http.StatusNotFound || !strings.Contains(problem.Error, "instances") {
		t.Errorf("no such: %d %+v", status, problem)
	}
	f.redis.Kill()
	eventually(t, func() error {
		if status := f.get(t, "/api/v1/hot", new(any)); status != http.StatusServiceUnavailable {
			return fmt.Errorf("without Redis: %d", status)
		}
		return nil
	})
}

func TestEventsStreamResumes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 50*time.Millisecond, "")
	f.publish(t) // the view has looked once
	lines, resp := f.follow(t, "/api/v1/events", "")
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v", resp.Header)
	}
	next(t, lines, ": connected")
	f.publish(t, search("phone", 300))
	id := next(t, lines, "id: ")
	if kind := next(t, lines, "event: "); kind != "hot" || !live.ValidID(id) {
		t.Errorf("event %s with id %q", kind, id)
	}
	var event struct{ ID, Type, Key, Rule, Namespace string }
	if err := json.Unmarshal([]byte(next(t, lines, "data: ")), &event); err != nil || event.ID != id || event.Type != "hot" || event.Key != "GET /search?q=phone" || event.Namespace != "shop" {
		t.Errorf("%+v, %v", event, err)
	}
	f.publish(t, search("phone", 300), search("laptop", 400))
	second := next(t, lines, "id: ")
	again, _ := f.follow(t, "/api/v1/events", id)
	if got := next(t, again, "id: "); got != second {
		t.Errorf("resumed with %q, want %q", got, second)
	}
	if _, resp := f.follow(t, "/api/v1/events", "x"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a wrong id: %d", resp.StatusCode)
	}
}

// The copy of a page, updated by changes, equals the copy that a new page gets.
func TestViewStream(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 50*time.Millisecond, "")
	f.publish(t, search("phone", 300))
	lines, _ := f.follow(t, "/api/v1/view", "")
	type message struct {
		Put   []keyRow
		Gone  []uint32
		Rates [][]any
	}
	read := func(kind string) (m message) {
		next(t, lines, "event: "+kind)
		if err := json.Unmarshal([]byte(next(t, lines, "data: ")), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := read("snapshot")
	if len(first.Put) != 1 || first.Put[0].Key != "GET /search?q=phone" || first.Put[0].Threshold != "200/s" {
		t.Fatalf("snapshot: %+v", first)
	}
	id := first.Put[0].ID
	changed := search("phone", 512)
	changed.Since = first.Put[0].Since
	f.publisher.Refresh(0, []published.Hot{changed})
	for end := time.Now().Add(20 * time.Second); ; {
		m := read("change")
		if len(m.Rates) == 1 && m.Rates[0][0] == float64(id) && m.Rates[0][1] == 512. {
			break
		}
		if len(m.Put) != 0 || time.Now().After(end) {
			t.Fatalf("a changed rate: %+v", m)
		}
	}
	f.beat(t, published.Member{Name: "api-1", Role: published.RoleInstance, Admitted: []published.Admitted{{ID: limiter.KeyID([]byte(changed.Key.String())), N: 96, Span: 2 * time.Second,
		OnHot: published.OnHotCounts{Stored: 900, Joined: 9, Alone: 4, AloneFor: "private"}}}})
	for words := ""; words != "48/s of 50/s, 450/s from memory, 4.5/s joined, 2.0/s alone (private)"; {
		for _, of := range read("change").Rates {
			words = fmt.Sprintf("%s, %s", of[4], of[5])
		}
	}
	var lists struct{ Lines map[string][][]*float64 }
	if f.get(t, fmt.Sprintf("/api/v1/view/lines?ids=%d,999,x", id), &lists); len(lists.Lines) != 1 || len(lists.Lines[fmt.Sprint(id)]) == 0 {
		t.Errorf("lines: %+v", lists)
	}
	var one struct{ Hot listed.Hot }
	if f.get(t, fmt.Sprintf("/api/v1/view/key?id=%d", id), &one); one.Hot.Key != changed.Text || one.Hot.Top == nil ||
		one.Hot.Admitted == nil || *one.Hot.Admitted != (listed.Admitted{PerSecond: 48, Allowed: 50, Limits: 1}) ||
		one.Hot.OnHot == nil || *one.Hot.OnHot != (listed.OnHot{Stored: 450, Joined: 4.5, Alone: 2, AloneFor: "private"}) {
		t.Errorf("key: %+v", one)
	}
	f.publisher.Publish(published.Change{Cool: []published.Hot{changed}})
	f.publisher.Refresh(0, nil)
	for {
		if m := read("change"); len(m.Gone) == 1 {
			if m.Gone[0] != id {
				t.Errorf("gone: %v, want %d", m.Gone, id)
			}
			break
		}
	}
}

// A client that does not read is disconnected, and delays no others.
func TestSlowReaderIsCut(t *testing.T) {
	t.Parallel()
	view := newFakeView(t)
	f := serveView(t, view, "")
	view.show(manyKeys(1000, 0))
	conn, err := net.Dial("tcp", f.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /api/v1/view HTTP/1.1\r\nHost: localhost\r\n\r\n")
	lines, _ := f.follow(t, "/api/v1/view", "")
	next(t, lines, "event: snapshot")
	step := 0
	eventually(t, func() error {
		step++
		view.show(manyKeys(1000, step))
		if s := f.page.Stats(); s.Cut != 1 || s.Streams != 1 {
			return fmt.Errorf("%+v, want the one cut that does not read", s)
		}
		return nil
	})
	for len(lines) > 0 {
		<-lines
	}
	view.show(manyKeys(1000, -1))
	next(t, lines, "event: change") // the other one reads on
	text, err := io.ReadAll(conn)   // the events sent before, and the end
	if err == nil && !strings.Contains(string(text), "too slow") {
		t.Logf("%d bytes without the reason: the write that hung took its place", len(text))
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 50*time.Millisecond, "")
	for range maxStreams {
		lines, _ := f.follow(t, "/api/v1/events", "")
		next(t, lines, ": connected")
	}
	_, resp := f.follow(t, "/api/v1/events", "")
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d", resp.StatusCode)
	}
	if s := f.page.Stats(); s.Streams != maxStreams || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
	var session struct {
		StreamsFull bool `json:"streams_full"`
	}
	if f.get(t, "/api/v1/session", &session); !session.StreamsFull {
		t.Errorf("%+v", session)
	}
	// Another peer gets a place of the peer that holds all of them.
	other, ok, err := f.page.hub.join(base.PeerAt("10.0.0.1:1"), false)
	if !ok || err != nil {
		t.Fatalf("another peer is locked out: %v", err)
	}
	defer f.page.hub.removeReader(other)
	if s := f.page.Stats(); s.Streams != maxStreams || s.Cut != 1 {
		t.Errorf("%+v", s)
	}
}
