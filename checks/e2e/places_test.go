package e2e

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// The rules share the places of the published set: files are counted in bytes, terms in requests.
// Keys stay hot for the default time.
const sharedRules = `
  - id: search-terms
    match: {route: "GET /search"}
    by: [q]
    hot: 100/s
    limit: {rate: 10/s, burst: 5, scope: instance}
  - id: files
    match: {route: "GET /files"}
    by: [name]
    count: bytes
    hot: 100KB/s
    limit: {rate: 50KB/s, burst: 100KB, scope: instance}
`

// counts sends StatsD lines at a steady pace, several to a packet.
type counts struct {
	t    *testing.T
	conn net.Conn
}

func (f *fleet) counts() counts {
	f.t.Helper()
	conn, err := net.Dial("udp", f.statsd)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { conn.Close() })
	return counts{f.t, conn}
}

// send sends what line returns for each number below n.
func (c counts) send(n int, line func(int) string) {
	var packet bytes.Buffer
	for i := range n {
		packet.WriteString(line(i))
		if packet.WriteByte('\n'); packet.Len() > 1200 || i == n-1 {
			if _, err := c.conn.Write(packet.Bytes()); err != nil {
				c.t.Error(err)
			}
			packet.Reset()
		}
	}
}

// eachStep calls f each step for a while.
func eachStep(step, total time.Duration, f func(i int)) {
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for i := range int(total / step) {
		f(i)
		<-ticker.C
	}
}

func termLine(q string, n int) string {
	return fmt.Sprintf("shop.search-terms.hot_param.GET%%20/search?q=%s:%d|c", q, n)
}

// published reports whether a member is in Redis.
func (f *fleet) published(member string) bool {
	return f.client.ZScore(f.t.Context(), f.layout.Hot, member).Err() == nil
}

// 4,000 keys a second become hot for 8 s. A key that was hot before keeps its place all the time.
// A key that becomes hot during the flood and finds no place is counted as such, and published
// within 3 s of the flood's end. The keys keep their rates only while no other test runs.
func TestFloodOfHotKeys(t *testing.T) {
	f := newFleet(t, quickCommands(t), sharedRules)
	d := f.startAggregator()
	c := f.counts()
	const step, late = 100 * time.Millisecond, "search-terms GET /search?q=late"
	eachStep(step, time.Second, func(int) { c.send(1, func(int) string { return termLine("phone", 13) }) })
	within(t, recovery, "phone is published", func() bool { return f.published(phone) })
	gone, waited := 0, 0.0
	eachStep(step, 8*time.Second, func(i int) {
		c.send(1, func(int) string { return termLine("phone", 13) })
		c.send(400, func(j int) string { return termLine(fmt.Sprint("flood-", i, "-", j), 150) })
		if i >= 40 {
			c.send(1, func(int) string { return termLine("late", 13) })
		}
		if !f.published(phone) {
			gone++
		}
		if i%10 == 9 {
			waited = max(waited, d.metric(`hotparam_published_waiting_keys{rule="search-terms"}`))
		}
	})
	_, ready := f.get(d.url + "/-/ready")
	end := time.Now()
	for !f.published(late) {
		if time.Since(end) > recovery {
			t.Fatalf("late is not published %v after the flood; %v keys are, ready says %q", recovery, d.metric("hotparam_published_keys"), ready)
		}
		eachStep(step, step, func(int) {
			c.send(2, func(i int) string { return termLine([]string{"phone", "late"}[i], 13) })
		})
	}
	t.Logf("published %v after the flood; up to %v keys waited; ready said %q", time.Since(end), waited, ready)
	if gone > 0 || !f.published(phone) {
		t.Errorf("phone was without its place at %d of 80 looks", gone)
	}
	if waited < 1000 || !strings.Contains(ready, "wait for a place") || !strings.Contains(ready, "of search-terms") {
		t.Errorf("%v keys waited at most, ready said %q: want what waits told", waited, ready)
	}
}

// Keys of one rule evict no key of another rule, and keys that are not much hotter evict none of
// the same rule. There are 1,100 files at 200 kB/s, 1,000 made-up terms at 500/s, and a term at
// 300/s. They keep their rates only while no other test runs.
func TestRulesShareThePlaces(t *testing.T) {
	f := newFleet(t, quickCommands(t), sharedRules)
	d, apis := f.startAggregator(), f.startAPIs(1)
	c := f.counts()
	const step = 500 * time.Millisecond
	files := func(n int) {
		c.send(n, func(i int) string { return fmt.Sprintf("shop.files.hot_param.GET%%20/files?name=%d:100000|c", i) })
	}
	eachStep(step, 3*time.Second, func(int) { files(1100) })
	start := time.Now()
	for !f.published(phone) {
		if time.Since(start) > recovery {
			t.Fatalf("the term is not published beside %v files", d.metric("hotparam_hot_keys"))
		}
		eachStep(step, step, func(int) {
			files(1100)
			c.send(1, func(int) string { return termLine("phone", 150) })
		})
	}
	f.awaitHot(recovery, apis, phone)
	gone := 0
	// The term's counts arrive steadily and in small steps, both before and during the others, so
	// that no window has twice as many of theirs.
	eachStep(step/5, 6500*time.Millisecond, func(i int) {
		if i%5 == 0 {
			files(1100)
		}
		if i < 15 {
			c.send(1, func(int) string { return termLine("phone", 30) })
			return
		}
		c.send(1001, func(i int) string {
			if i == 500 {
				return termLine("phone", 30)
			}
			return termLine(fmt.Sprint("spoofed-", i), 50)
		})
		if i%5 != 0 {
			return
		}
		if in := apis[0].state(); !f.published(phone) || !in.holds(phone) {
			gone++
		}
	})
	waiting, terms := d.metric(`hotparam_published_waiting_keys{rule="files"}`), d.metric(`hotparam_published_waiting_keys{rule="search-terms"}`)
	_, ready := f.get(d.url + "/-/ready")
	t.Logf("%v files and %v terms wait; ready says %q", waiting, terms, ready)
	if gone > 0 {
		t.Errorf("phone was without its place at %d of 10 looks", gone)
	}
	if waiting != 600 || terms != 501 {
		t.Errorf("%v files and %v terms wait, want each rule with half of the places", waiting, terms)
	}
	if n := f.client.ZCard(t.Context(), f.layout.Hot).Val(); n != 1000 {
		t.Errorf("%d keys are published, want 1,000", n)
	}
}
