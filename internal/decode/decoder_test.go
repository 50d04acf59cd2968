package decode

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/keytext"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// heard is a Handler that records its calls as text.
type heard []string

func (h *heard) Count(c Count) {
	if c.Hash != rules.Hash(c.Text) {
		*h = append(*h, "wrong hash")
	}
	*h = append(*h, fmt.Sprintf("rule %d %q %d %s", c.Rule, c.Text, c.N, at(c.When)))
}

func (h *heard) AddHiddenCounts(when time.Time, n int64) {
	*h = append(*h, fmt.Sprintf("hidden %d %s", n, at(when)))
}

func (h *heard) RecordLoss(when time.Time) { *h = append(*h, "lost "+at(when)) }

func (h *heard) RecordGap(g Gap) {
	*h = append(*h, fmt.Sprintf("gap %d: %d loose, %d booked, %s to %s", g.ID, g.Loose, g.Booked, at(g.From), at(g.To)))
}

func (h *heard) ExcludeFromGap(gap uint64, _ int, _ uint64, known bool) {
	*h = append(*h, fmt.Sprintf("gap %d spares a key, known %v", gap, known))
}

func (h *heard) MoveHealedCount(c Count, from, _ time.Time) {
	*h = append(*h, fmt.Sprintf("moved %d of %s, %s to %s", c.N, c.Text, at(from), at(c.When)))
}

func (h *heard) AddHealedCount(c Count, until time.Time) {
	*h = append(*h, fmt.Sprintf("healed %d of %s, %s to %s", c.N, c.Text, at(c.When), at(until)))
}

func (h *heard) ReduceLoss(newest time.Time) {
	if newest.IsZero() {
		*h = append(*h, "found all")
	} else {
		*h = append(*h, "found all since "+at(newest))
	}
}

func at(t time.Time) string { return t.Sub(noon).String() }

// head returns a meta line of the first incarnation of instance a.
func head(seq uint64, start time.Duration, held, unsent int64) string {
	return string(wire.AppendMeta(nil, wire.Meta{
		Instance: []byte("a"), Incarnation: 1, Seq: seq,
		Start: noon.Add(start).UnixNano(), Held: held, Unsent: unsent,
	}))
}

// timeField returns the field of a line's time.
func timeField(after time.Duration) string { return fmt.Sprintf("|T%d", noon.Add(after).Unix()) }

