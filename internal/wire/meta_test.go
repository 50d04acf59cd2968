package wire_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

func TestMetaGolden(t *testing.T) {
	m := wire.Meta{
		Instance: []byte("api-1.eu_west"), Incarnation: 0xdeadbeef, Seq: 42,
		Start: 1_700_000_000_100_000_000, Held: 1, Unsent: 7, Sent: 1_700_000_000_200_000_000,
		Sums:   wire.Sums{Stated: true, Booked: 255, Loose: 4096, Opened: 3, Parts: 2, Age: 100, Since: -500, HeldBack: 600},
		Groups: 0xbeef,
	}
	const want = "hotparam.meta:1|c|#v:1,i:api-1.eu_west,e:deadbeef,s:42,t:1700000000100000000,h:1,u:7,w:1700000000200000000,g:beef,b:ff.1000.3.0.2.64.-1f4.258"
	if got := string(wire.AppendMeta(nil, m)); got != want {
		t.Errorf("the meta line is\n%q, want\n%q", got, want)
	}
	// Any StatsD reads it as a counter of its own.
	if _, err := wire.ParseLine([]byte(want)); !errors.Is(err, wire.ErrForeign) {
		t.Errorf("as a line it is %v", err)
	}
}

func TestMetaRoundTripsWithinItsBound(t *testing.T) {
	instance := rapid.StringMatching(`[A-Za-z0-9_.-]{1,64}`)
	count := rapid.OneOf(rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(t *rapid.T) {
		m := wire.Meta{
			Instance:    []byte(instance.Draw(t, "instance")),
			Incarnation: rapid.Uint64().Draw(t, "incarnation"),
			Seq:         rapid.Uint64Min(1).Draw(t, "seq"),
			Start:       count.Draw(t, "start"),
			Held:        max(1, count.Draw(t, "held")),
			Unsent:      count.Draw(t, "unsent"),
			Aged:        count.Draw(t, "aged"),
			Sent:        count.Draw(t, "sent"),
		}
		if rapid.Bool().Draw(t, "sums") {
			n := rapid.Uint64()
			m.Sums = wire.Sums{Stated: true, Booked: n.Draw(t, "booked"), Loose: n.Draw(t, "loose"), Opened: n.Draw(t, "opened"), Shed: n.Draw(t, "shed"), Parts: n.Draw(t, "parts"), Age: rapid.Int64().Draw(t, "age"), Since: rapid.Int64().Draw(t, "since"), HeldBack: n.Draw(t, "held back")}
			m.Groups = rapid.Uint32().Draw(t, "groups")
		}
		line := wire.AppendMeta(nil, m)
		if len(line) > wire.MaxMeta || !wire.IsMeta(line) {
			t.Fatalf("%q has %d bytes, IsMeta says %v", line, len(line), wire.IsMeta(line))
		}
		if got, err := wire.ParseMeta(line); err != nil || !reflect.DeepEqual(got, m) {
			t.Fatalf("%q reads %+v, %v", line, got, err)
		}
	})
	longest := wire.Meta{
		Instance: []byte(strings.Repeat("i", wire.MaxInstance)), Incarnation: math.MaxUint64, Seq: math.MaxUint64,
		Start: math.MinInt64, Held: math.MinInt64, Unsent: math.MinInt64, Aged: math.MaxInt64,
		Sent: math.MaxInt64, Sums: wire.Sums{Stated: true, Booked: math.MaxUint64, Loose: math.MaxUint64, Opened: math.MaxUint64, Shed: math.MaxUint64, Parts: math.MaxUint64, Age: math.MinInt64, Since: math.MinInt64, HeldBack: math.MaxUint64},
		Groups: math.MaxUint32, Rules: wire.AppendRuleSums(nil, math.MaxUint32, slices.Repeat([]uint64{math.MaxUint64}, 2*wire.MaxRuleSums)),
		Buckets: wire.AppendBuckets(nil, math.MaxUint32, math.MaxUint64, new([wire.Buckets]uint32)),
	}
	if n := len(wire.AppendMeta(nil, longest)); n != wire.MaxMeta {
		t.Errorf("the longest meta line has %d bytes, MaxMeta is %d", n, wire.MaxMeta)
	}
}

