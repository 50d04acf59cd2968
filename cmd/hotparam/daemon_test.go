package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// running is an aggregator that runs in this process.
type running struct {
	t    *testing.T
	log  *testenv.LogBuffer
	end  func() int
	http string
}

func startDaemon(t *testing.T, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	d, code := &running{t: t, log: new(testenv.LogBuffer)}, make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"aggregator", "--http", "127.0.0.1:0"}, args...), streams{in: strings.NewReader(""), out: io.Discard, err: d.log})
	}()
	d.end = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() {
		if d.end(); t.Failed() {
			t.Logf("aggregator %q:\n%s", args, d.log)
		}
	})
	d.http = "http://" + d.find(`aggregator is up.* http=(\S+)`)
	return d
}

// find waits for a line of the log that matches and returns its group.
func (d *running) find(pattern string) string {
	d.t.Helper()
	line, found := regexp.MustCompile(pattern), ""
	eventually(d.t, func() error {
		m := line.FindStringSubmatch(d.log.String())
		if m == nil {
			return fmt.Errorf("the log has no %q", pattern)
		}
		found = m[1]
		return nil
	})
	return found
}

// get asks the daemon and returns the body of its answer.
func (d *running) get(path string) string {
	d.t.Helper()
	_, body := d.answer(path)
	return body
}

// answer asks the daemon and returns the status and the body of its answer.
func (d *running) answer(path string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.http+path, http.NoBody)
	if err != nil {
		d.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// is checks readiness.
func (d *running) is(want string) func() error {
	return func() error {
		if got := strings.TrimSpace(d.get("/-/ready")); got != want {
			return fmt.Errorf("/-/ready: %q, want %q", got, want)
		}
		return nil
	}
}

// serves checks that metrics have these lines.
func (d *running) serves(lines ...string) func() error {
	return func() error {
		metrics := d.get("/metrics")
		for _, line := range lines {
			if !strings.Contains(metrics, "\n"+line+"\n") {
				return fmt.Errorf("/metrics does not have %q:\n%s", line, metrics)
			}
		}
		return nil
	}
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatal(err)
}
