package interop

import (
	"bufio"
	"maps"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/wire"
)

// Lines that programs write in strict pass the original StatsD unchanged and reach the place of
// Graphite.
func TestStrictThroughTheOriginalStatsD(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	carbon := newCarbon(t)
	statsd := real.StatsD(t, real.StatsDOptions{Carbon: carbon.Addr().String()})
	want := make(map[string]int)
	for i := range senders {
		s := &senders[i]
		if s.strict == "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			s.runStrict(t, statsd.Addr(), goldenTerms()...)
			for name, n := range goldenCounts(wire.Strict) {
				want[name] += n
			}
			for deadline := time.Now().Add(patience); !maps.Equal(carbon.counts(), want); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					checkCounts(t, carbon.counts(), want)
					return
				}
			}
		})
	}
}

// carbon receives the lines that a StatsD writes to Graphite.
type carbon struct {
	net.Listener
	mu  sync.Mutex
	sum map[string]int
}

func newCarbon(t *testing.T) *carbon {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &carbon{Listener: l, sum: make(map[string]int)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return // closed
			}
			running.Go(func() { c.read(conn) }) // it writes each second, by a connection of its own
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return c
}

// carbonLine matches name, value and time.
var carbonLine = regexp.MustCompile(`^stats_counts\.(shop\.\S+) ([0-9]+) [0-9]+$`)

func (c *carbon) read(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		match := carbonLine.FindStringSubmatch(strings.TrimSpace(lines.Text()))
		if match == nil {
			continue // its own figures
		}
		n, err := strconv.Atoi(match[2])
		if err != nil {
			continue
		}
		c.mu.Lock()
		c.sum[match[1]] += n
		c.mu.Unlock()
	}
}

func (c *carbon) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.sum)
}
