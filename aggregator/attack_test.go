//go:build !race

// These tests use a single goroutine, so they run only without the race detector.

package aggregator

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/internal/wire/wiretest"
)

// attacked is an aggregator whose packets come from two addresses.
type attacked struct {
	out      *recorder
	detector *Detector
	decoder  *decode.Decoder
	from     netip.Addr
	seq      int
}

var inside, outside = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("192.0.2.1")

func underAttack(trust *decode.Trust) *attacked {
	rule := hotRule("terms", 100, time.Second)
	rule.Hot[0].Hold, rule.Hot[0].CoolDown = time.Second, time.Second
	rules := testRules(rule)
	a := &attacked{out: newRecorder()}
	a.detector = NewDetector(DetectorConfig{Rules: rules, Publisher: a.out, Lag: decode.DefaultLag})
	a.decoder = decode.NewDecoder(rules, wire.Plain)
	a.decoder.Believe(trust)
	a.decoder.SetPeer(func() netip.Addr { return a.from })
	return a
}

var trustKey = []byte("0123456789abcdef0123456789abcdef")

const innocent = "shop.terms.hot_param.q=innocent:200|c"

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

// packet processes one datagram as a reader does.
func (a *attacked) packet(from netip.Addr, text string, now time.Time) {
	if a.from = from; a.decoder.AdmitsPacket() {
		a.decoder.Packet([]byte(text), now, a.detector)
	}
	a.decoder.Advance(now, a.detector)
	a.detector.Advance(now)
}

// honest sends a signed packet of a trusted instance.
func (a *attacked) honest(lines string, after time.Duration) {
	a.seq++
	a.packet(inside, wiretest.Sign(trustKey, fields("api-1", 7, a.seq, after), lines), noon.Add(after))
}

func (a *attacked) isHot(text string) bool {
	hot := false
	for _, c := range a.out.changes {
		for _, h := range c.Hot {
			hot = hot || h.Text == text
		}
		for _, h := range c.Cool {
			hot = hot && h.Text != text
		}
	}
	return hot
}

func trustModes() map[string]*decode.Trust {
	return map[string]*decode.Trust{
		"nobody bounded": nil,
		"all":            {Caps: decode.DefaultCaps},
		"listed":         {Mode: decode.TrustListed, Senders: prefixes("10.0.0.0/8"), Caps: decode.DefaultCaps},
		"signed":         {Mode: decode.TrustSigned, Keys: [][]byte{trustKey}, Caps: decode.DefaultCaps},
	}
}

// One spoofed line gets a key limited only where every sender is believed.
func TestOneSpoofedLine(t *testing.T) {
	for name, trust := range trustModes() {
		a := underAttack(trust)
		a.honest("shop.terms.hot_param.q=phone:150|c", 0)
		a.packet(outside, innocent, noon.Add(10*time.Millisecond))
		if !a.isHot("q=phone") {
			t.Errorf("%s: what an instance counts is not hot", name)
		}
		if open := trust == nil || trust.Mode == decode.TrustAll; a.isHot("q=innocent") != open {
			t.Errorf("%s: what is spoofed is hot: %v", name, !open)
		}
	}
}

// A sender that leaves gaps in its sequence numbers keeps a cold key limited forever where every
// sender is believed. Otherwise the key cools as if nothing had been sent.
func TestGapsOfASpoofedSender(t *testing.T) {
	for name, trust := range trustModes() {
		a := underAttack(trust)
		a.honest("shop.terms.hot_param.q=phone:150|c", 0)
		const span = 20 * time.Second
		for after := 100 * time.Millisecond; after < span; after += 100 * time.Millisecond {
			a.honest("shop.terms.hot_param.q=other:1|c", after)
			n := int(after / (100 * time.Millisecond))
			a.packet(outside, fmt.Sprintf("hotparam.meta:1|c|#v:1,%s,b:0.%x.0.0.0.0.0", fields("evil", 1, 2*n, after), 200*n), noon.Add(after))
		}
		if open := trust == nil || trust.Mode == decode.TrustAll; a.isHot("q=phone") != open {
			t.Errorf("%s: it is hot after %v: %v", name, span, !open)
		}
	}
}

// 20,000 instance names a second make a bounded number of entries, and none where instances have
// to be listed or to sign.
func TestNamesOfASpoofedSender(t *testing.T) {
	for name, trust := range trustModes() {
		a := underAttack(trust)
		const seconds, perSecond = 5, 20_000
		for i := range seconds * perSecond {
			after := time.Duration(i) * time.Second / perSecond
			if a.from = outside; a.decoder.AdmitsPacket() {
				a.decoder.Packet([]byte("hotparam.meta:1|c|#v:1,"+fields(fmt.Sprint("n", i), 1, 1, after)), noon.Add(after), a.detector)
			}
		}
		a.honest("", seconds*time.Second)
		names := a.decoder.Instances(noon.Add(seconds * time.Second))
		want := map[string]int{"nobody bounded": 100_000, "all": decode.DefaultCaps.NewNames + 1, "listed": 1, "signed": 1}[name]
		if len(names) != want {
			t.Errorf("%s: %d instances, want %d", name, len(names), want)
		}
		if name != "nobody bounded" && !strings.Contains(fmt.Sprint(names), "api-1") {
			t.Errorf("%s: the honest one is not among them", name)
		}
	}
}
