package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Replay follows a log while it is written. An event is printed once the buffer's time has passed,
// even if no further line is written and the output is not a terminal.
func TestReplayFollowsALog(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  time.Duration
	}{
		{nil, 10 * time.Second},
		{[]string{"--json"}, 10 * time.Second},
		{[]string{"--reorder", "3s"}, 3 * time.Second},
		{[]string{"--reorder", "0"}, 0},
	} {
		t.Run(fmt.Sprint(c.flags), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, log := io.Pipe()
				out, shown := io.Pipe()
				began := time.Now()
				go func() {
					defer log.Close()
					for range 11 { // the eleventh brings the count of the tenth about: it is of a later instant
						fmt.Fprintf(log, `{"time":%q,"method":"GET","uri":"/s?q=1"}`+"\n", time.Now().UTC().Format(time.RFC3339Nano))
						time.Sleep(10 * time.Millisecond)
					}
					time.Sleep(time.Minute)
				}()
				go func() {
					args := append([]string{"replay", "--by", "q", "--hot", "10/s", "-"}, c.flags...)
					if code := run(t.Context(), args, streams{in: in, out: shown, err: io.Discard}); code != exitOK {
						t.Errorf("exit code %d", code)
					}
					shown.Close()
				}()
				first := make([]byte, 64<<10)
				n, err := out.Read(first)
				if err != nil || !bytes.Contains(first[:n], []byte("hot")) || !bytes.Contains(first[:n], []byte("GET /s?q=1")) {
					t.Fatalf("%v: %s", err, first[:n])
				}
				if took := time.Since(began); took < c.want || took > c.want+300*time.Millisecond {
					t.Errorf("the event came after %v, want %v", took, c.want)
				}
				_, _ = io.Copy(io.Discard, out)
			})
		})
	}
}

// A log in order of completion yields the same as the sorted one. Lines that come later than the
// buffer are reported, with the buffer that would suffice.
func TestReplayOutOfOrder(t *testing.T) {
	lines := slices.Collect(strings.Lines(accessLog()))
	slices.Reverse(lines) // 4.9 s
	reversed := strings.Join(lines, "")
	file := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(file, []byte(accessLog()), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"replay", "--by", "q", "--hot", "10/s", "--limit", "2/s"}
	for _, more := range [][]string{{"--json"}, {}, {"--json", "--explain", "GET /search?q=phone"}} {
		args := append(slices.Clone(flags), more...)
		want := hotparamCommand(t, append(slices.Clone(args), file)...)
		got := withInput(t, reversed, append(slices.Clone(args), "-")...)
		got.exits(t, exitOK)
		if got.out != want.out || got.err != "" {
			t.Errorf("%v: from standard input\n%s%s\nwant\n%s", more, got.out, got.err, want.out)
		}
		got = withInput(t, reversed, append(slices.Clone(args), "--reorder", "2s", "-")...)
		got.exits(t, exitOK, "out of order, up to 4.9s late", "give --reorder 5s, or save the log to a file")
		if got.out == want.out {
			t.Errorf("%v: out of order gives the same:\n%s", more, got.out)
		}
		enough := withInput(t, reversed, append(slices.Clone(args), "--reorder", "5s", "-")...)
		if enough.out != want.out || enough.err != "" {
			t.Errorf("%v: with the buffer that is said to be enough\n%s%s", more, enough.out, enough.err)
		}
	}
	r := withInput(t, reversed, append(flags, "--reorder", "0", "-")...)
	if !strings.Contains(r.out, "requests in 5s, 0 lines skipped, 54 out of order by up to 4.9s: ") {
		t.Errorf("stdout:\n%s", r.out)
	}
	hotparamCommand(t, append(flags, "--reorder", "5s", file)...).exits(t, exitUsage, "--reorder is for standard input")
	withInput(t, reversed, append(flags, "--reorder", "-5s", "-")...).exits(t, exitUsage, "must not be negative")
}

const byteRules = `
namespace: shop
rules:
  - id: files
    match: {route: "*"}
    by: [q]
    count: bytes
    hot: [10KB/s, 20KB/1m]
    limit: 3KB/s
`

