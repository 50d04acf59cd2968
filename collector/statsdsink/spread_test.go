package statsdsink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// A key's home does not depend on the order of the list. Homes are spread evenly, and an added
// address takes its share and moves no other keys.
func TestRendezvous(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9.]{1,12}:[1-9][0-9]{0,4}`), 2, 9, rapid.ID).Draw(t, "nodes")
		last := len(nodes) - 1
		few, many, mixed := newRendezvous(nodes[:last]), newRendezvous(nodes), slices.Clone(nodes)
		mixed = rapid.Permutation(mixed).Draw(t, "mixed")
		other := newRendezvous(mixed)
		const keys = 4000
		took := make([]int, len(nodes))
		for i := range keys {
			key := fmt.Appendf(nil, "GET%%20/search?q=%d", i)
			was, is := few.pick(key), many.pick(key)
			if mixed[other.pick(key)] != nodes[is] {
				t.Fatalf("%s is at %s, and in another order at %s", key, nodes[is], mixed[other.pick(key)])
			}
			if is != was && is != last {
				t.Fatalf("%s moved from %s to %s when %s came", key, nodes[was], nodes[is], nodes[last])
			}
			took[is]++
		}
		for i, n := range took {
			if even := keys / len(nodes); n < even*3/4 || n > even*5/4 {
				t.Fatalf("%s has %d of %d keys, want about %d", nodes[i], n, keys, even)
			}
		}
	})
}

// The address of a key must never change, since all instances must agree on it, whatever their
// version.
func TestRendezvousGolden(t *testing.T) {
	nodes := []string{"10.0.0.1:8125", "10.0.0.2:8125", "10.0.0.3:8125"}
	r := newRendezvous(nodes)
	got := ""
	for i := range 24 {
		got += fmt.Sprint(r.pick(fmt.Appendf(nil, "GET%%20/search?q=%d", i)))
	}
	if want := "002201021210012021220010"; got != want {
		t.Errorf("homes %s, want %s", got, want)
	}
}

// spreadTo returns a sink that sends to n fakes.
func spreadTo(t testing.TB, spread string, rules *rules.Rules, n int) (*sink, []*packets) {
	t.Helper()
	c := Config{Rules: rules, Spread: spread, Instance: "api-1"}
	var fakes []*packets
	var senders []Sender
	for i := range n {
		c.Addrs = append(c.Addrs, fmt.Sprintf("10.0.0.%d:8125", i+1))
		fakes = append(fakes, &packets{})
		senders = append(senders, fakes[i])
	}
	s := newWithSenders(senders, c)
	return s, fakes
}

// received returns the sum for each line's name, and the metas of the packets.
func received(t interface{ Fatalf(string, ...any) }, packets []string) (counts map[string]int64, metas []wire.Meta) {
	counts = make(map[string]int64)
	for _, p := range packets {
		for i, text := range strings.Split(p, "\n") {
			if i == 0 {
				m, err := wire.ParseMeta([]byte(text))
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				metas = append(metas, m)
				continue
			}
			l, err := wire.ParseLine([]byte(text))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			counts[string(l.Prefix)+" "+string(l.Key)] += l.N
		}
	}
	return counts, metas
}

// wholeRules returns one rule whose keys may be anywhere and one whose keys must be in one place.
func wholeRules() *rules.Rules {
	return &rules.Rules{Namespace: "shop", Rules: []rules.Rule{
		{ID: "each"}, {ID: "whole", By: rules.By{Kind: rules.ByCombinations}},
	}}
}

// Over any flushes, all counts of a key go to one address, and so do all keys of a rule that is
// compared. Each address receives its own sequence without gaps. The bounds of dropped counts go to
// all addresses, and their sums to one. All addresses receive the bounds of held-back counts. No
// address waits for a packet for longer than a second and a flush.
func TestSpreadByHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "addresses")
		s, fakes := spreadTo(new(testing.T), SpreadHash, wholeRules(), n)
		want := make(map[string]int64)
		start := time.Unix(1_700_000_000, 0)
		last, spoke := make([]time.Time, n), make([]bool, n)
		for i := range last {
			last[i] = start
		}
		seen := make([]int, n)
		var unsent, aged, sum, packetsSent int64
		for range rapid.IntRange(1, 60).Draw(t, "flushes") {
			start = start.Add(base.FlushInterval)
			f := collector.Flush{Start: start, Held: int64(rapid.SampledFrom([]int{1, 1, 1, 4}).Draw(t, "h"))}
			if rapid.IntRange(0, 9).Draw(t, "dropped") == 0 {
				f.Unsent, f.Aged = 3, 5
				unsent, aged = unsent+3, aged+5
			}
			var counts []collector.Count
			for range rapid.IntRange(1, 3).Draw(t, "counts") {
				rule := rapid.SampledFrom([]string{"each", "whole"}).Draw(t, "rule")
				text := fmt.Sprint("GET /", rapid.IntRange(0, 5).Draw(t, "key"))
				counts = append(counts, count(rule, text, 2))
				want["shop."+rule+" "+string(wire.Plain.Append(nil, []byte(text)))] += 2
				sum += 2
			}
			sent := s.Send(context.Background(), f, counts)
			if sent.Failed != 0 || sent.Err != nil || int(sent.Lines) != len(counts) {
				t.Fatalf("%+v", sent)
			}
			packetsSent += sent.Packets
			for i, fake := range fakes {
				got, metas := received(t, fake.all[seen[i]:])
				seen[i] = len(fake.all)
				if len(metas) == 0 {
					if spoke[i] || f.Unsent > 0 {
						t.Fatalf("address %d was told nothing after counts, or of what was dropped", i)
					}
				} else {
					last[i] = start
				}
				if start.Sub(last[i]) > time.Second {
					t.Fatalf("address %d was told nothing for %v", i, start.Sub(last[i]))
				}
				spoke[i] = len(got) > 0
				if known := fake.all[len(fake.all)-1]; !strings.Contains(known, fmt.Sprintf(",h:%d,", f.Held)) {
					t.Fatalf("h is %d, and address %d was told %q", f.Held, i, known)
				}
			}
		}
		packets, wholes, agedTold := 0, 0, int64(0)
		for i, fake := range fakes {
			got, metas := received(t, fake.all)
			packets += len(metas)
			here := int64(0)
			for at, m := range metas {
				if m.Seq != uint64(at+1) {
					t.Fatalf("address %d: number %d in place %d", i, m.Seq, at)
				}
				here += m.Unsent
				agedTold += m.Aged
			}
			if here != unsent {
				t.Fatalf("address %d was told of %d dropped, want %d", i, here, unsent)
			}
			whole := 0
			for name, n := range got {
				if n != want[name] {
					t.Fatalf("%s: %d at address %d, want %d", name, n, i, want[name])
				}
				delete(want, name)
				sum -= n
				if strings.HasPrefix(name, "shop.whole ") {
					whole = 1
				}
			}
			wholes += whole
		}
		if len(want) > 0 || sum != 0 || wholes > 1 || agedTold != aged || int(packetsSent) != packets {
			t.Fatalf("%v missing, %d counts too few, one rule at %d addresses, aged %d of %d, %d packets of %d", want, sum, wholes, agedTold, aged, packetsSent, packets)
		}
	})
}

// A flush without counts sends a packet to each address.
func TestSpreadHeartbeatGoesToAll(t *testing.T) {
	s, fakes := spreadTo(t, SpreadHash, wholeRules(), 3)
	for i := range 3 {
		if sent := s.Send(t.Context(), collector.Flush{Start: time.Unix(int64(i), 0), Held: 1}, nil); sent != (collector.Sent{Packets: 3}) {
			t.Errorf("%+v", sent)
		}
	}
	for i, fake := range fakes {
		if len(fake.all) != 3 {
			t.Errorf("address %d got %d packets, want 3", i, len(fake.all))
		}
	}
}

// Origins go to the address of their key.
func TestOriginsFollowTheirKeys(t *testing.T) {
	s, fakes := spreadTo(t, SpreadHash, wholeRules(), 3)
	var counts []collector.Count
	var origins []collector.KeyOrigin
	for i := range 30 {
		c := count([]string{"each", "whole"}[i%2], fmt.Sprint("GET /search?q=", i), 1)
		counts = append(counts, c)
		origins = append(origins, collector.KeyOrigin{Rule: c.Rule, Text: c.Text, Kind: wire.Route, Name: []byte("r"), N: 1})
	}
	s.Send(t.Context(), collector.Flush{Start: time.Unix(1, 0), Held: 2}, counts)
	sent := s.SendOrigins(t.Context(), time.Unix(2, 0), origins)
	if sent.Lines != 30 || sent.Err != nil {
		t.Errorf("%+v", sent)
	}
	for i, fake := range fakes {
		var keys, of []string
		for _, packet := range fake.all {
			if strings.Contains(packet, "hot_origin") && !strings.Contains(packet, ",w:2000000000,") {
				t.Errorf("a packet of origins does not tell when it was sent: %q", packet)
			}
			for line := range strings.SplitSeq(packet, "\n") {
				if name, _, ok := strings.Cut(line, ":1|c|#r:r"); ok {
					of = append(of, strings.Replace(name, ".hot_origin.", ".hot_param.", 1))
				} else if name, _, ok := strings.Cut(line, ":1|c"); ok && !wire.IsMeta([]byte(line)) {
					keys = append(keys, name)
				}
			}
		}
		if len(keys) == 0 || !slices.Equal(keys, of) {
			t.Errorf("address %d has counts of\n%q\nand origins of\n%q", i, keys, of)
		}
	}
}

// Everything goes to all addresses. Counts have failed if no address took them. An address that
// takes nothing is reported in both cases.
func TestSpreadToAll(t *testing.T) {
	s, fakes := spreadTo(t, SpreadAll, statsdRules(), 3)
	counts := []collector.Count{count("terms", "a", 5), count("article", "b", 7)}
	away := errors.New("away")
	for i, test := range []struct {
		away []int
		want collector.Sent
	}{
		{nil, collector.Sent{Lines: 2, Packets: 3}},
		{[]int{1}, collector.Sent{Lines: 2, Packets: 3, Err: away}},
		{[]int{0, 1, 2}, collector.Sent{Packets: 3, Failed: 12, Err: away}},
		{nil, collector.Sent{Lines: 2, Packets: 3}},
	} {
		for at, fake := range fakes {
			if fake.err = nil; slices.Contains(test.away, at) {
				fake.err = away
			}
		}
		if got := s.Send(t.Context(), collector.Flush{Start: time.Unix(int64(i), 0), Held: 1}, counts); got != test.want {
			t.Errorf("%v away: %+v, want %+v", test.away, got, test.want)
		}
	}
	if len(fakes[0].all) != 3 || !slices.Equal(fakes[0].all, fakes[2].all) || len(fakes[1].all) != 2 {
		t.Errorf("packets: %q, %q, %q", fakes[0].all, fakes[1].all, fakes[2].all)
	}
}

// With SpreadHash an unreachable address fails only its own counts. It is reported in each flush
// until it takes packets again, so that the log has one line per outage.
func TestSpreadOneAddressAway(t *testing.T) {
	s, fakes := spreadTo(t, SpreadHash, wholeRules(), 2)
	var mine, other collector.Count
	for i := 0; mine.N == 0 || other.N == 0; i++ {
		text := fmt.Sprint("k", i)
		if s.homes.pick([]byte(text)) == 0 {
			mine = count("each", text, 5)
		} else {
			other = count("each", text, 7)
		}
	}
	start := time.Unix(1, 0)
	send := func(counts ...collector.Count) collector.Sent {
		start = start.Add(10 * time.Millisecond)
		return s.Send(t.Context(), collector.Flush{Start: start, Held: 1}, counts)
	}
	send() // both have received it
	fakes[0].err = errors.New("away")
	if got, want := send(mine, other), (collector.Sent{Lines: 1, Packets: 2, Failed: 5, Err: fakes[0].err}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	send(other) // the first learns that nothing more comes
	if got, want := send(other), (collector.Sent{Lines: 1, Packets: 1, Err: fakes[0].err}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	fakes[0].err = nil
	if got, want := send(mine, other), (collector.Sent{Lines: 2, Packets: 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Over real sockets, an address that cannot be resolved and one without a listener cost the third
// one nothing.
func TestSpreadOverSockets(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	closed, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addrs := []string{"no such host:8125", closed.LocalAddr().String(), conn.LocalAddr().String()}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for _, spread := range []string{SpreadHash, SpreadAll} {
		s, err := New(Config{Rules: statsdRules(), Addrs: addrs, Spread: spread})
		if err != nil {
			t.Fatal(err)
		}
		var counts []collector.Count
		want := int64(0)
		for i := range 90 {
			c := count("terms", fmt.Sprint("GET /search?q=", i), 1)
			counts = append(counts, c)
			if spread == SpreadAll || s.(*sink).homes.pick(wire.Plain.Append(nil, c.Text)) == 2 {
				want += 10
			}
		}
		lines := int64(0)
		for range 10 {
			lines += s.Send(t.Context(), collector.Flush{Start: time.Now(), Held: 1}, counts).Lines
		}
		if lines < want {
			t.Errorf("%v: %d lines were sent, want %d at least", spread, lines, want)
		}
		buf := make([]byte, 2*wire.MaxPacket)
		for got := int64(0); got < want; {
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			n, _, err := conn.ReadFrom(buf)
			if err != nil {
				t.Fatalf("%v: %d of %d lines came: %v", spread, got, want, err)
			}
			got += int64(strings.Count(string(buf[:n]), ".hot_param."))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkStatsDSendSpread(b *testing.B) {
	counts := make([]collector.Count, 1000)
	for i := range counts {
		counts[i] = count("terms", fmt.Sprint("GET /search?q=", i), int64(i))
	}
	for _, spread := range []string{SpreadHash, SpreadAll} {
		b.Run(spread, func(b *testing.B) {
			c := Config{Rules: statsdRules(), Spread: spread, Instance: "i", Addrs: []string{"a:1", "b:1", "c:1"}}
			s := newWithSenders([]Sender{discard{}, discard{}, discard{}}, c)
			b.ReportAllocs()
			for b.Loop() {
				s.Send(context.Background(), collector.Flush{Held: 1}, counts)
			}
			b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
