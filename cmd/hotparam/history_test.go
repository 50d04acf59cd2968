package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/testenv"
)

// pastView is the part of the JSON of a history that the tests read.
type pastView struct {
	From, To, Step int64
	Rows           []struct {
		Rule, Route, Key, Unit string
		Cells                  [][4]*int64
	}
	Rest, Marks []struct{ Kind, Rule, Key, Words string }
	Gaps        [][2]int64
}

// An aggregator that is killed leaves all but the last second or two, and the next one continues. Any
// command and any replica reads it; a value that is deleted is gone everywhere.
func TestHistoryOfAKilledAggregator(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	file := write(t, goodRules+fmt.Sprintf("aggregator: {listen: '127.0.0.1:0', http: '127.0.0.1:0', redis: %s, history: {}}\n", server.URL()))
	start := func() (*testenv.Process, net.Conn) {
		p := testenv.Start(t, asProcess(t, "aggregator", "--config", file))
		conn, err := net.Dial("udp", strings.TrimPrefix(p.WaitFor(`statsd=(\S+)`)[1], "udp://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return p, conn
	}
	send := func(conn net.Conn, until func() error) {
		eventually(t, func() error {
			_, _ = fmt.Fprint(conn, "shop.search-terms.hot_param.GET%20/search?q=phone:30|c\nshop.search-terms.hot_param.GET%20/search?q=tv:2|c\nshop.search-terms.hot_param.GET%20/search?token=x:1|c\n")
			return until()
		})
	}
	view := func(args ...string) (v pastView) {
		r := hotparamCommand(t, append([]string{"history", "--config", file, "--json"}, args...)...)
		r.exits(t, exitOK)
		if err := json.Unmarshal([]byte(r.out), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	cells := func(n int) func() error { // waits for that many columns of a key
		return func() error {
			r := hotparamCommand(t, "history", "--config", file, "--json", "--from", "-1m", "GET /search?q=phone")
			var v pastView
			if err := json.Unmarshal([]byte(r.out), &v); err != nil {
				return err
			}
			if len(v.Rows) == 0 || len(v.Rows[0].Cells) < n {
				return fmt.Errorf("%+v", v)
			}
			return nil
		}
	}
	hotparamCommand(t, "history", "--config", file).exits(t, exitFailure, "there is no history")
	first, conn := start()
	send(conn, cells(4))
	killed := time.Now().Unix()
	first.Kill()
	second, conn := start()
	send(conn, cells(8))
	v := view("--from", "-1m")
	if v.Step != 1 || len(v.Rows) != 2 || v.Rows[0].Key != "q=phone" || v.Rows[0].Route != "GET /search" || v.Rows[0].Rule != "search-terms" {
		t.Fatalf("%+v", v)
	}
	newestBefore := int64(0)
	for _, c := range v.Rows[0].Cells {
		if at := v.From + *c[0]; at <= killed {
			newestBefore = at
		}
		if *c[1] <= 0 || c[2] != nil && *c[2] < *c[1] {
			t.Errorf("cell of %d to %v", *c[1], c[2])
		}
	}
	if killed-newestBefore > 3 {
		t.Errorf("killed at %d, written up to %d", killed, newestBefore)
	}
	if !strings.Contains(fmt.Sprint(v.Marks), "hot search-terms GET /search?q=phone") {
		t.Errorf("marks %v", v.Marks)
	}

	for _, key := range []string{"", "q=phone"} {
		r := hotparamCommand(t, slices.DeleteFunc([]string{"history", "--config", file, "--from", "-1m", key}, func(s string) bool { return s == "" })...)
		r.exits(t, exitOK)
		for _, want := range []string{"GET /search?q=phone", "█", "hot at 200/s", "nothing was written"} {
			if !strings.Contains(r.out, want) {
				t.Errorf("no %q in\n%s", want, r.out)
			}
		}
	}
	r := hotparamCommand(t, "history", "--config", file, "--from", "-1m", "--csv", "--rule", "search-terms")
	lines, err := csv.NewReader(strings.NewReader(r.out)).ReadAll()
	if err != nil || len(lines) < 10 || strings.Join(lines[0], ",") != "time,rule,route,key,unit,low,high,refused" {
		t.Errorf("%v: %q", err, lines)
	}

	http1 := "http://" + second.WaitFor(`aggregator is up.* http=(\S+)`)[1]
	get := func(path string) (int, string) { return (&running{t: t, http: http1}).answer(path) }
	now := time.Now().Unix()
	if code, body := get(fmt.Sprintf("/api/v1/history?from=%d&to=%d", now-60, now)); code != 200 || !strings.Contains(body, `"key":"q=phone"`) || strings.Contains(body, "token") {
		t.Errorf("%d %s", code, body)
	}
	for path, want := range map[string]int{"?from=a&to=5": 400, "?from=5&to=4": 400, "?from=1&to=9&columns=1001": 400, "?from=1&to=99999999": 400} {
		if code, body := get("/api/v1/history" + path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}

	send(conn, func() error { return nil })
	hotparamCommand(t, "history", "forget", "--config", file, "q=phone").exits(t, exitOK, "confirmed by 1 writer")
	send(conn, func() error { return nil })
	if text := hotparamCommand(t, "history", "--config", file, "--json", "--from", "-1h").out; strings.Contains(text, "phone") || !strings.Contains(text, "q=tv") {
		t.Errorf("after it was deleted: %s", text)
	}
	server.Kill()
	eventually(t, func() error {
		if code, body := get(fmt.Sprintf("/api/v1/history?from=%d&to=%d", now-60, now)); code != 503 || !strings.Contains(body, "Redis with the history cannot be read") {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
}

// Without the setting nothing is kept, and the API says so. A server of its own is used if there is one.
func TestHistoryIsOffAndElsewhere(t *testing.T) {
	t.Parallel()
	server, other := testenv.Redis(t), testenv.Redis(t)
	off := startDaemon(t, "--redis", server.URL(), "--config", write(t, goodRules+"aggregator: {listen: '127.0.0.1:0'}\n"))
	if code, body := off.answer("/api/v1/history?from=1&to=2"); code != 404 || !strings.Contains(body, "history is off") {
		t.Errorf("%d %s", code, body)
	}
	off.end()
	d := startDaemon(t, "--config", write(t, goodRules+fmt.Sprintf("aggregator: {listen: '127.0.0.1:0', redis: %s, history: {redis: %s, keep: 1h}}\n", server.URL(), other.URL())))
	client, err := hotkeys.NewClient(other.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	eventually(t, func() error {
		if keys := client.Keys(t.Context(), "hotparam-history:*").Val(); len(keys) == 0 {
			return fmt.Errorf("no history: %s", d.get("/-/ready"))
		}
		return nil
	})
	eventually(t, d.serves("hotparam_history_writing 1"))
	other.Kill()
	eventually(t, func() error {
		if words := d.get("/-/ready"); !strings.HasPrefix(words, "ready; history cannot be written") {
			return fmt.Errorf("%s", words)
		}
		return nil
	})
}

// Times are read as people write them.
func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 11, 28, 14, 20, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"14:03": "2026-11-28T14:03:00Z", "14:21": "2026-11-27T14:21:00Z", "14:03:30": "2026-11-28T14:03:30Z", "now": "2026-11-28T14:20:00Z",
		"-1h": "2026-11-28T13:20:00Z", "-3d": "2026-11-25T14:20:00Z", "2026-11-20 09:00": "2026-11-20T09:00:00Z", "2026-11-20": "2026-11-20T00:00:00Z",
		"2026-11-20T09:00:00+01:00": "2026-11-20T08:00:00Z",
	} {
		if got, err := parseMoment(text, now); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s: %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "1h", "25:00", "-x"} {
		if got, err := parseMoment(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