// Bytes are counted if the log has them, and printed as bytes. Otherwise replay reports that they
// are missing.
func TestReplayBytes(t *testing.T) {
	rules := write(t, byteRules)
	sized := strings.ReplaceAll(accessLog(), `"}`, `","body_bytes_sent":"1234"}`)
	r := withInput(t, sized, "replay", "--config", rules, "-")
	r.exits(t, exitOK)
	if !strings.HasPrefix(r.out, "hot  2017-06-30T00:00:00.8Z   11.1 kB/s  10KB/s  GET /search?q=phone\n") || r.err != "" {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r = withInput(t, sized, "replay", "--config", rules, "--explain", "GET /search?q=phone", "-"); !strings.Contains(r.out, "reached 10KB") {
		t.Errorf("%s%s", r.out, r.err)
	}
	withInput(t, accessLog(), "replay", "--config", rules, "-").exits(t, exitOK,
		`rule "files" counts bytes, which no line of the log has: it finds nothing`, "body_bytes_sent")
	half := strings.Replace(sized, `","body_bytes_sent":"1234"}`, `"}`, 5)
	withInput(t, half, "replay", "--config", rules, "-").exits(t, exitOK, `counts bytes, which 5 of 55 requests lack`)
	millis := write(t, strings.NewReplacer("bytes", "ms", "10KB/s, 20KB/1m", "100/s", "3KB/s", "50/s").Replace(byteRules))
	withInput(t, sized, "replay", "--config", millis, "-").exits(t, exitOK, `rule "files" counts milliseconds, and no line of the log has a duration`)
}

// Each event names the threshold that made the key hot.
func TestReplayTellsTheThreshold(t *testing.T) {
	rules := write(t, strings.NewReplacer("count: bytes\n", "count: requests\n", "10KB/s, 20KB/1m", "1000/s, 30/1m", "3KB/s", "1/s").Replace(byteRules))
	r := withInput(t, accessLog(), "replay", "--config", rules, "-")
	r.exits(t, exitOK)
	if !strings.HasPrefix(r.out, "hot  2017-06-30T00:00:02.9Z       0.5/s  30/1m  GET /search?q=phone\n") {
		t.Errorf("%s", r.out)
	}
	if r = withInput(t, accessLog(), "replay", "--config", rules, "--json", "-"); !strings.Contains(r.out, `"threshold":"30/1m","kind":"rate","window_seconds":60,"unit":"requests"`) {
		t.Errorf("%s", r.out)
	}
}

// This log has neither headers nor users. Replay reports that, and continues with the other rules.
func TestReplayOfSourcesThatALogDoesNotHave(t *testing.T) {
	rules := write(t, `client: {trusted: [10.0.0.0/8, unix], header: forwarded}
rules:
  - {id: users, match: {route: "*"}, by: ["ctx:user", "header:X-Plan"], hot: 1/s}
  - {id: terms, match: {route: "*"}, by: [q], hot: 30/1m, limit: {rate: 1/s, priority: {by: "cookie:tier", first: [gold]}}}
  - {id: logins, match: {route: "POST /login"}, by: ["json:user"], unread: reject, hot: 1/s}
`)
	r := withInput(t, accessLog(), "replay", "--config", rules, "-")
	r.exits(t, exitOK, `rule "users" names ctx:user, which an access log does not contain`, `rule "users" names header:x-plan`, `rule "terms" names cookie:tier`, `rule "logins" names json:user`)
	if !strings.Contains(r.out, "GET /search?q=phone") || strings.Contains(r.out, "ctx:") {
		t.Errorf("%s%s", r.out, r.err)
	}
	hotparamCommand(t, "rules", "lint", rules).exits(t, exitOK, "clients behind 10.0.0.0/8, Unix sockets are those that forwarded names", "by ctx:user, header:x-plan", "first cookie:tier gold", "bodies are read up to 64KiB, 64MiB at a time", "by json:user: hot at", "a body that cannot be read: refused")
	withInput(t, accessLog(), "replay", "--by", "header:x-plan", "--hot", "30/1m", "-").exits(t, exitOK, `names header:x-plan, which no line of the log has`)
	withInput(t, accessLog(), "replay", "--by", "json:plan", "--hot", "30/1m", "-").exits(t, exitUsage, "--by json:plan: a log has the parameters")
}

// Replay makes the same keys as instances, so it needs the key that redacts values.
func TestReplayRedacts(t *testing.T) {
	rules := write(t, `secrets: {redact: [q], redact_key_env: TEST_REPLAY_REDACT_KEY}
rules:
  - {id: terms, match: {route: "*"}, by: [q], hot: 30/1m}
`)
	withInput(t, accessLog(), "replay", "--config", rules, "-").exits(t, exitFailure, "the environment has no TEST_REPLAY_REDACT_KEY", "give it their key, or any other of 16 bytes")
	t.Setenv("TEST_REPLAY_REDACT_KEY", "0123456789abcdef0123456789abcdef")
	r := withInput(t, accessLog(), "replay", "--config", rules, "-")
	// The value is HMAC-SHA256 of q=phone, computed with OpenSSL.
	if r.exits(t, exitOK); !strings.Contains(r.out, "GET /search?q=hmac-0eca1a85a9a4b838c518da1c55002e2f") || strings.Contains(r.out, "phone") {
		t.Errorf("%s", r.out)
	}
	hotparamCommand(t, "rules", "lint", rules).exits(t, exitOK, "keys have a hash in place of the value of q")
}

// Logs of servers may contain headers, cookies, addresses and durations. Other logs are read if
// flags name the fields.
func TestReplayOfFields(t *testing.T) {
	var log strings.Builder
	for i := range 40 {
		fmt.Fprintf(&log, `{"at":%d,"http":{"verb":"GET","url":"/search?q=%d","from":"192.0.2.%d:80","took":2.5},"tenant":["acme"],"cookies":"theme%d"}`+"\n",
			1498780800000+i*10, i, i%2, i%4)
	}
	fields := []string{"--fields", "time=at,method=http.verb,uri=http.url,caller=http.from,duration_ms=http.took,header:X-Tenant=tenant,cookie:theme=cookies", "--time-format", "ms"}
	for by, want := range map[string]string{"header:x-tenant": "GET /search?header:x-tenant=acme", "cookie:theme": "GET /search?cookie:theme=theme0", "addr:ip": "GET /search?addr:ip=192.0.2.1"} {
		rules := write(t, "rules: [{id: a, match: {route: '*'}, by: ['"+by+"'], hot: 10/s}]\n")
		r := withInput(t, log.String(), append([]string{"replay", "--config", rules, "-"}, fields...)...)
		if r.exits(t, exitOK); !strings.Contains(r.out, want) || r.err != "" {
			t.Errorf("%s:\n%s%s", by, r.out, r.err)
		}
	}
	times := write(t, "rules: [{id: times, match: {route: '*'}, by: ['addr:ip'], count: ms, hot: 60/s}]\n")
	r := withInput(t, log.String(), append([]string{"replay", "--config", times, "-"}, fields...)...)
	if r.exits(t, exitOK); strings.Count(r.out, "hot  ") != 2 || r.err != "" { // 3 ms each
		t.Errorf("%s%s", r.out, r.err)
	}
	withInput(t, log.String(), "replay", "--by", "q", "--hot", "1/s", "--time-format", "ms", "-").exits(t, exitUsage, "--time-format needs --fields")
	withInput(t, log.String(), "replay", "--by", "q", "--hot", "1/s", "--fields", "time=at", "-").exits(t, exitUsage, "--fields: no field has the request")
	withInput(t, log.String(), "replay", "--by", "q", "--hot", "1/s", "--format", "csv", "-").exits(t, exitFailure, "its columns have no names")
	withInput(t, log.String(), "replay", "--by", "q", "--hot", "1/s", "-").exits(t, exitFailure, "--fields, which names")
}
