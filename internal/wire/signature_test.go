package wire_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/internal/wire/wiretest"
)

var (
	macKey   = []byte("0123456789abcdef0123456789abcdef")
	otherKey = []byte("fedcba9876543210fedcba9876543210")
)

const macFields = "i:a,e:ff,s:2,t:3,h:4,u:5,w:6"

func TestSignIsAsDocumented(t *testing.T) {
	for _, lines := range []string{"", "shop.terms.hot_param.q=1:2|c", strings.Repeat("shop.terms.hot_param.q=1:2|c\n", 40) + "x:1|c"} {
		meta := wire.AppendMACField([]byte("hotparam.meta:1|c|#v:1," + macFields))
		packet := slices.Clone(meta)
		if lines != "" {
			packet = append(append(packet, '\n'), lines...)
		}
		m := wire.NewMAC(macKey, otherKey)
		m.Sign(packet, len(meta))
		if want := wiretest.Sign(macKey, macFields, lines); string(packet) != want {
			t.Errorf("got  %q\nwant %q", packet, want)
		}
		if len(meta) != len("hotparam.meta:1|c|#v:1,"+macFields)+wire.MACField {
			t.Errorf("MACField is %d", wire.MACField)
		}
		if _, err := wire.ParseMeta(packet[:len(meta)]); err != nil {
			t.Errorf("a reader that does not verify it: %v", err)
		}
		if err := m.Verify(packet); err != nil {
			t.Errorf("%q: %v", packet, err)
		}
		if err := m.Verify(append(packet, '\n')); err != nil {
			t.Errorf("with a newline at its end: %v", err)
		}
	}
}

// The vector of docs/PRODUCERS.md.
func TestSignVector(t *testing.T) {
	const packet = "hotparam.meta:1|c|#v:1,i:py-1,e:1f,s:1,t:1700000000000000000,h:1,u:0,w:1700000000000000000,m:0035.24f0235817f24570a87c7a4726ed6987\n" +
		"shop.search-terms.hot_param.GET%20/search?q=phone:1|c"
	if err := wire.NewMAC(macKey).Verify([]byte(packet)); err != nil {
		t.Error(err)
	}
}

