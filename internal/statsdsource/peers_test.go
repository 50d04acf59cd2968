package statsdsource

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Datagrams and connections from other addresses are refused before any of their data is read.
// Unix sockets have no addresses, and stay open.
func TestListedSenders(t *testing.T) {
	unix := socketPath(t)
	for _, test := range []struct {
		senders []netip.Prefix
		counts  int64
		refused int64
	}{
		{prefixes("127.0.0.0/8"), 5, 0},
		{prefixes("10.0.0.0/8", "::1/128"), 2, 3},
	} {
		listen := []string{"127.0.0.1:0", "tcp://127.0.0.1:0", "unix://" + unix, "unixstream://" + unix + "s", "[::]:0"}
		a, err := New(t.Context(), Config{
			Rules: testRules(hotRule("terms", 100, time.Second)), Publisher: newRecorder(), Listen: listen,
			Trust: &decode.Trust{Mode: decode.TrustListed, Senders: test.senders, Caps: decode.DefaultCaps},
		})
		if err != nil {
			t.Fatal(err)
		}
		ran := make(chan error, 1)
		ctx, stop := t.Context(), a.listener.close
		go func() { ran <- a.Run(ctx) }()
		for i, address := range a.Addrs() {
			network, to := address.Network(), address.String()
			if i == 4 { // an address of IPv4 comes mapped there
				to = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), address.(*net.UDPAddr).AddrPort().Port()).String()
			}
			conn, err := net.Dial(network, to)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			send(t, conn, "shop.terms.hot_param.k:1|c\n")
		}
		testenv.Eventually(t, fmt.Sprintf("%d counts, %d refused", test.counts, test.refused), func() bool {
			s := a.Stats().Decoder
			return s.Counts == test.counts && s.Refused[decode.RefusedUnlisted] == test.refused
		}, func() any { return a.Stats().Decoder })
		_ = stop()
		<-ran
	}
}

// Source addresses cost nothing if they are not used, and no allocation if they are.
func TestSourcesDoNotAllocate(t *testing.T) {
	l, err := listenStatsD(t.Context(), []string{"127.0.0.1:0"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	r := l.packets[0].receiver
	conn, err := net.Dial("udp", l.addrs[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	read := func() (from netip.Addr) {
		send(t, conn, "x")
		if _, err := r.read(); err != nil {
			t.Fatal(err)
		}
		return r.source(0)
	}
	if from := read(); from.IsValid() {
		t.Errorf("not asked for, it is %v", from)
	}
	r.askSources()
	if from := read(); from.String() != "127.0.0.1" {
		t.Errorf("it is from %v", from)
	}
	if n := testing.AllocsPerRun(100, func() { read() }); n > 1 { // of the conversion of the text that is sent
		t.Errorf("%v allocations", n)
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}
