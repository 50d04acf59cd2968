package header

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func proxies(header rules.ClientHeader, trusted ...string) *rules.Client {
	c := &rules.Client{Header: header}
	for _, s := range trusted {
		if s == "unix" {
			c.TrustUnix = true
			continue
		}
		c.Trusted = append(c.Trusted, netip.MustParsePrefix(s))
	}
	return c
}

func TestClientAddr(t *testing.T) {
	private := []string{"10.0.0.0/8", "fd00::/8"}
	for name, test := range map[string]struct {
		client *rules.Client
		peer   string
		header []string
		want   string
	}{
		"no proxies":                     {&rules.Client{}, "10.0.0.1:80", []string{"192.0.2.7"}, "10.0.0.1"},
		"an untrusted peer spoofs":       {proxies("x-forwarded-for", private...), "192.0.2.9:80", []string{"192.0.2.7"}, "192.0.2.9"},
		"one proxy":                      {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"192.0.2.7"}, "192.0.2.7"},
		"a client spoofs":                {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"10.0.0.5, 1.1.1.1, 192.0.2.7"}, "192.0.2.7"},
		"two proxies":                    {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"1.1.1.1, 192.0.2.7, 10.0.0.2"}, "192.0.2.7"},
		"lines":                          {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"1.1.1.1", "192.0.2.7", "10.0.0.2"}, "192.0.2.7"},
		"all are trusted":                {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		"no header":                      {proxies("x-forwarded-for", private...), "10.0.0.1:80", nil, "10.0.0.1"},
		"garbage of a proxy":             {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"192.0.2.7, unknown"}, "10.0.0.1"},
		"garbage of a client":            {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"', 10.0.0.9 evil\x00, 192.0.2.7"}, "192.0.2.7"},
		"empty entries":                  {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"192.0.2.7,, ,", ""}, "192.0.2.7"},
		"ports":                          {proxies("x-forwarded-for", private...), "[fd00::1]:80", []string{"192.0.2.7:9, 10.0.0.2:8"}, "192.0.2.7"},
		"IPv6":                           {proxies("x-forwarded-for", private...), "[fd00::1]:80", []string{"2001:db8::7, [fd00::2], [fd00::3]:80"}, "2001:db8::7"},
		"a zone":                         {proxies("x-forwarded-for", "fe80::/10"), "[fe80::1%eth0]:80", []string{"2001:db8::7, fe80::2%eth1"}, "2001:db8::7"},
		"a zone of the peer":             {&rules.Client{}, "[fe80::1%eth0]:80", nil, "fe80::1"},
		"IPv4 as IPv6":                   {proxies("x-forwarded-for", private...), "[::ffff:10.0.0.1]:80", []string{"::ffff:192.0.2.7"}, "192.0.2.7"},
		"quotes are none of XFF":         {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{`"192.0.2.7"`}, "10.0.0.1"},
		"the other header":               {proxies("forwarded", private...), "10.0.0.1:80", nil, "10.0.0.1"},
		"no port":                        {&rules.Client{}, "192.0.2.7", nil, "192.0.2.7"},
		"no port, IPv6":                  {&rules.Client{}, "2001:db8::7", nil, "2001:db8::7"},
		"a Unix socket":                  {&rules.Client{}, "@", []string{"192.0.2.7"}, ""},
		"an untrusted Unix socket":       {proxies("x-forwarded-for", private...), "", []string{"192.0.2.7"}, ""},
		"a trusted Unix socket":          {proxies("x-forwarded-for", "unix", "10.0.0.0/8"), "@", []string{"1.1.1.1, 192.0.2.7, 10.0.0.2"}, "192.0.2.7"},
		"a Unix socket, no header":       {proxies("x-forwarded-for", "unix"), "/run/x.sock", nil, ""},
		"no address is no Unix socket":   {proxies("x-forwarded-for", "unix"), "pipe", []string{"192.0.2.7"}, ""},
		"Forwarded":                      {proxies("forwarded", private...), "10.0.0.1:80", []string{`for=1.1.1.1, For="192.0.2.7:47011";proto=http;by=10.0.0.1`}, "192.0.2.7"},
		"Forwarded, IPv6":                {proxies("forwarded", private...), "10.0.0.1:80", []string{`proto=https ; for="[2001:db8::7]:_x" , for="[fd00::2]"`}, "2001:db8::7"},
		"Forwarded, obfuscated":          {proxies("forwarded", private...), "10.0.0.1:80", []string{`for=192.0.2.7, for=_hidden`}, "10.0.0.1"},
		"Forwarded, unknown":             {proxies("forwarded", private...), "10.0.0.1:80", []string{`for=unknown, for=10.0.0.2`}, "10.0.0.2"},
		"Forwarded, an open quote":       {proxies("forwarded", private...), "10.0.0.1:80", []string{`for="1.1.1.1, for=192.0.2.7`}, "192.0.2.7"},
		"Forwarded, quotes on both":      {proxies("forwarded", private...), "10.0.0.1:80", []string{`for="1.1.1.1, for="[2001:db8::7]"`}, "2001:db8::7"},
		"Forwarded, a comma in quotes":   {proxies("forwarded", private...), "10.0.0.1:80", []string{`for=192.0.2.7;host="a, for=1.1.1.1\", for=2.2.2.2\\"`}, "192.0.2.7"},
		"Forwarded, a semicolon":         {proxies("forwarded", private...), "10.0.0.1:80", []string{`host="x;for=1.1.1.1\";for=2.2.2.2";for=192.0.2.7`}, "192.0.2.7"},
		"Forwarded, escapes":             {proxies("forwarded", private...), "10.0.0.1:80", []string{`for="\192.0.2.\7"`}, "192.0.2.7"},
		"Forwarded, for twice":           {proxies("forwarded", private...), "10.0.0.1:80", []string{`for=1.1.1.1;for=192.0.2.7`}, "10.0.0.1"},
		"Forwarded, no for":              {proxies("forwarded", private...), "10.0.0.1:80", []string{`for=192.0.2.7, proto=https`}, "10.0.0.1"},
		"Forwarded, a broken last quote": {proxies("forwarded", private...), "10.0.0.1:80", []string{`for=1.1.1.1, for=192.0.2.7"`}, "10.0.0.1"},
		"a thousand spoofed":             {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{strings.Repeat("10.9.9.9, ", 1000) + "192.0.2.7"}, "192.0.2.7"},
		"a thousand proxies":             {proxies("x-forwarded-for", private...), "10.0.0.1:80", []string{"192.0.2.7" + strings.Repeat(", 10.9.9.9", 1000)}, "10.9.9.9"},
	} {
		r := &http.Request{RemoteAddr: test.peer, Header: http.Header{"X-Forwarded-For": test.header}}
		if test.client.Header == rules.Forwarded {
			r.Header = http.Header{"Forwarded": test.header, "X-Forwarded-For": {"6.6.6.6"}}
		}
		got := ""
		if ip, ok := ClientAddr(test.client, r); ok {
			got = ip.String()
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// hop is one entry of a header, and its text in each header.
type hop struct {
	addr string // "" if none
	text map[rules.ClientHeader]string
}

func drawHop(t *rapid.T) hop {
	addr := rapid.SampledFrom([]string{"10.0.0.1", "10.9.8.7", "192.0.2.7", "203.0.113.9", "fd00::1", "2001:db8::7"}).Draw(t, "addr")
	port := rapid.SampledFrom([]string{"", ":1", ":65535"}).Draw(t, "port")
	plain := addr
	if strings.Contains(addr, ":") && (port != "" || rapid.Bool().Draw(t, "brackets")) {
		plain = "[" + addr + "]"
	}
	plain += port
	node := plain
	if strings.Contains(addr, ":") && plain[0] != '[' {
		node = "[" + addr + "]"
	}
	if strings.ContainsAny(node, ":[") || rapid.Bool().Draw(t, "quoted") {
		node = `"` + node + `"`
	}
	node = rapid.SampledFrom([]string{"for=", "For=", "proto=http;for=", `host="a,\"b;";for=`}).Draw(t, "for") + node + rapid.SampledFrom([]string{"", ";by=_x", `;host="c, for=\"6.6.6.6\\"`, "; proto=https"}).Draw(t, "behind")
	if rapid.IntRange(0, 5).Draw(t, "unknown") == 0 {
		word := rapid.SampledFrom([]string{"unknown", "_hidden", "x.y"}).Draw(t, "word")
		return hop{"", map[rules.ClientHeader]string{rules.XForwardedFor: word, rules.Forwarded: "for=" + word}}
	}
	return hop{addr, map[rules.ClientHeader]string{rules.XForwardedFor: plain, rules.Forwarded: node}}
}

// The client is the first untrusted hop from the right, whatever stands to its left and however
// the header is split into lines.
func TestClientAddrIsThatOfTheChain(t *testing.T) {
	trusted := []string{"10.0.0.0/8", "fd00::/8"}
	isOurs := func(addr string) bool {
		for _, s := range trusted {
			if _, network, _ := net.ParseCIDR(s); network.Contains(net.ParseIP(addr)) {
				return true
			}
		}
		return false
	}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]rules.ClientHeader{rules.XForwardedFor, rules.Forwarded}).Draw(t, "header")
		peer := drawHop(t)
		if peer.addr == "" {
			peer.addr = "10.0.0.1"
		}
		hops := rapid.SliceOfN(rapid.Custom(drawHop), 0, 6).Draw(t, "hops")
		want := peer.addr
		end := len(hops) // entries that are read
		for end > 0 && isOurs(want) && hops[end-1].addr != "" {
			end--
			want = hops[end].addr
		}
		var lines []string
		for i, h := range hops {
			text := h.text[kind]
			if i < end-1 { // a client may send anything there
				text = rapid.OneOf(rapid.Just(text), rapid.String(), rapid.SampledFrom([]string{`for="`, `"`, `\`, `for="\`, ",", ";"})).Draw(t, "spoof")
			}
			if i == 0 || rapid.Bool().Draw(t, "line") {
				lines = append(lines, text)
			} else {
				lines[len(lines)-1] += rapid.SampledFrom([]string{",", ", ", " ,\t", ", , "}).Draw(t, "comma") + text
			}
		}
		r := &http.Request{RemoteAddr: net.JoinHostPort(peer.addr, "1"), Header: http.Header{http.CanonicalHeaderKey(string(kind)): lines}}
		if got, ok := ClientAddr(proxies(kind, trusted...), r); !ok || !net.ParseIP(want).Equal(net.IP(got.AsSlice())) {
			t.Fatalf("%s %q of %s: %v, %v; want %s", kind, lines, peer.addr, got, ok, want)
		}
	})
}

// Whatever a header contains, the address is the peer's or one in the header. For an untrusted
// peer it is always the peer's own.
func FuzzClientAddr(f *testing.F) {
	f.Add("10.0.0.1:80", "192.0.2.7, 10.0.0.2", `for="[2001:db8::7]:80"`)
	f.Add("@", `"`, `for="a\", for=1.1.1.1`)
	f.Add("[fe80::1%25]:1", ",", `for="\`)
	f.Fuzz(func(t *testing.T, peer, xff, forwarded string) {
		for _, kind := range []rules.ClientHeader{rules.XForwardedFor, rules.Forwarded} {
			r := &http.Request{RemoteAddr: peer, Header: http.Header{"X-Forwarded-For": {xff, xff}, "Forwarded": {forwarded}}}
			own, known := ClientAddr(&rules.Client{}, r)
			got, ok := ClientAddr(proxies(kind, "10.0.0.0/8", "unix"), r)
			if known && !ok {
				t.Fatalf("%q: the peer's address is lost", peer)
			}
			if known && !netip.MustParsePrefix("10.0.0.0/8").Contains(own) && got != own {
				t.Fatalf("%q is not trusted, and gives %v", peer, got)
			}
			if host, _, err := net.SplitHostPort(peer); err == nil && known {
				host, _, _ = strings.Cut(host, "%")
				if ref := net.ParseIP(host); ref == nil || !ref.Equal(net.IP(own.AsSlice())) {
					t.Fatalf("peer %q is %v, net says %v", peer, own, ref)
				}
			}
			if ok && (got.Zone() != "" || got.Is4In6()) {
				t.Fatalf("%v", got)
			}
			// The hop to the right of a client decides.
			r.Header = http.Header{"X-Forwarded-For": {xff + ", 192.0.2.7"}, "Forwarded": {forwarded + `, for="192.0.2.7:1"`}}
			r.RemoteAddr = "10.0.0.1:1"
			if got, _ := ClientAddr(proxies(kind, "10.0.0.0/8"), r); got.String() != "192.0.2.7" {
				t.Fatalf("%s %q: a client is taken for %v", kind, r.Header, got)
			}
		}
	})
}

func TestLongHeadersTakeLittleTime(t *testing.T) {
	for _, line := range []string{strings.Repeat("10.0.0.1,", 100_000), strings.Repeat(`"`, 900_000), strings.Repeat(`\"`, 450_000), strings.Repeat(",", 900_000), strings.Repeat(`for="a",`, 100_000), `"` + strings.Repeat(`\`, 900_000) + `"`} {
		for _, kind := range []rules.ClientHeader{rules.XForwardedFor, rules.Forwarded} {
			r := &http.Request{RemoteAddr: "10.0.0.1:1", Header: http.Header{"X-Forwarded-For": {line}, "Forwarded": {line}}}
			start := time.Now()
			ClientAddr(proxies(kind, "10.0.0.0/8"), r)
			if took := time.Since(start); took > time.Second { // some ms
				t.Errorf("%s %s…: %v", kind, fmt.Sprintf("%.20q", line), took)
			}
		}
	}
}
