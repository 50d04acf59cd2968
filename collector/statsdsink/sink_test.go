package statsdsink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// packets is a Sender that keeps packets, or fails with err.
type packets struct {
	all    []string
	err    error
	closed bool
}

func (p *packets) Send(packet []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	p.all = append(p.all, string(packet))
	return len(packet), nil
}

func (p *packets) Close() error {
	p.closed = true
	return nil
}

func statsdRules() *rules.Rules {
	return &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{ID: "terms"}, {ID: "article", Prefix: "shop"}}}
}

func newSink(t testing.TB, c Config) *sink {
	t.Helper()
	c.Rules, c.Instance = statsdRules(), "api-1"
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*sink)
}

func count(rule, text string, n int64) collector.Count {
	return collector.Count{Rule: []byte(rule), Text: []byte(text), N: n}
}

func TestStatsDGolden(t *testing.T) {
	start := time.Unix(1_700_000_000, 100_000_000)
	counts := []collector.Count{
		count("article", "b=2&q=1", 1),
		count("terms", "GET /search?q=a.b", 20),
	}
	for _, test := range []struct {
		name   string
		config Config
		want   string
	}{
		{"plain", Config{}, "hotparam.meta:1|c|#v:1,i:api-1,e:abc,s:1,t:1700000000100000000,h:1,u:7,w:1700000000200000000,b:0.0.0.0.0.0.0\n" +
			"shop.hot_param.b=2&q=1:1|c\nshop.terms.hot_param.GET%20/search?q=a%2Eb:20|c"},
		{"strict, for a StatsD that is not ours", Config{Strict: true, NoMeta: true},
			"shop.hot_param.b=2_26q=1:1|c\nshop.terms.hot_param.GET_20_2Fsearch_3Fq=a_2Eb:20|c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := &packets{}
			test.config.Sender = out
			s := newSink(t, test.config)
			s.packers[0].head.Incarnation = 0xabc
			sent := s.Send(t.Context(), collector.Flush{Start: start, Now: start.Add(100 * time.Millisecond), Held: 1, Unsent: 7}, counts)
			if len(out.all) != 1 || out.all[0] != test.want {
				t.Errorf("sent\n%q\nwant\n%q", out.all, test.want)
			}
			if want := (collector.Sent{Lines: 2, Packets: 1}); sent != want {
				t.Errorf("%+v, want %+v", sent, want)
			}
			if err := s.Close(); err != nil || !out.closed {
				t.Errorf("close: %v, %v", err, out.closed)
			}
		})
	}
}

// Packets have a bounded size. Each begins with a meta line, and these are numbered without gaps.
// Unsent counts are stated once. Every count is in a packet, too long for any packet, or reported
// as failed.
func TestStatsDPacketsHoldEveryCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		out := &packets{}
		meta := rapid.Bool().Draw(t, "meta")
		e := rapid.SampledFrom([]wire.Encoding{wire.Plain, wire.Strict}).Draw(t, "encoding")
		s, err := New(Config{Rules: statsdRules(), Sender: out, Strict: e == wire.Strict, NoMeta: !meta, Instance: "i"})
		if err != nil {
			t.Fatal(err)
		}
		var seq uint64
		for f := range rapid.IntRange(1, 6).Draw(t, "flushes") {
			out.all, out.err = nil, nil
			if rapid.IntRange(0, 5).Draw(t, "broken") == 0 {
				out.err = errors.New("broken")
			}
			var counts []collector.Count
			var sum int64
			for range rapid.IntRange(0, 40).Draw(t, "counts") {
				text := strings.Repeat(rapid.SampledFrom([]string{"a", "%", "/"}).Draw(t, "byte"), rapid.IntRange(1, 1500).Draw(t, "length"))
				n := rapid.Int64Range(1, 1000).Draw(t, "n")
				counts = append(counts, count("terms", text, n))
				sum += n
			}
			unsent := rapid.Int64Range(0, 1).Draw(t, "unsent") * 9
			sent := s.Send(context.Background(), collector.Flush{Start: time.Unix(int64(f), 0), Held: 1, Unsent: unsent}, counts)
			var arrived, reported, lines int64
			for _, packet := range out.all {
				if len(packet) > wire.MaxPacket {
					t.Fatalf("a packet of %d bytes", len(packet))
				}
				for i, line := range bytes.Split([]byte(packet), []byte("\n")) {
					if meta && i == 0 {
						m, err := wire.ParseMeta(line)
						if err != nil || m.Seq != seq+1 || m.Start != int64(f)*1e9 {
							t.Fatalf("meta line %q after number %d: %v", line, seq, err)
						}
						seq = m.Seq
						reported += m.Unsent
						continue
					}
					l, err := wire.ParseLine(line)
					if err != nil {
						t.Fatalf("%q: %v", line, err)
					}
					arrived += l.N
					lines++
				}
			}
			if out.err != nil {
				seq = s.(*sink).packers[0].head.Seq // numbers of packets that failed are gaps to the receiver
				if sent.Packets > 0 && sent.Err == nil {
					t.Fatal("the failure was not reported")
				}
			} else if meta && reported != unsent {
				t.Fatalf("%d reported as unsent, want %d", reported, unsent)
			}
			if arrived+sent.TooLong+sent.Failed != sum || lines != sent.Lines || out.err == nil && (sent.Failed != 0 || int(sent.Packets) != len(out.all)) {
				t.Fatalf("%d arrived of %d, in %d lines and %d packets: %+v", arrived, sum, lines, len(out.all), sent)
			}
		}
	})
}