func TestVerify(t *testing.T) {
	const lines = "shop.terms.hot_param.q=1:2|c\nshop.terms.hot_param.q=2:3|c"
	good := wiretest.Sign(macKey, macFields, lines)
	for _, test := range []struct {
		name, packet string
		want         error
	}{
		{"good", good, nil},
		{"by the second key", wiretest.Sign(otherKey, macFields, lines), nil},
		{"by another key", wiretest.Sign([]byte(strings.Repeat("k", 32)), macFields, lines), wire.ErrMAC},
		{"no meta line", lines, wire.ErrUnsigned},
		{"no field", "hotparam.meta:1|c|#v:1," + macFields + "\n" + lines, wire.ErrUnsigned},
		{"nothing", "", wire.ErrUnsigned},
		{"a line more", good + "\nshop.terms.hot_param.q=innocent:200|c", wire.ErrMAC},
		{"a line less", good[:strings.LastIndexByte(good, '\n')], wire.ErrMAC},
		{"other fields", strings.Replace(good, "i:a", "i:b", 1), wire.ErrMAC},
		{"capital digits", good[:strings.IndexByte(good, '\n')-32] + strings.ToUpper(good[strings.IndexByte(good, '\n')-32:strings.IndexByte(good, '\n')]) + good[strings.IndexByte(good, '\n'):], wire.ErrMAC},
		{"a field behind it", strings.Replace(good, "\n", ",x:1\n", 1), wire.ErrUnsigned},
	} {
		if err := wire.NewMAC(macKey, otherKey).Verify([]byte(test.packet)); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

// A packet with any bit flipped is refused, and a MAC that is right only in part is wrong.
func TestNoBitCanBeTurnedOver(t *testing.T) {
	packet := []byte(wiretest.Sign(macKey, macFields, "shop.terms.hot_param.q=1:2|c\nshop.terms.hot_param.q=2:3|c"))
	m := wire.NewMAC(macKey)
	for i := range packet {
		for bit := range 8 {
			packet[i] ^= 1 << bit
			if m.Verify(packet) == nil {
				t.Errorf("bit %d of byte %d is not looked at: %q", bit, i, packet)
			}
			packet[i] ^= 1 << bit
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add([]byte(wiretest.Sign(macKey, macFields, "shop.terms.hot_param.q=1:2|c")))
	f.Add([]byte(wiretest.Sign(macKey, macFields, "")))
	f.Add([]byte("hotparam.meta:1|c|#v:1,m:ffff.00000000000000000000000000000000\n"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		m := wire.NewMAC(macKey)
		if err := m.Verify(packet); err == nil {
			// Only packets that the reference signs in the same way are verified.
			meta, lines, _ := bytes.Cut(packet, []byte{'\n'})
			lines = bytes.TrimSuffix(lines, []byte{'\n'})
			const head = "hotparam.meta:1|c|#v:1,"
			if !bytes.HasPrefix(meta, []byte(head)) || wiretest.Sign(macKey, string(meta[len(head):len(meta)-wire.MACField]), string(lines)) != strings.TrimSuffix(string(packet), "\n") {
				t.Errorf("%q is verified", packet)
			}
		}
		_ = m.VerifyRecord([]wire.Header{{Key: "hotparam-mac", Value: packet}, {Key: "hotparam-x", Value: packet}}, 0, packet)
	})
}

func TestRecordMAC(t *testing.T) {
	head := wire.RecordHead{Meta: wire.Meta{Instance: []byte("a"), Incarnation: 1, Seq: 1, Held: 1}, Namespace: []byte("shop"), Partitions: 3}
	value := []byte("shop.terms.hot_param.q=1:2|c")
	m := wire.NewMAC(macKey)
	headers := m.AppendRecordMAC(wire.AppendRecordHead(nil, &head), 2, value)
	h := hmac.New(sha256.New, macKey)
	h.Write([]byte("hotparam.record:2\n"))
	for _, x := range headers[:len(headers)-1] {
		fmt.Fprintf(h, "%s:%s\n", x.Key, x.Value)
	}
	fmt.Fprintf(h, "\n%s", value)
	if got, want := string(headers[len(headers)-1].Value), hex.EncodeToString(h.Sum(nil))[:32]; got != want {
		t.Errorf("the MAC is %s, want %s", got, want)
	}
	if _, ours, err := wire.ParseRecordHead(headers); !ours || err != nil {
		t.Errorf("a reader that does not verify it: ours %v, %v", ours, err)
	}
	traced := append([]wire.Header{{Key: "traceparent", Value: []byte("x")}}, headers...)
	if err := wire.NewMAC(otherKey, macKey).VerifyRecord(traced, 2, value); err != nil {
		t.Errorf("with another program's header: %v", err)
	}
	swapped := slices.Clone(headers)
	swapped[1], swapped[2] = swapped[2], swapped[1]
	for name, err := range map[string]error{
		"another partition":  m.VerifyRecord(headers, 1, value),
		"another value":      m.VerifyRecord(headers, 2, value[1:]),
		"another order":      m.VerifyRecord(swapped, 2, value),
		"a header more":      m.VerifyRecord(append(slices.Clone(headers), wire.Header{Key: "hotparam-aged", Value: []byte("5")}), 2, value),
		"a header less":      m.VerifyRecord(headers[1:], 2, value),
		"two MACs":           m.VerifyRecord(append(slices.Clone(headers), headers[len(headers)-1]), 2, value),
		"another key":        wire.NewMAC(otherKey).VerifyRecord(headers, 2, value),
		"two headers in one": m.VerifyRecord(slices.Concat([]wire.Header{{Key: headers[0].Key, Value: fmt.Appendf(nil, "%s\n%s:%s", headers[0].Value, headers[1].Key, headers[1].Value)}}, headers[2:]), 2, value),
	} {
		if !errors.Is(err, wire.ErrMAC) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := m.VerifyRecord(headers[:len(headers)-1], 2, value); !errors.Is(err, wire.ErrUnsigned) {
		t.Errorf("without a MAC: %v", err)
	}
}

func TestMACDoesNotAllocate(t *testing.T) {
	m := wire.NewMAC(macKey, otherKey)
	packet := []byte(wiretest.Sign(otherKey, macFields, strings.Repeat("shop.terms.hot_param.q=1:2|c\n", 40)+"x"))
	at := bytes.IndexByte(packet, '\n')
	_ = m.Verify(packet)
	if n := testing.AllocsPerRun(100, func() { _ = m.Verify(packet) }); n > 0 {
		t.Errorf("Verify allocates %v times", n)
	}
	if n := testing.AllocsPerRun(100, func() { m.Sign(packet, at) }); n > 0 {
		t.Errorf("Sign allocates %v times", n)
	}
}
