package decode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// A line is read the same whatever the lines before it. A decoder that has learned how lines begin
// finds and reports the same as one that reads each line from scratch.
func TestDecoderReadsLinesAlikeAsAnyOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := decoderRules()
		rules.Rules[0].ParamsOnly = rapid.Bool().Draw(t, "params only")
		encoding := rapid.SampledFrom([]wire.Encoding{wire.Plain, wire.Plain, wire.Strict}).Draw(t, "encoding")
		quick, slow := NewDecoder(rules, encoding), NewDecoder(rules, encoding)
		slow.maxAlike = -1 // no key is so short
		var got, want heard
		lines := rapid.SliceOfN(alikeLine(t, rules), 1, 30)
		for seq := range rapid.IntRange(1, 6).Draw(t, "packets") {
			packet := strings.Join(lines.Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\n", "\n", "\r\n"}).Draw(t, "end"))
			if rapid.Bool().Draw(t, "an instance's") {
				m := wire.Meta{Instance: []byte("a"), Incarnation: 1, Seq: uint64(seq + 1), Start: noon.UnixNano(), Held: 1}
				packet = string(wire.AppendMeta(nil, m)) + "\n" + packet
			}
			exactly := slices.Clip([]byte(packet)) // a byte beyond it is not read
			quick.Packet(exactly, noon, &got)
			slow.Packet(exactly, noon, &want)
			if string(exactly) != packet {
				t.Fatalf("packet %q has become %q", packet, exactly)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got, want := quick.Stats(), slow.Stats(); got != want {
			t.Fatalf("stats %+v, want %+v", got, want)
		}
	})
}

// alikeLine draws lines with few beginnings, many values, and any ending.
func alikeLine(t *rapid.T, rules *rules.Rules) *rapid.Generator[string] {
	prefix := rules.Rules[0].CountPrefix(rules.Namespace)
	heads := []string{"b=2&q=", "b=2&q=", "b=2&q=", "GET%20/s?b=2&q=", "GET /s?q=", "q=1&b=", "q=1&q=", "q=", "q%3D=", "%2=", "a=%2C&q=", "a:q=", "a,b=", "_=", "x"}
	heads = rapid.SliceOfN(rapid.SampledFrom(heads), 1, 2).Draw(t, "heads")
	values := []string{"", "1", "2", "9", "77", "abc", "1", "7", "12345", "some-long.value_of~many", "%2C", "%2c", "a b", "a%20b", "x&y=1", "é", "a,b", "a#b", "x;y", "a[b", strings.Repeat("v", 90), strings.Repeat("v", 600), ".hot_param.z=1"}
	ends := []string{":1|c", ":1|c", ":1|c", ":27|c", ":007|c", ":0|c", ":-1|c", ":1.5|c", ":|c", ":x|c", ":1|g", ":1|c|@0.5", ":1|c|k1:5.a", ":1|c ", "|c", ":1|", ":1",
		fmt.Sprintf(":%d|c", int64(wire.MaxCount)), fmt.Sprintf(":%d|c", int64(wire.MaxCount)+1), ":123456789012345678|c", ":1234567890123456789|c", ":1:2|c", ":1|c:1|c", ",1|c", "#1|c", "%1|c", "&1|c"}
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.IntRange(0, 20).Draw(t, "other") == 0 {
			return rapid.SampledFrom([]string{"", "shop.other.hot_param.q=1:1|c", "nonsense", "shop.terms", "\r"}).Draw(t, "what")
		}
		return prefix + ".hot_param." + rapid.SampledFrom(heads).Draw(t, "head") + rapid.SampledFrom(values).Draw(t, "value") + rapid.SampledFrom(ends).Draw(t, "count")
	})
}

// A line that begins like earlier lines is read without the passes that these took.
func TestDecoderLearnsHowLinesBegin(t *testing.T) {
	d, h := NewDecoder(decoderRules(), wire.Plain), heard{}
	d.Packet([]byte("shop.terms.hot_param.GET%20/s?q=1:1|c"), noon, &h)
	var c Count
	if d.cutAlike([]byte("shop.terms.hot_param.GET%20/s?q=12345:1|c\n"), &c, false) > 0 {
		t.Error("a key with an escape is taken to be canonical")
	}
	d.Packet([]byte(strings.Repeat("shop.terms.hot_param.GET /s?q=1:1|c\n", learnAfter)), noon, &h)
	line := "shop.terms.hot_param.GET /s?q=12345:17|c\n"
	if next := d.cutAlike([]byte(line), &c, false); next != len(line) || c.N != 17 || string(c.Text) != "GET /s?q=12345" {
		t.Errorf("%d bytes, %d of %q", next, c.N, c.Text)
	}
	m := wire.Meta{Instance: []byte("a"), Incarnation: 1, Seq: 1, Start: noon.UnixNano(), Held: 1}
	d.Packet([]byte(string(wire.AppendMeta(nil, m))+strings.Repeat("\nshop.terms.hot_param.GET /s?q=1&b=2:1|c", learnAfter+1)), noon, &h)
	line = "shop.terms.hot_param.GET /s?q=1&b=34567:1|c"
	if d.cutAlike([]byte(line), &c, true) != len(line) {
		t.Error("an instance's line is not known")
	}
	if d.cutAlike([]byte(line), &c, false) > 0 {
		t.Error("another program's key is taken to be canonical")
	}
	d.compile(d.senders.rules)
	if d.cutAlike([]byte(line), &c, true) > 0 {
		t.Error("other rules did not make it forget")
	}
}