func TestDecoder(t *testing.T) {
	const line = "shop.terms.hot_param.GET /s?q=1:2|c"
	const told = `rule 0 "GET /s?q=1" 2 `
	for _, test := range []struct {
		name    string
		packets []string
		want    []string
		stats   Stats
	}{
		{"one line", []string{line}, []string{told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1}}},
		{"lines, empty lines, CRLF and a newline at the end", []string{"\n" + line + "\r\n\n\r\n" + line + "\n"}, []string{told + "0s", told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 2, Counts: 2}}},
		{"an empty packet", []string{""}, nil, Stats{Counters: counters{Packets: 1}}},
		{"escapes", []string{"shop.terms.hot_param.a%3A%2e%00%FF:1|c"}, []string{`rule 0 "a:.\x00\xff" 1 0s`},
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1}}},
		{"a prefix of its own", []string{"web.front.hot_param.k:1|c\nshop.custom.hot_param.k:1|c"}, []string{`rule 2 "k" 1 0s`},
			Stats{Counters: counters{Packets: 1, Lines: 2, Counts: 1, NoRule: 1}}},
		{"a rule without a threshold", []string{"shop.limit-only.hot_param.k:1|c"}, nil,
			Stats{Counters: counters{Packets: 1, Lines: 1, NoRule: 1}}},
		{"a count of nothing", []string{"shop.terms.hot_param.k:0|c"}, nil,
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1}}},
		{"what is not a count, by reason", []string{strings.Join([]string{
			"nonsense", "other.counter:1|c", "shop.terms.hot_param.k:1|g", "shop.terms.hot_param.k:-1|c",
			"shop.terms.hot_param.%zz:1|c", "else.terms.hot_param.k:1|c", "shop.terms.hot_param.k:9999999999999|c",
			"_e{1,22}:a|shop.terms.hot_param.k:1|c", "_sc|shop.terms.hot_param.k|0|m:x:1|c", line,
		}, "\n")}, []string{told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 10, Counts: 1, Malformed: 2, Foreign: 1, NotCounter: 1, Negative: 1, BadKey: 1, NoRule: 1, Events: 2}}},
		{"tags of every dialect, names with escapes among them", []string{strings.Join([]string{
			line + "|#a:b|c:x", "shop.terms.hot_param.GET /s?q=1,a=b:2|c", "shop[a=b].terms.hot_param.GET%20/s?q[c=d]=1:2|c", "web[a=b].front.hot_param.k:3|c", line,
		}, "\n")}, []string{told + "0s", told + "0s", told + "0s", `rule 2 "k" 3 0s`, told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 5, Counts: 5}}},
		{"a time of its own is believed unless it is to come", []string{line + timeField(-3*time.Second) + "\n" + line + timeField(time.Hour) + "\n" + line}, []string{told + "-3s", told + "0s", told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 3, Counts: 3}}},
		{"a time of its own is not later than the packet's", []string{head(1, -5*time.Second, 1, 0) + "\n" + line + timeField(-3*time.Second) + "\n" + line + timeField(-7*time.Second)}, []string{told + "-5s", told + "-7s"},
			Stats{Counters: counters{Packets: 1, Lines: 2, Counts: 2}, Senders: 1}},
		{"a part is a count of nothing yet", []string{"shop.terms.hot_param.k:0.5|c\nshop.terms.hot_param.k:1|c|@0.8"}, []string{`rule 0 "k" 1 0s`},
			Stats{Counters: counters{Packets: 1, Lines: 2, Counts: 2, Samples: 1}}},
		{"a meta line gives the time", []string{head(1, -time.Second, 1, 0) + "\n" + line}, []string{told + "-1s"},
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1}, Senders: 1}},
		{"a slow clock is believed", []string{head(1, -time.Hour, 1, 0) + "\n" + line}, []string{told + "-1h0m0s"},
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1}, Senders: 1}},
		{"a fast clock is not", []string{head(1, time.Hour, 1, 0) + "\n" + line}, []string{told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1}, Senders: 1}},
		{"a broken meta line leaves the arrival", []string{"hotparam.meta:1|c|#v:2\n" + line}, []string{told + "0s"},
			Stats{Counters: counters{Packets: 1, Lines: 1, Counts: 1, Malformed: 1}}},
		{"what a sender dropped is hidden, what it holds back twice", []string{head(1, -time.Second, 5, 30)}, []string{"held 0 8", "held 2 8", "hidden 30 -1s"},
			Stats{Counters: counters{Packets: 1}, Senders: 1}},
		{"what was dropped is of its flush, even if that was overtaken", []string{head(1, 0, 1, 0), head(3, 0, 1, 0), head(2, -time.Second, 1, 30)}, []string{"lost 0s", "found all", "hidden 30 -1s"},
			Stats{Counters: counters{Packets: 3, LostPackets: 1, Recovered: 1}, Senders: 1}},
		{"what a sender held back too long is a figure", []string{head(1, 0, 1, 0) + ",a:70"}, nil,
			Stats{Counters: counters{Packets: 1, Aged: 70}, Senders: 1}},
		{"a packet that came twice counts once", []string{head(1, 0, 1, 7) + "\n" + line, head(1, 0, 1, 7) + "\n" + line}, []string{"hidden 7 0s", told + "0s"},
			Stats{Counters: counters{Packets: 2, Lines: 1, Counts: 1, Duplicates: 1}, Senders: 1}},
		{"a gap is a loss", []string{head(1, -time.Second, 1, 0), head(4, -time.Millisecond, 1, 0) + "\n" + line}, []string{"lost 0s", told + "-1ms"},
			Stats{Counters: counters{Packets: 2, Lines: 1, Counts: 1, LostPackets: 2}, Senders: 1}},
		{"a packet that was overtaken still counts", []string{head(1, 0, 1, 0), head(3, 0, 1, 0), head(2, -time.Second, 1, 0) + "\n" + line}, []string{"lost 0s", "found all", told + "-1s"},
			Stats{Counters: counters{Packets: 3, Lines: 1, Counts: 1, LostPackets: 1, Recovered: 1}, Senders: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := NewDecoder(decoderRules(), wire.Plain)
			var got heard
			for _, p := range test.packets {
				d.Packet([]byte(p), noon, &got)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("told\n%q\nwant\n%q", got, test.want)
			}
			for _, told := range test.want {
				var rule, n int64
				var text string
				if _, err := fmt.Sscanf(told, "rule %d %q %d", &rule, &text, &n); err == nil {
					test.stats.Sum += n
				}
			}
			if s := d.Stats(); s != test.stats {
				t.Errorf("stats\n%+v\nwant\n%+v", s, test.stats)
			}
		})
	}
}