func TestParseMeta(t *testing.T) {
	const good = "hotparam.meta:1|c|#v:1,i:a,e:ff,s:2,t:3,h:4,u:5"
	for _, test := range []struct {
		line string
		ok   bool
	}{
		{good, true},
		{good + ",x:later,yy:field,z", true},
		{good + ",w:9,b:1.2.3.4.5.6.7", true},
		{good + ",b:1.2.3.4.5.-6.-7.8.x", true},
		{good + ",b:1.2.3.4.5.6", false},
		{good + ",b:1.2.3.4.5.6.", false},
		{good + ",b:1.2.3.", false},
		{good + ",b:1.2.g.4", false},
		{good + ",w:-9", false},
		{"hotparam.meta:1|c|#u:5,h:4,t:3,s:2,e:ff,i:a,v:1", true},
		{strings.Replace(good, "v:1", "v:2", 1), false},
		{strings.Replace(good, "v:1,", "", 1), false},
		{strings.Replace(good, "i:a,", "", 1), false},
		{strings.Replace(good, "i:a", "i:", 1), false},
		{strings.Replace(good, "i:a", "i:a b", 1), false},
		{strings.Replace(good, "i:a", "i:"+strings.Repeat("a", 65), 1), false},
		{strings.Replace(good, "e:ff", "e:fg", 1), false},
		{strings.Replace(good, "e:ff", "e:11112222333344445", 1), false},
		{strings.Replace(good, "s:2", "s:0", 1), false},
		{strings.Replace(good, "s:2", "s:-2", 1), false},
		{strings.Replace(good, "t:3", "t:x", 1), false},
		{strings.Replace(good, "t:3", "t:-3", 1), false},
		{strings.Replace(good, "t:3", "t:9223372036854775808", 1), false},
		{strings.Replace(good, "h:4", "h:0", 1), false},
		{strings.Replace(good, "u:5", "u:-5", 1), false},
		{strings.Replace(good, ",u:5", "", 1), false},
		{"hotparam.meta:1|c|#", false},
		{"hotparam.meta:1|c", false},
		{"", false},
	} {
		if m, err := wire.ParseMeta([]byte(test.line)); (err == nil) != test.ok || err != nil && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%q is %+v, %v", test.line, m, err)
		}
	}
}

func TestValidInstance(t *testing.T) {
	for name, want := range map[string]bool{
		"api-1": true, "A_z.9-": true, strings.Repeat("a", 64): true,
		"": false, "a b": false, "a,b": false, "é": false, "a\n": false, strings.Repeat("a", 65): false,
	} {
		if got := wire.ValidInstance(name); got != want || wire.ValidInstance([]byte(name)) != want {
			t.Errorf("ValidInstance(%q) is %v", name, got)
		}
	}
}

func TestParseMetaDoesNotAllocate(t *testing.T) {
	line := []byte("hotparam.meta:1|c|#v:1,i:api-1,e:deadbeef,s:42,t:1700000000100000000,h:1,u:7")
	if n := testing.AllocsPerRun(100, func() { _, _ = wire.ParseMeta(line) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseMeta(f *testing.F) {
	for _, line := range []string{
		"hotparam.meta:1|c|#v:1,i:a,e:ff,s:2,t:3,h:4,u:5", "hotparam.meta:1|c|#v:1,,i:,x", "hotparam.meta:1|c|#",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := wire.ParseMeta(line)
		if err != nil {
			return
		}
		if m.Seq < 1 || m.Held < 1 || m.Start < 0 || m.Unsent < 0 {
			t.Fatalf("%q is %+v", line, m)
		}
		again, err := wire.ParseMeta(wire.AppendMeta(nil, m))
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%q is %+v, and written anew %+v, %v", line, m, again, err)
		}
	})
}