// A text that was cut to fit is never too long for a packet.
func TestStatsDFittedTextsFitAPacket(t *testing.T) {
	for _, e := range []wire.Encoding{wire.Plain, wire.Strict} {
		out := &packets{}
		s := newSink(t, Config{Sender: out, Strict: e == wire.Strict})
		s.packers[0].head.Instance = bytes.Repeat([]byte("i"), wire.MaxInstance)
		s.packers[0].head.Incarnation, s.packers[0].head.Seq = 1<<64-1, 1<<63
		s.rules[strings.Repeat("r", 64)] = &sinkRule{prefix: strings.Repeat("n", 64) + "." + strings.Repeat("r", 64), home: s.packers[0]}
		p := s.packers[0] // with all the sums that it can state
		p.mark, p.byRule = 1<<32-1, slices.Repeat([]uint64{1 << 60}, 2*wire.MaxRuleSums)
		p.stated = make([]uint64, len(p.byRule))
		for i := range wire.MaxRuleSums {
			p.places = append(p.places, i)
		}
		for _, b := range []string{"a", "%", "\x00"} {
			p.buckets.setRules(p.buckets.mark + 1)
			for i := range p.buckets.sums {
				p.buckets.sums[i] = 1 << 31
			}
			text := s.Fit(bytes.Repeat([]byte(b), 5000))
			sent := s.Send(t.Context(), collector.Flush{Start: time.Now(), Held: wire.MaxCount, Unsent: wire.MaxCount},
				[]collector.Count{{Rule: bytes.Repeat([]byte("r"), 64), Text: text, N: 1<<32 - 1}})
			if sent.TooLong != 0 || sent.Lines != 1 {
				t.Errorf("%v: a fitted text of %q gives %+v", e, b, sent)
			}
		}
	}
}

type discard struct{}