func TestDecoderReadsTheEncodingItIsSetTo(t *testing.T) {
	d := NewDecoder(decoderRules(), wire.Strict)
	var got heard
	d.Packet([]byte("shop.terms.hot_param.q=_25:1|c\nshop.terms.hot_param.q=%25:1|c\nshop.terms.hot_param.q_:1|c"), noon, &got)
	if want := (heard{`rule 0 "q=%" 1 0s`, `rule 0 "q=%25" 1 0s`}); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if s := d.Stats(); s.BadKey != 1 {
		t.Errorf("%d bad keys, want 1", s.BadKey)
	}
}

// The counts that a sender claims to hide cannot overflow to nothing.
func TestDecoderHiddenMassDoesNotOverflow(t *testing.T) {
	d := NewDecoder(decoderRules(), wire.Plain)
	var got heard
	d.Packet([]byte(head(1, 0, math.MaxInt64, math.MaxInt64)), noon, &got)
	held := fmt.Sprint(2 * (int64(wire.MaxCount) - 1))
	if want := (heard{"held 0 " + held, "held 2 " + held, fmt.Sprintf("hidden %d 0s", int64(wire.MaxCount))}); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestDecoderDoesNotAllocate(t *testing.T) {
	d := NewDecoder(decoderRules(), wire.Plain)
	packets := make([][]byte, 102) // AllocsPerRun runs once more
	for i := range packets {
		packets[i] = []byte(head(uint64(i+1), 0, 1, 0) + strings.Repeat("\nshop.terms.hot_param.GET /s?q=%2E1:2|c", 20) +
			strings.Repeat("\nshop[a=b].terms.hot_param.GET /s?q=%2E1:1|c|@0.5|#a:b"+timeField(-time.Second), 10))
	}
	var sum counter
	next := 0
	d.Packet(packets[next], noon, &sum)
	if n := testing.AllocsPerRun(100, func() { next++; d.Packet(packets[next], noon, &sum) }); n != 0 {
		t.Errorf("%v allocations a packet", n)
	}
	if sum != 102*30*2 {
		t.Errorf("%d counts came through", sum)
	}
}

// together is a handler of packets that records which counts it received together.
type together struct {
	counter
	got []string
}

func (h *together) Counts(counts []Count) {
	var all []string
	for _, c := range counts {
		if !c.When.Equal(counts[0].When) || c.Instance != counts[0].Instance {
			all = append(all, "another:")
		}
		all = append(all, fmt.Sprintf("%s %d", c.Text, c.N))
	}
	if len(all) > 0 {
		h.got = append(h.got, at(counts[0].When)+": "+strings.Join(all, ", "))
	}
}

// Counts of the same time are handed over at once, in the order in which they came.
func TestDecoderHandsOverByTime(t *testing.T) {
	line := func(key string, n int, when string) string {
		return fmt.Sprintf("shop[t].terms.hot_param.%s:%d|c%s\n", key, n, when)
	}
	old := timeField(-2 * time.Second)
	d, h := NewDecoder(decoderRules(), wire.Plain), &together{}
	d.Packet([]byte(line("a%2E", 1, "")+line("b", 2, "")+line("c", 3, old)+line("d", 0, timeField(-time.Second))+line("e%2E", 4, old)+line("f", 5, "")), noon, h)
	d.Packet([]byte(line("g", 6, timeField(-time.Second))+line("h", 7, "")), noon, h)
	d.Packet([]byte(line("i", 0, old)), noon, h)
	d.Packet([]byte(line("j", 8, "")+line("k", 9, "")), noon, h)
	want := []string{"0s: a. 1, b 2", "-2s: c 3, e. 4", "0s: f 5", "-1s: g 6", "0s: h 7", "0s: j 8, k 9"}
	if !slices.Equal(h.got, want) {
		t.Errorf("handed over\n%q\nwant\n%q", h.got, want)
	}
}

// Sampled counts add up to the true count, less the fractions that are still carried.
func TestDecoderConservesParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := NewDecoder(decoderRules(), wire.Plain)
		keys := rapid.IntRange(1, 2000).Draw(t, "keys")
		rates := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 0.9, 0.7, 0.3, 0.13, 0.01}), 1, 8).Draw(t, "rates")
		var told counter
		truth, line := 0.0, 0
		for range rapid.IntRange(1, 40).Draw(t, "packets") {
			var packet []byte
			for range 100 {
				n, rate := 1+line%3, rates[line%len(rates)]
				packet = fmt.Appendf(packet, "shop.terms.hot_param.k%d:%d|c|@%v\n", line*7919%keys, n, rate)
				truth += float64(n) / rate
				line++
			}
			d.Packet(packet, noon, &told)
		}
		if missing := truth - float64(told); missing < -1e-6 || missing > 1e-6+2*float64(min(keys, len(d.fractions.left))) || d.Stats().Sum != int64(told) {
			t.Fatalf("%d counts are told, %d by the stats, of %v", told, d.Stats().Sum, truth)
		}
	})
}

