package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// followLine returns a request in the combined format, dated just before now.
func followLine(path string) string {
	return fmt.Sprintf("192.0.2.7 - - [%s] \"GET %s HTTP/1.1\" 200 12 \"-\" \"-\"\n", time.Now().Format("02/Jan/2006:15:04:05 -0700"), path)
}

// A follower reports the number of lines read and refused and whether it is ready, and shuts down
// cleanly.
func TestFollowServes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules := filepath.Join(dir, "hotparam.yaml")
	access := filepath.Join(dir, "access.log")
	replace := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const rule = "statsd: {addresses: [\"127.0.0.1:9\"]}\nrules:\n  - {id: terms, match: {route: GET /search}, by: [q], hot: 9/s}\n"
	replace(rules, rule)
	log := new(testenv.LogBuffer)
	ctx, stop := context.WithCancel(t.Context())
	code := make(chan int, 1)
	args := []string{"follow", "--config", rules, "--http", "127.0.0.1:0", access}
	go func() { code <- run(ctx, args, streams{in: strings.NewReader(""), out: io.Discard, err: log}) }()
	t.Cleanup(func() {
		stop()
		code <- <-code
	})
	await := func(what string, condition func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) || len(code) > 0 {
				t.Fatalf("%s: not within 20 s; the log:\n%s", what, log)
			}
		}
	}
	var base string
	await("the follower", func() bool {
		found := regexp.MustCompile(` http=(\S+)`).FindStringSubmatch(log.String())
		if found != nil {
			base = "http://" + found[1]
		}
		return found != nil
	})
	client := &http.Client{Transport: new(http.Transport), Timeout: 20 * time.Second}
	t.Cleanup(client.CloseIdleConnections)
	get := func(path string) string {
		t.Helper()
		response, err := client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.Status + " " + string(text)
	}
	await("the log that is missing", func() bool { return strings.HasPrefix(get("/-/ready"), "503 Service Unavailable not ready: no log") })
	replace(access, followLine("/search?q=a")+"no request\n"+followLine("/search?q=b"))
	await("requests", func() bool { return strings.Contains(get("/metrics"), "\nhotparam_follow_requests_total 2\n") })
	if got := get("/-/healthy") + get("/-/ready"); got != "200 OK healthy\n200 OK ready, following 1 log\n" {
		t.Error(got)
	}
	metrics := get("/metrics")
	for _, want := range []string{
		"hotparam_follow_lines_total 3", `hotparam_follow_skipped_lines_total{reason="unreadable"} 1`, "hotparam_follow_behind_bytes 0",
		"hotparam_follow_missing_logs 0", `hotparam_follow_rotations_total{how="rename"} 0`, "hotparam_rules_info{", "hotparam_build_info{", "process_open_fds",
	} {
		if !strings.Contains(metrics, "\n"+want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	replace(rules, "rules: [")
	await("the bad file", func() bool { return strings.Contains(get("/-/ready"), "the file cannot be used") })
	if !strings.Contains(get("/metrics"), "\nhotparam_rules_refused 1\n") {
		t.Error("/metrics has no hotparam_rules_refused 1")
	}
	stop()
	n := <-code
	if code <- n; n != exitOK || !strings.Contains(log.String(), "msg=done requests=2 bad=1") {
		t.Errorf("exit code %d; the log:\n%s", n, log)
	}
}

func TestFollowRefusesAddresses(t *testing.T) {
	rules := write(t, "rules:\n  - {id: a, match: {route: /a}, by: [q], hot: 9/s}\n")
	hotparamCommand(t, "follow", "--config", rules, "--http", "9127", rules+".log").exits(t, exitUsage, "http", "host:port")
	taken := startGuard(t, guardFile(t, ""))
	hotparamCommand(t, "follow", "--config", rules, "--http", strings.TrimPrefix(taken.http, "http://"), rules+".log").exits(t, exitFailure, "health and metrics", "in use")
}
