package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

// A daemon accepts lines at all addresses of its file, over any transport.
func TestAggregatorListens(t *testing.T) {
	// The test's own directory may have a name that is too long for a socket.
	dir, err := os.MkdirTemp("", "hotparam")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := startDaemon(t, "--redis", "redis://"+unreachable(t), "--config", write(t, goodRules+fmt.Sprintf(
		"aggregator: {listen: ['127.0.0.1:0', 'tcp://127.0.0.1:0', 'unix://%[1]s/packets', 'unixstream://%[1]s/lines']}\n", dir)))
	addresses := d.find(`statsd=(\S+)`)
	n := 0
	for s := range strings.SplitSeq(addresses, ",") {
		a, err := wire.ParseAddress(s)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial(a.Network, a.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		n++
		if _, err := fmt.Fprintf(conn, "shop.search-terms.hot_param.GET%%20/search?q=%d:%d|c\n_e{1,1}:a|b\n", n, n); err != nil {
			t.Fatal(err)
		}
	}
	if n != 4 {
		t.Fatalf("it listens at %s, want four addresses", addresses)
	}
	eventually(t, d.serves(
		"hotparam_statsd_counted_total 10", "hotparam_statsd_counts_total 4", "hotparam_statsd_events_total 4",
		"hotparam_statsd_connections 2", "hotparam_statsd_accepted_connections_total 2",
	))
	if code := d.end(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if left, err := filepath.Glob(dir + "/*"); err != nil || len(left) > 0 {
		t.Errorf("sockets that are left: %q, %v", left, err)
	}
}

// An instance of a version that does not state when it sends is named if its clock is slow, since
// its counts go missing.
func TestLateInstanceIsNamed(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	d := startDaemon(t, "--redis", server.URL(), "--config", write(t, goodRules+"aggregator: {listen: '127.0.0.1:0'}\n"))
	conn, err := net.Dial("udp", strings.TrimPrefix(d.find(`statsd=(\S+)`), "udp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, d.is("ready"))
	seq := uint64(0)
	eventually(t, func() error {
		seq++
		packet := wire.AppendMeta(nil, wire.Meta{Instance: []byte("api-2"), Incarnation: 1, Seq: seq, Start: time.Now().Add(-time.Hour).UnixNano(), Held: 1})
		if _, err := fmt.Fprintf(conn, "%s\nshop.search-terms.hot_param.GET%%20/search?q=1:1|c\n", packet); err != nil {
			return err
		}
		return d.is("ready; counts of 1 instance come late, those of api-2 by 1h0m0s: are they delayed on the network, or is the clock there slow?")()
	})
	eventually(t, d.serves("hotparam_statsd_senders 1", "hotparam_statsd_late_senders 1"))
	if metrics := d.get("/metrics"); strings.Contains(metrics, "\nhotparam_late_counts_total 0\n") {
		t.Error("no count was late")
	}
}

// Instances with wrong clocks are counted together with those with right ones, and each is named
// once.
func TestOffClocksAreNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	d := startDaemon(t, "--redis", server.URL(), "--config", write(t, "namespace: shop\naggregator: {listen: '127.0.0.1:0'}\nrules: [{id: terms, match: {route: 'GET /search'}, by: [q], hot: 120/s}]\n"))
	conn, err := net.Dial("udp", strings.TrimPrefix(d.find(`statsd=(\S+)`), "udp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	clocks := map[string]time.Duration{"slow": -4 * time.Second, "fast": 4 * time.Second, "slower": -time.Hour, "faster": time.Hour}
	for i := range 6 {
		clocks[fmt.Sprint("right-", i)] = 0
	}
	seq, start := uint64(0), time.Now()
	flush := func(counts bool) { // of 50 a second, however slow: no two instances alone have 120
		t.Helper()
		time.Sleep(20 * time.Millisecond)
		seq++
		now := time.Now()
		for name, ahead := range clocks {
			m := wire.Meta{Instance: []byte(name), Incarnation: 1, Seq: seq, Start: start.Add(ahead).UnixNano(), Sent: now.Add(ahead).UnixNano(), Held: 1}
			packet := wire.AppendMeta(nil, m)
			if counts && (ahead != 0 || name == "right-0") {
				packet = fmt.Appendf(packet, "\nshop.terms.hot_param.GET%%20/search?q=a:%d|c", max(1, now.Sub(start)/(20*time.Millisecond)))
			}
			if _, err := conn.Write(packet); err != nil {
				t.Fatal(err)
			}
		}
		start = now
	}
	eventually(t, func() error { // in a second or so all clocks are known
		flush(false)
		return d.serves("hotparam_statsd_off_clocks 4", "hotparam_statsd_senders 10")()
	})
	eventually(t, func() error {
		flush(true)
		return d.serves("hotparam_hot_keys 1", "hotparam_late_counts_total 0", "hotparam_statsd_late_senders 0")()
	})
	eventually(t, func() error {
		flush(true)
		return d.is("ready; the clock of 4 instances is off, that of slower is 1h0m0s slow: run chrony or another NTP client there; the times of its counts are corrected")()
	})
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); { // two more times the clocks are looked at
		flush(true)
	}
	log := d.log.String()
	for _, words := range []string{`instance=slow by="4s slow"`, `instance=fast by="4s fast"`, `instance=slower by="1h0m0s slow"`, `instance=faster by="1h0m0s fast"`} {
		if n := strings.Count(log, words); n != 1 {
			t.Errorf("the log has %q %d times, want once", words, n)
		}
	}
	if n := strings.Count(log, `msg="the clock`); n != 4 {
		t.Errorf("the log speaks %d times of clocks:\n%s", n, log)
	}
}

// If the directory for snapshots does not exist, that is an error of the settings.
func TestNoDirectoryForSnapshots(t *testing.T) {
	file := write(t, goodRules+"aggregator: {snapshot_file: "+filepath.Join(t.TempDir(), "none", "snapshot")+"}\n")
	hotparamCommand(t, "aggregator", "--config", file, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0").exits(t, exitConfig, "aggregator.snapshot_file")
}