// A key's fractions are carried over to its next lines.
func TestDecoderCarriesParts(t *testing.T) {
	d := NewDecoder(decoderRules(), wire.Plain)
	var told counter
	d.Packet([]byte(strings.Repeat("shop.terms.hot_param.k:1|c|@0.3\n", 1000)), noon, &told)
	if told < 3332 || told > 3333 {
		t.Errorf("a thousand lines at a rate of 0.3 are %d counts, want 3,333", told)
	}
}

// Merge merges all counters.
func TestDecoderStatsMerge(t *testing.T) {
	var sum, one Stats
	v := reflect.ValueOf(&one).Elem()
	for i := range v.NumField() {
		if v.Field(i).CanInt() {
			v.Field(i).SetInt(1)
		}
	}
	one.Late = LateSenders{3, "api-1", time.Minute}
	one.Off = OffClocks{2, SenderClock{"api-2", -time.Minute, true}}
	sum.Merge(&one)
	sum.Merge(&one)
	if sum.Merge(&Stats{Off: OffClocks{1, SenderClock{"api-3", time.Second, true}}}); sum.Late != one.Late || sum.Off != one.Off {
		t.Errorf("%+v, %+v", sum.Late, sum.Off)
	}
	for i := range v.NumField() {
		if !v.Field(i).CanInt() {
			continue
		}
		name, n := v.Type().Field(i).Name, reflect.ValueOf(sum).Field(i).Int()
		if want := int64(2); n != want && name != "Senders" {
			t.Errorf("%s is %d, want %d", name, n, want)
		}
	}
}

// counter is a Handler that adds up counts.
type counter int64

