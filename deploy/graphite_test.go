//go:build real

package deploy_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

const graphitePatience = 90 * time.Second

// points returns the number of series that the target names, the number of their points, and the
// sum of the points.
func points(g *real.GraphiteServer, target string) (series, n int, sum float64) {
	for _, s := range g.Render(target, 10*time.Minute) {
		series++
		for _, p := range s.Points {
			n++
			sum += p.Value
		}
	}
	return series, n, sum
}

// All keys are kept, even if they are many and new. Each count is one point, at its second. A key
// that is no longer counted is no longer written.
func TestStatsDAndGraphite(t *testing.T) {
	const keys = 1000
	for name, test := range map[string]struct {
		modern       bool
		series, beat string
	}{
		"legacy": {false, "stats_counts.shop.hot_param.%s", "statsd.numStats"},
		"modern": {true, "stats.counters.shop.hot_param.%s.count", "stats.statsd.numStats"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := real.Graphite(t)
			s := real.StatsD(t, real.StatsDOptions{Carbon: g.Carbon(), Modern: test.modern})
			conn, err := net.Dial("udp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var packet strings.Builder
			for i := range keys {
				fmt.Fprintf(&packet, "shop.hot_param.q=%d:2|c\n", i)
				if i%50 == 49 { // 20 packets in all: they fit into the socket's buffer
					if _, err := io.WriteString(conn, packet.String()); err != nil {
						t.Fatal(err)
					}
					packet.Reset()
				}
			}
			all := fmt.Sprintf(test.series, "*")
			testenv.Within(t, graphitePatience, "all counts in Graphite", func() bool {
				_, _, sum := points(g, all)
				return sum == 2*keys
			})
			_, before, _ := points(g, test.beat)
			testenv.Within(t, graphitePatience, "three seconds more", func() bool {
				_, now, _ := points(g, test.beat)
				return now >= before+3
			})
			testenv.Within(t, graphitePatience, "one point of 2 for each key, and no more", func() bool {
				series, n, sum := points(g, all)
				return series == keys && n == keys && sum == 2*keys
			})
			checkArchive(t, g.File(fmt.Sprintf(test.series, "q=1")), sum)
			checkArchive(t, g.File(test.beat), average)
		})
	}
}

// The constants are Whisper's numbers of the ways to make coarser points.
const (
	average = 1
	sum     = 2
)

// checkArchive checks that a file keeps an hour of seconds.
func checkArchive(t *testing.T, path string, method uint32) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	var head struct {
		Method, Seconds         uint32
		Filled                  float32
		Archives                uint32
		Offset, Step, Retention uint32
	}
	if err := binary.Read(f, binary.BigEndian, &head); err != nil {
		t.Errorf("%s: %v", path, err)
	}
	if head.Method != method || head.Filled != 0 || head.Archives != 1 || head.Step != 1 || head.Retention != 3600 {
		t.Errorf("%s: %+v, want one archive of 3600 points of a second, method %d, xFilesFactor 0", path, head, method)
	}
}

// The files agree on each other's addresses, as they stand.
func TestGraphiteFilesAgree(t *testing.T) {
	for _, test := range []struct{ file, says, other, asks string }{
		{"statsd/config.js", `graphitePort: (\d+)`, "graphite/carbon.conf", `LINE_RECEIVER_PORT = (\d+)`},
		{"statsd/config.js", `graphiteHost: "([^"]+)"`, "graphite/carbon.conf", `LINE_RECEIVER_INTERFACE = (\S+)`},
		{"graphite/local_settings.py", `CARBONLINK_HOSTS = \['[^:]+:(\d+)'\]`, "graphite/carbon.conf", `CACHE_QUERY_PORT = (\d+)`},
		{"graphite/local_settings.py", `CARBONLINK_HOSTS = \['([^:]+):`, "graphite/carbon.conf", `CACHE_QUERY_INTERFACE = (\S+)`},
		{"graphite/local_settings.py", `WHISPER_DIR = '([^']+)`, "graphite/carbon.conf", `LOCAL_DATA_DIR = (\S+)/`},
		{"hotparam-graphite.yaml", `url: "?http://([^"\s]+)`, "graphite/gunicorn.conf.py", `bind = '([^']+)'`},
		{"hotparam-graphite.yaml", `addresses: \["?[^:]+:(\d+)`, "statsd/config.js", `(?m)^ *port: (\d+)`},
	} {
		if says, asks := find(t, test.file, test.says), find(t, test.other, test.asks); says != asks {
			t.Errorf("%s says %s, %s says %s", test.file, says, test.other, asks)
		}
	}
	if got := find(t, "graphite/storage-schemas.conf", `(?m)^\[statsd\](?:\n.+)*\nretentions = (\d+)s`) + "000"; got != find(t, "statsd/config.js", `flushInterval: (\d+)`) {
		t.Errorf("carbon's finest points are of %s ms, StatsD flushes otherwise", got)
	}
}

func find(t *testing.T, file, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatalf("%s has no %s", file, strings.TrimSpace(pattern))
	}
	return m[1]
}
