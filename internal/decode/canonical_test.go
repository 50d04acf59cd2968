package decode

import (
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// However the lines of other programs are spelled, their keys are the keys that instances count.
// Lines of instances are taken as they are.
func TestLinesOfOtherProgramsAreMadeCanonical(t *testing.T) {
	const foreign = "shop.terms.hot_param.GET%20/s?page=2&lang=en:2|c\nshop.terms.hot_param.GET%20/s?lang=en&page=2:3|c\nshop.terms.hot_param.GET /s?q=%257ea+b:1|c\nweb.front.hot_param.k:1|c"
	made := heard{`rule 0 "GET /s?lang=en&page=2" 2 0s`, `rule 0 "GET /s?lang=en&page=2" 3 0s`, `rule 0 "GET /s?q=~a%20b" 1 0s`, `rule 2 "k" 1 0s`}
	asWritten := heard{`rule 0 "GET /s?page=2&lang=en" 2 0s`, made[1], `rule 0 "GET /s?q=%7ea+b" 1 0s`, made[3]}
	ours := head(1, 0, 1, 0) + "\n" + foreign
	meta, err := wire.ParseMeta([]byte(head(1, 0, 1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	var connection header
	for name, test := range map[string]struct {
		canonical bool
		read      func(d *Decoder, h Handler)
		want      heard
	}{
		"a packet":                         {false, func(d *Decoder, h Handler) { d.Packet([]byte(foreign), noon, h) }, made},
		"a packet of ours":                 {false, func(d *Decoder, h Handler) { d.Packet([]byte(ours), noon, h) }, asWritten},
		"a packet with a broken meta line": {false, func(d *Decoder, h Handler) { d.Packet([]byte("hotparam.meta:1|c|#v:2\n"+foreign), noon, h) }, made},
		"a packet that is believed":        {true, func(d *Decoder, h Handler) { d.Packet([]byte(foreign), noon, h) }, asWritten},
		"a record":                         {false, func(d *Decoder, h Handler) { d.Record(nil, []byte(foreign), noon, true, h) }, made},
		"a record of ours":                 {false, func(d *Decoder, h Handler) { d.Record(&meta, []byte(foreign), noon, true, h) }, asWritten},
		"a stream":                         {false, func(d *Decoder, h Handler) { d.streamLines(new(header), []byte(foreign), noon, h) }, made},
		"a stream of ours":                 {false, func(d *Decoder, h Handler) { d.streamLines(&connection, []byte(ours), noon, h) }, asWritten},
		"a stream with a broken meta line": {false, func(d *Decoder, h Handler) {
			d.streamLines(new(header), []byte("hotparam.meta:1|c|#v:2\n"+foreign), noon, h)
		}, made},
		"a stream that is believed": {true, func(d *Decoder, h Handler) { d.streamLines(new(header), []byte(foreign), noon, h) }, asWritten},
		"a packet of too many senders": {false, func(d *Decoder, h Handler) {
			d.senders.byName = make(map[string]*sender)
			for i := range maxSenders {
				d.senders.byName[string(rune(i))+"x"] = new(sender)
			}
			d.Packet([]byte(ours), noon, h)
		}, asWritten},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(decoderRules(), wire.Plain)
			d.Canonical = test.canonical
			var got heard
			test.read(d, &got)
			if !slices.Equal(got, test.want) {
				t.Errorf("told\n%q\nwant\n%q", got, test.want)
			}
			want := int64(0)
			if slices.Equal(test.want, made) {
				want = 2
			}
			if n := d.Stats().Uncanonical; n != want {
				t.Errorf("%d are told as not canonical, want %d", n, want)
			}
		})
	}
	// Lines that come long after a meta line belong to another sender.
	d, got := NewDecoder(decoderRules(), wire.Plain), heard{}
	d.streamLines(&connection, []byte(foreign), noon.Add(packetLife+1), &got)
	if d.Stats().Uncanonical != 2 {
		t.Errorf("much later: %q", got)
	}
}

// A key that is too long is counted in the form that instances give it, in each encoding. Keys
// that instances have cut stay as they are. The other lines of the packet are not touched.
func TestLongKeysOfOtherProgramsAreCut(t *testing.T) {
	for _, e := range []wire.Encoding{wire.Plain, wire.Strict} {
		for _, value := range []string{strings.Repeat("x", 700), strings.Repeat("ü", 30), strings.Repeat("%", 150), strings.Repeat("a.", 120)} {
			full := []byte(rules.Text("GET /s", rules.Param{Name: "b", Value: "1"}, rules.Param{Name: "q", Value: value}))
			want := string(e.Fit(base.CutKey(slices.Clone(full), rules.MaxText)))
			d := NewDecoder(decoderRules(), e)
			var got heard
			encoded := func(text string) string { return string(e.Append(nil, []byte(text))) }
			_, params, _ := strings.Cut(string(full), "?b=1&")
			packet := "shop.terms.hot_param." + encoded(string(full)) + ":1|c\n" +
				"shop.terms.hot_param." + encoded("GET /s?"+params+"&b=1") + ":1|c\n" +
				"shop.terms.hot_param." + encoded(want) + ":1|c\n" +
				"shop.terms.hot_param." + encoded("GET /s?q=1") + ":1|c"
			d.Packet([]byte(packet), noon, &got)
			told := `rule 0 "` + want + `" 1 0s`
			if !slices.Equal(got, heard{told, told, told, `rule 0 "GET /s?q=1" 1 0s`}) {
				t.Errorf("%s, %q: told\n%q", e, value, got)
			}
			if n := d.Stats().Uncanonical; n != 1 && n != 2 {
				t.Errorf("%s, %q: %d are told as not canonical", e, value, n)
			}
		}
	}
}

// A key that is canonical by one rule may not be canonical by another.
func TestKnownKeysAreOfTheirRule(t *testing.T) {
	rules := decoderRules()
	rules.Rules[2].ParamsOnly = true
	d, got := NewDecoder(rules, wire.Plain), heard{}
	for range 2 {
		d.Packet([]byte("shop.terms.hot_param.GET /s?q=1:1|c\nweb.front.hot_param.GET /s?q=1:1|c"), noon, &got)
	}
	want := heard{`rule 0 "GET /s?q=1" 1 0s`, `rule 2 "GET%20%2Fs%3Fq=1" 1 0s`}
	if !slices.Equal(got, append(want, want...)) {
		t.Errorf("told %q, want %q twice", got, want)
	}
}