func (s *counter) Count(c Count)                             { *s += counter(c.N) }
func (*counter) AddHiddenCounts(time.Time, int64)            {}
func (*counter) RecordLoss(time.Time)                        {}
func (*counter) ReduceLoss(time.Time)                        {}
func (*counter) RecordGap(Gap)                               {}
func (*counter) ExcludeFromGap(uint64, int, uint64, bool)    {}
func (*counter) AddHealedCount(Count, time.Time)             {}
func (*counter) MoveHealedCount(Count, time.Time, time.Time) {}

// checker is a Handler that checks a decoder's promises for any input.
type checker struct {
	*testing.T
	rules  *rules.Rules
	counts int64
	ours   bool // the keys may be as they please
}

func (c *checker) Count(n Count) {
	c.counts++
	if n.N < 1 || n.N > wire.MaxCount || n.When.After(noon) || n.Hash != rules.Hash(n.Text) || len(c.rules.Rules[n.Rule].Hot) == 0 {
		c.Errorf("told %+v", n)
	}
	if n.Estimated && (n.Seen < 0 || n.Seen > n.N) {
		c.Errorf("%d of %d were seen", n.Seen, n.N)
	}
	if text, changed := keytext.NewCanonicalizer(&c.rules.Rules[n.Rule]).Append(nil, n.Text); changed && !c.ours {
		c.Errorf("%q is told, which is not canonical: %q", n.Text, text)
	}
}

func (c *checker) AddHiddenCounts(when time.Time, n int64) {
	if n < 1 || when.After(noon) {
		c.Errorf("hidden %d at %s", n, at(when))
	}
}

func (c *checker) MoveHealedCount(Count, time.Time, time.Time) {}
func (c *checker) RecordGap(Gap)                               {}
func (c *checker) ExcludeFromGap(uint64, int, uint64, bool)    {}
func (c *checker) AddHealedCount(Count, time.Time)             {}

func (c *checker) ReduceLoss(newest time.Time) {
	if newest.After(noon) {
		c.Errorf("found all but those of %s", at(newest))
	}
}

func (c *checker) RecordLoss(when time.Time) {
	if when.After(noon) {
		c.Errorf("lost at %s", at(when))
	}
}

func FuzzPacket(f *testing.F) {
	f.Add([]byte("shop.terms.hot_param.GET /s?q=1:2|c\nweb.front.hot_param.k:3|c|@0.1|#t:1"), true)
	f.Add([]byte(head(3, 0, 2, 9)+"\nshop.terms.hot_param.k:1|c\r\n\n"), false)
	f.Add([]byte("shop.terms.hot_param.GET /s?b=1&a=%257e+:1|c|@0.3\nshop.terms.hot_param.GET%20/s?q="+strings.Repeat("%2e", 300)+":1|c\nweb.front.hot_param.a=:2|c|@0.9"), false)
	f.Add([]byte("hotparam.meta:1|c|#v:1,i:,e:,s:,t:,h:,u:\n:|c"), true)
	f.Add([]byte("shop.terms.hot_param.k:1|c:2|c|@0.3:3|ms\nshop[a=b].terms.hot_param.k%25:1|c|T5\nweb.front.hot_param.k,a=b:1|c|#x|c:y"), false)
	f.Add([]byte("_e{1,1}:a|b\n_sc|a|0\nshop.terms.hot_param.k[:1|c\nshop.terms.hot_param.k:0.5|c|T99999999999999"), false)
	f.Fuzz(func(t *testing.T, packet []byte, strict bool) {
		e := wire.Plain
		if strict {
			e = wire.Strict
		}
		rules := decoderRules()
		d := NewDecoder(rules, e)
		h := &checker{T: t, rules: rules, ours: wire.IsMeta(packet)}
		d.Packet([]byte(head(1, 0, 1, 0)), noon, h)
		d.Packet(packet, noon, h)
		s := d.Stats()
		rejected := s.Foreign + s.NotCounter + s.Negative + s.BadKey + s.NoRule + s.Events
		if s.Packets != 2 || h.counts > s.Counts || s.Counts+rejected > s.Lines || s.Counts+rejected+s.Malformed < s.Lines {
			t.Errorf("%d counts told, stats %+v do not add up", h.counts, s)
		}
	})
}

