package statsdsource

import (
	"net"
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// Packets that the system drops because no one reads them are all counted, and make counts
// unknown.
func TestDroppedPacketsAreCounted(t *testing.T) {
	l, err := listenStatsD(t.Context(), []string{"127.0.0.1:0"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	r := l.packets[0]
	if err := r.socket.setReadBuffer(1); err != nil { // the least that there is
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", l.addrs[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const packets = 2000
	packet := make([]byte, 1000)
	for range packets {
		if _, err := conn.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	rules := testRules(hotRule("terms", 1, time.Second))
	d := decode.NewDecoder(rules, wire.Plain)
	shards := aggregator.NewShards(aggregator.DetectorConfig{Rules: rules, Publisher: newRecorder()}, 1, 1)
	out := &recordedFeed{Feed: shards.Feed(0), sums: make(map[string]int64)}
	out.Begin()
	d.Packet([]byte("any:1|c"), time.Now(), out) // from a sender that does not number its packets
	taken := int64(0)
	for began := time.Now(); taken+l.stats.Dropped.Load() < packets && time.Since(began) < time.Minute; {
		r.check(d, time.Now(), out)
		n, _ := r.receiver.read()
		taken += int64(n)
	}
	if dropped := l.stats.Dropped.Load(); taken+dropped != packets || dropped == 0 {
		t.Errorf("%d were taken, %d dropped of %d", taken, dropped, packets)
	}
	if len(out.lost) == 0 {
		t.Error("no loss was reported")
	}
}
