package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

// Malformed packets arrive through all inputs, as fast as possible, for some seconds. The daemon
// survives within its memory bound, and counts both the unreadable packets and each good line
// among them.
func TestFloodOfMalformedPackets(t *testing.T) {
	f := newFleet(t, quickCommands(t), searchRule)
	f.memory = "4MB"
	port, dir := testenv.FreePort(t), t.TempDir()
	addresses := []string{
		fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("tcp://127.0.0.1:%d", port),
		"unix://" + filepath.Join(dir, "packets"), "unixstream://" + filepath.Join(dir, "lines"),
	}
	daemon := f.startAggregator("--listen", strings.Join(addresses, ","))
	apis := f.startAPIs(1)

	// UDP packets can be dropped, so only the good lines sent the other ways must all be counted.
	over := make(chan struct{})
	var flooding sync.WaitGroup
	var sent, good atomic.Int64
	for i, text := range addresses {
		address, err := wire.ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		flooding.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			var conn net.Conn
			for n := 0; ; n++ {
				select {
				case <-over:
					if conn != nil {
						_ = conn.Close() // the written bytes have arrived
					}
					return
				default:
				}
				if conn == nil {
					if conn, err = net.Dial(address.Network, address.Addr); err != nil {
						t.Error(err)
						return
					}
				}
				packet := nonsense(rnd)
				if address.Network == "udp" {
					packet = packet[:min(len(packet), 65_000)] // the system takes no longer ones
				}
				isGood := address.Network != "udp" && n%10 == 0
				if isGood {
					packet = []byte("shop.search-terms.hot_param.GET%20/search?q=phone:1|c\n")
				}
				if _, err := conn.Write(packet); err != nil {
					t.Errorf("%s: %v", text, err)
					return
				}
				sent.Add(1)
				if isGood {
					good.Add(1)
				}
			}
		})
	}
	f.awaitHot(patience, apis, phone)
	time.Sleep(3 * time.Second)
	close(over)
	flooding.Wait()
	within(t, patience, "all good lines counted", func() bool { return int64(daemon.metric("hotparam_statsd_counted_total")) >= good.Load() })
	if n := int64(daemon.metric("hotparam_statsd_counted_total")); n != good.Load() {
		t.Errorf("counted %d, want the %d good lines alone", n, good.Load())
	}
	rejected := 0.0
	for _, reason := range []string{"malformed", "foreign", "not_counter", "negative", "bad_key", "no_rule"} {
		n := daemon.metric(`hotparam_statsd_rejected_total{reason="` + reason + `"}`)
		if rejected += n; n == 0 {
			t.Errorf("nothing was rejected as %s", reason)
		}
	}
	for _, name := range []string{"hotparam_statsd_events_total", "hotparam_statsd_too_long_total"} {
		if daemon.metric(name) == 0 {
			t.Errorf("%s is 0", name)
		}
	}
	t.Logf("%d packets, %d of them good; %.0f lines rejected, %.0f packets dropped by the system", sent.Load(), good.Load(), rejected, daemon.metric("hotparam_statsd_dropped_packets_total"))
	checkPeak(t, daemon.Process, 128<<20)
}

// nonsense returns a packet that is no valid count and ends in a newline.
func nonsense(rnd *rand.Rand) []byte {
	const head = "shop.search-terms.hot_param."
	lines := []string{
		"", ":", "|", "|c", ":|c", head, head + ":1|c", head + "a", head + "a:", head + "a:1", head + "a:1|", head + "a:x|c",
		head + "a:1|c|@0", head + "a:1|c|@x", head + "a:1e300|c", head + "a[b:1|c", head + "a:NaN|c",
		head + "a:-7|c", head + "a:1|g", head + "a:1|ms|@0.1", head + "%zz:1|c", head + "%4:1|c",
		"shop.other.hot_param.a:1|c", "some.other.metric:1|c|#a:b", "_e{5,4}:title|text", "_sc|disk|0",
		"hotparam.meta:1|c|#v:9,i:x", "hotparam.meta:1|c|#",
	}
	switch rnd.IntN(20) {
	case 0:
		return append([]byte(strings.Repeat("a", 70<<10)), '\n')[rnd.IntN(10<<10):]
	case 1, 2, 3:
		p := make([]byte, 1+rnd.IntN(1400))
		for i := range p {
			p[i] = byte(1 + rnd.IntN(255)) // no lengths
		}
		return append(p, '\n')
	}
	var p []byte
	for range 1 + rnd.IntN(20) {
		p = append(append(p, lines[rnd.IntN(len(lines))]...), '\n')
	}
	return p
}