func BenchmarkDecoderPacket(b *testing.B) {
	for _, line := range []string{
		"\nshop.terms.hot_param.GET /s?q=123:2|c", "\nshop.terms.hot_param.GET%20/s?q=a%2Eb%252C%253A:2|c",
		"\nshop.terms.hot_param.GET /s?q=123:2|c|@0.1|#env:prod", "\nshop.terms[env=prod].hot_param.GET /s?q=123:2|c",
	} {
		b.Run(line[1:], func(b *testing.B) {
			d := NewDecoder(decoderRules(), wire.Plain)
			packet := []byte(line[1:] + strings.Repeat(line, 29))
			var sum counter
			b.SetBytes(int64(len(packet)))
			b.ReportAllocs()
			for b.Loop() {
				d.Packet(packet, noon, &sum)
			}
			b.ReportMetric(30*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// Packets of instances cost nothing extra for the formats of other senders.
func BenchmarkDecoderRecord(b *testing.B) {
	d := NewDecoder(decoderRules(), wire.Plain)
	lines := []byte(strings.Repeat("shop.terms.hot_param.GET /s?q=123:2|c\n", 30))
	m := wire.Meta{Instance: []byte("a"), Incarnation: 1, Start: noon.UnixNano(), Held: 1}
	var sum counter
	b.SetBytes(int64(len(lines)))
	b.ReportAllocs()
	for b.Loop() {
		m.Seq++
		d.Record(&m, lines, noon, true, &sum)
	}
	b.ReportMetric(30*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

func (h *heard) AddHeldBack(HeldBack) {}

func (h *heard) SetHeldBackBound(rule int, bound, _ int64) {
	*h = append(*h, fmt.Sprintf("held %d %d", rule, bound))
}

func (*counter) SetHeldBackBound(int, int64, int64) {}

func (*counter) AddHeldBack(HeldBack) {}

func (c *checker) AddHeldBack(HeldBack) {}

func (c *checker) SetHeldBackBound(rule int, bound, _ int64) {
	if len(c.rules.Rules[rule].Hot) == 0 || bound < 0 {
		c.Errorf("held %d of rule %d", bound, rule)
	}
}

// A record with its meta data and lines apart is read like a packet that holds both.
func TestRecordIsAPacket(t *testing.T) {
	const line = "shop.terms.hot_param.GET /s?q=1:2|c"
	var packets, records heard
	p, r := NewDecoder(decoderRules(), wire.Plain), NewDecoder(decoderRules(), wire.Plain)
	for _, x := range []struct {
		seq   uint64
		start time.Duration
		lines string
	}{{1, 0, line}, {2, time.Second, ""}, {4, 2 * time.Second, line + "\n" + line}, {4, 0, line}, {3, 0, line}} {
		packet := head(x.seq, x.start, 3, 7)
		m, err := wire.ParseMeta([]byte(packet))
		if err != nil {
			t.Fatal(err)
		}
		now := noon.Add(time.Second)
		p.Packet([]byte(packet+"\n"+x.lines), now, &packets)
		before := len(records)
		if _, taken := r.Record(&m, []byte(x.lines), now, true, &records); taken == (len(records) == before) {
			t.Errorf("record %d: taken %v, and told %q", x.seq, taken, records[before:])
		}
	}
	p.Packet([]byte(line), noon, &packets)
	if _, taken := r.Record(nil, []byte(line), noon, true, &records); !taken {
		t.Error("a record without a meta was not taken")
	}
	if !slices.Equal(packets, records) || p.Stats() != r.Stats() {
		t.Errorf("records tell %q, packets %q; %+v, %+v", records, packets, r.Stats(), p.Stats())
	}
}
