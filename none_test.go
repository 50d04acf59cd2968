package hotparam

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// sockets returns how many sockets this process has open, or -1 if that is unknown.
func sockets(t *testing.T) (n int) {
	t.Helper()
	const dir = "/proc/self/fd"
	files, err := os.ReadDir(dir)
	if err != nil {
		return -1
	}
	for _, f := range files {
		if to, err := os.Readlink(dir + "/" + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// knocks is a port of Redis that closes each connection, and counts them.
type knocks struct {
	net.Listener
	n atomic.Int64
}

func listenForKnocks(t *testing.T) *knocks {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k, done := &knocks{Listener: l}, make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			k.n.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return k
}

// onlyLimits returns the text of a file with source: none.
func onlyLimits(redis *knocks, statsd string, rules ...string) string {
	return strings.Replace(shop("redis://"+redis.Addr().String(), statsd, rules...), "aggregator: {", "aggregator: {source: none, ", 1)
}

// With source: none limits work, no socket is opened and Redis is not asked before a limit spans
// all instances. Rules with hot need another source.
func TestSourceNone(t *testing.T) {
	redis, statsd := listenForKnocks(t), receive(t)
	before := sockets(t)
	f := open(t, onlyLimits(redis, statsd.addr(), fmt.Sprintf(productRule, 2)))
	if n := f.passes(10, "/products"); n != 2 {
		t.Errorf("%d of 10 passed, want a burst of 2", n)
	}
	if n := f.passes(200, "/search?q=phone"); n != 200 {
		t.Errorf("%d of 200 passed that no rule limits", n)
	}
	f.write(onlyLimits(redis, statsd.addr(), fmt.Sprintf(productRule, 3)))
	f.await("a reload", func() bool { return f.Stats().Rules.Reloads == 1 })
	if n := f.passes(10, "/products"); n != 1 {
		t.Errorf("%d of 10 passed after the burst grew from 2 to 3, want 1", n)
	}
	f.write(onlyLimits(redis, statsd.addr(), searchRule))
	f.await("a rejection", func() bool { return f.Stats().Rules.Rejected == 1 })
	f.write(shop("redis://"+redis.Addr().String(), statsd.addr(), searchRule)) // another source, for which Open is too late
	f.await("a rejection", func() bool { return f.Stats().Rules.Rejected == 2 })
	if p := f.Stats().Rules.Problem; !strings.Contains(p, `rule "search-terms" has hot`) {
		t.Errorf("the problem is %q, want the rule that needs counts", p)
	}
	if n := f.get("/healthz"); n != http.StatusOK {
		t.Errorf("status %d", n)
	}
	if after := sockets(t); after != before {
		t.Errorf("%d sockets are open, %d before", after, before)
	}
	if _, found := sample(t, f, "watcher_delay_seconds"); found {
		t.Error("there is a metric of a watcher, and nothing is followed")
	}
	if s := f.Stats(); s.Collector.Flushes > 0 || s.Watcher.Polls+s.Watcher.Errors > 0 || s.Heartbeat.Failures > 0 {
		t.Errorf("%+v, want nothing done", s)
	}
	if n := redis.n.Load(); n != 0 {
		t.Errorf("Redis was asked %d times", n)
	}
	if sent := statsd.log.String(); sent != "" {
		t.Errorf("sent %q", sent)
	}
	f.write(onlyLimits(redis, statsd.addr(), `{id: shared, match: {route: GET /products}, limit: {rate: 5/1h, scope: exact}}`))
	f.await("a question to Redis", func() bool { f.get("/products"); return redis.n.Load() > 0 })
}

// Closing a Hotparam that only limits does not wait for anything.
func TestCloseSourceNone(t *testing.T) {
	f := open(t, onlyLimits(listenForKnocks(t), nowhere(t), fmt.Sprintf(productRule, 2)))
	begin := time.Now()
	if err := f.Close(t.Context()); err != nil || time.Since(begin) > closeTimeout/2 {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}