func (discard) Send(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error               { return nil }

func TestStatsDTellsAnAddressThatCannotBeResolved(t *testing.T) {
	s := newSink(t, Config{Addrs: []string{"no such host:8125"}})
	for range 2 { // the second does not dial again, and still reports why
		if sent := s.Send(t.Context(), collector.Flush{Held: 1}, []collector.Count{count("terms", "k", 5)}); sent.Failed != 5 || sent.Err == nil {
			t.Errorf("%+v", sent)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewStatsDRefusesBadConfigs(t *testing.T) {
	for _, test := range []struct {
		config Config
		want   string
	}{
		{Config{Addrs: []string{"a:1"}}, "Rules"},
		{Config{Rules: statsdRules()}, "Addrs or Sender"},
		{Config{Rules: statsdRules(), Addrs: []string{"a:1"}, Sender: discard{}}, "Addrs or Sender"},
		{Config{Rules: statsdRules(), Addrs: []string{"nonsense"}}, "host:port"},
		{Config{Rules: statsdRules(), Addrs: []string{"a:1"}, Instance: "a b"}, "Instance"},
		{Config{Rules: statsdRules(), Addrs: []string{"a:1", "b:1", "a:1"}}, "twice"},
		{Config{Rules: statsdRules(), Addrs: []string{"a:1"}, Spread: "both"}, "Spread"},
	} {
		if _, err := New(test.config); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("New gives %v, want an error about %s", err, test.want)
		}
	}
	if s, err := New(Config{Rules: statsdRules(), Addrs: []string{"a:1"}}); err != nil || !wire.ValidInstance(s.(*sink).packers[0].head.Instance) {
		t.Errorf("the default instance: %v", err)
	}
}

func BenchmarkStatsDSend(b *testing.B) {
	counts := make([]collector.Count, 1000)
	for i := range counts {
		counts[i] = count("terms", fmt.Sprint("GET /search?q=", i), int64(i))
	}
	s := newSink(b, Config{Sender: discard{}})
	b.ReportAllocs()
	for b.Loop() {
		s.Send(context.Background(), collector.Flush{Held: 1}, counts)
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

// A key that is not valid has no rule to be sent under. Its counts are dropped, and the drop is
// counted.
func TestBytesThatAreNoKeyAreCountedAsDropped(t *testing.T) {
	out := &packets{}
	c, err := collector.New(collector.Config{Sink: newSink(t, Config{Sender: out})})
	if err != nil {
		t.Fatal(err)
	}
	member := []byte("no-rule-and-no-space")
	c.Add(rules.Hash(member), member, 7)
	c.Flush(t.Context(), time.Now())
	if s := c.Stats(); s.Dropped.SendError != 7 || s.Counts != 0 || len(out.all) != 1 || strings.Contains(out.all[0], "no-rule") {
		t.Errorf("%+v, %d packets", s, len(out.all))
	}
}

// Counts with another start have their own packet, which states that start. Dropped counts are
// stated in a packet with the flush's own start. A flush without counts still sends a packet.
func TestStatsDPacketsKeepToOneStart(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	part := func(text string, n int64, age time.Duration) collector.Count {
		c := count("terms", text, n)
		c.Start = start.Add(-age)
		return c
	}
	meta := func(seq int, age time.Duration, rest string) string {
		return fmt.Sprintf("hotparam.meta:1|c|#v:1,i:api-1,e:abc,s:%d,t:%d,h:3,u:%s", seq, start.Add(-age).UnixNano(), rest)
	}
	for _, test := range []struct {
		name   string
		flush  collector.Flush
		counts []collector.Count
		want   []string
	}{
		{"old, older and new ones", collector.Flush{Start: start, Held: 3, Unsent: 7, Aged: 9},
			[]collector.Count{part("a", 1, 2*time.Second), part("b", 2, time.Second), part("c", 1, time.Second), part("d", 4, 0), count("terms", "b", 5)},
			[]string{meta(1, 2*time.Second, "0,b:0.0.0.0.0.77359400.0") + "\nshop.terms.hot_param.a:1|c",
				meta(2, time.Second, "0,b:0.1.0.0.0.3b9aca00.0") + "\nshop.terms.hot_param.b:2|c\nshop.terms.hot_param.c:1|c",
				meta(3, 0, "7,a:9,b:0.4.0.0.0.0.0") + "\nshop.terms.hot_param.d:4|c\nshop.terms.hot_param.b:5|c"}},
		{"old ones alone", collector.Flush{Start: start, Held: 3, Aged: 9}, []collector.Count{part("a", 1, time.Second)},
			[]string{meta(1, time.Second, "0,b:0.0.0.0.0.3b9aca00.0") + "\nshop.terms.hot_param.a:1|c", meta(2, 0, "0,a:9,b:0.1.0.0.0.0.0")}},
		{"old ones, and nothing to tell", collector.Flush{Start: start, Held: 3}, []collector.Count{part("a", 1, time.Second)},
			[]string{meta(1, time.Second, "0,b:0.0.0.0.0.3b9aca00.0") + "\nshop.terms.hot_param.a:1|c"}},
		{"none", collector.Flush{Start: start, Held: 3}, nil, []string{meta(1, 0, "0,b:0.0.0.0.0.0.0")}},
	} {
		for _, plain := range []bool{false, true} {
			out := &packets{}
			s := newSink(t, Config{Sender: out, NoMeta: plain})
			s.packers[0].head.Incarnation = 0xabc
			want := test.want
			if plain { // the same lines, in one packet if there are any
				var lines []string
				for _, packet := range test.want {
					lines = append(lines, strings.Split(packet, "\n")[1:]...)
				}
				want = nil
				if len(lines) > 0 {
					want = []string{strings.Join(lines, "\n")}
				}
			}
			sent := s.Send(t.Context(), test.flush, test.counts)
			if strings.Join(out.all, "\n\n") != strings.Join(want, "\n\n") {
				t.Errorf("%s, plain %v: sent\n%q\nwant\n%q", test.name, plain, out.all, want)
			}
			if sent.Lines != int64(len(test.counts)) || sent.Packets != int64(len(want)) {
				t.Errorf("%s, plain %v: %+v", test.name, plain, sent)
			}
		}
	}
}
