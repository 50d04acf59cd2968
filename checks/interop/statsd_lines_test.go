package interop

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/middleware"
)

// Terms with characters that have a meaning in transit, and their spelling in a line: plain, for
// hotparam's own listener, and strict, for another StatsD.
var golden = []struct{ term, plain, strict string }{
	{"phone", "phone", "phone"},
	{"red shoes", "red%2520shoes", "red_2520shoes"},
	{"für", "f%25C3%25BCr", "f_25C3_25BCr"},
	{"日本", "%25E6%2597%25A5%25E6%259C%25AC", "_25E6_2597_25A5_25E6_259C_25AC"},
	{"😀", "%25F0%259F%2598%2580", "_25F0_259F_2598_2580"},
	{"50%", "50%2525", "50_2525"},
	{"%C3%BC", "%2525C3%2525BC", "_2525C3_2525BC"},
	{"v1.2..", "v1%2E2%2E%2E", "v1_2E2_2E_2E"},
	{"a:1|c|@0.1|#t", "a%253A1%257Cc%257C%25400%2E1%257C%2523t", "a_253A1_257Cc_257C_25400_2E1_257C_2523t"},
	{"c++", "c%252B%252B", "c_252B_252B"},
	{"a/b?c=d&e;f,g[h]", "a%252Fb%253Fc%253Dd%2526e%253Bf%252Cg%255Bh%255D", "a_252Fb_253Fc_253Dd_2526e_253Bf_252Cg_255Bh_255D"},
	{`"it's" (a*b)!`, "%2522it%2527s%2522%2520%2528a%252Ab%2529%2521", "_2522it_2527s_2522_2520_2528a_252Ab_2529_2521"},
	{"`$x` \\ {<^>}", "%2560%2524x%2560%2520%255C%2520%257B%253C%255E%253E%257D", "_2560_2524x_2560_2520_255C_2520_257B_253C_255E_253E_257D"},
	{"-_~", "-_~", "-_5F_7E"},
	{"_41%41", "_41%252541", "_5F41_252541"},
	{"\x01\t\n\x7f", "%2501%2509%250A%257F", "_2501_2509_250A_257F"},
	{"-n", "-n", "-n"},
	{" ", "%2520", "_2520"},
	{"", "", ""},
}

// The part of a line before a term.
const (
	plainHead  = "shop.search-terms.hot_param.GET%20/search?q="
	strictHead = "shop.search-terms.hot_param.GET_20_2Fsearch_3Fq="
)

func goldenTerms() (terms []string) {
	for _, g := range golden {
		terms = append(terms, g.term)
	}
	return terms
}

// goldenCounts returns the names in lines, with the counts of one search for each term.
func goldenCounts(e wire.Encoding) map[string]int {
	counts := make(map[string]int)
	for _, g := range golden {
		if e == wire.Strict {
			counts[strictHead+g.strict]++
		} else {
			counts[plainHead+g.plain]++
		}
	}
	return counts
}

// Programs spell a term as hotparam's own middleware does.
func TestLinesOfTheMiddleware(t *testing.T) {
	file, err := config.Load(writeRules(t, testRules(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []wire.Encoding{wire.Plain, wire.Strict} {
		t.Run(e.String(), func(t *testing.T) {
			sent := &packets{}
			sink, err := statsdsink.New(statsdsink.Config{Rules: file.Rules, Sender: sent, Strict: e == wire.Strict, NoMeta: true, Instance: "test"})
			if err != nil {
				t.Fatal(err)
			}
			counts, err := collector.New(collector.Config{Sink: sink, Rules: file.Rules})
			if err != nil {
				t.Fatal(err)
			}
			guard, err := middleware.New(file.Rules, counts)
			if err != nil {
				t.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.HandleFunc("GET /search", func(http.ResponseWriter, *http.Request) {})
			api := guard.Handler(mux)
			for _, term := range goldenTerms() {
				api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/search?q="+url.QueryEscape(term), http.NoBody))
			}
			counts.Flush(context.Background(), time.Now())
			checkCounts(t, countLines(t, sent.Bytes()), goldenCounts(e))
		})
	}
}

// packets stores the packets that a sink sends.
type packets struct{ bytes.Buffer }

func (p *packets) Send(packet []byte) (int, error) { return p.Write(append(packet, '\n')) }
func (p *packets) Close() error                    { return nil }

func TestLinesOfOtherPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for i := range senders {
		s := &senders[i]
		t.Run(s.name, func(t *testing.T) {
			in := listen(t)
			s.runExample(t, in.address(), goldenTerms()...)
			in.check(t, goldenCounts(wire.Plain))
			if s.strict != "" {
				s.runStrict(t, in.address(), goldenTerms()...)
				in.check(t, goldenCounts(wire.Strict))
			}
		})
	}
}

// inbox is a UDP socket that only reads.
type inbox struct{ net.PacketConn }

func listen(t *testing.T) inbox {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return inbox{c}
}

func (in inbox) address() string { return in.LocalAddr().String() }

// check reads all that a finished program has sent. The counts must add up to want.
func (in inbox) check(t *testing.T, want map[string]int) {
	t.Helper()
	var text []byte
	packet := make([]byte, 1<<16)
	for got := map[string]int{}; sum(got) < sum(want); got = countLines(t, text) {
		if err := in.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, _, err := in.ReadFrom(packet)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, packet[:n]...), '\n')
	}
	checkCounts(t, countLines(t, text), want)
}

// Clients may append tags to a count, and they send metrics of their own.
var (
	countLine = regexp.MustCompile(`^([^:|]*):([0-9]+)\|c(\|.*)?$`)
	telemetry = regexp.MustCompile(`^datadog\.dogstatsd\.client\.`)
)

// countLines adds up the counts of each name.
func countLines(t *testing.T, text []byte) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || telemetry.MatchString(line) {
			continue
		}
		match := countLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("%q is no count", line)
		}
		n, err := strconv.Atoi(match[2])
		if err != nil {
			t.Fatal(err)
		}
		counts[match[1]] += n
	}
	return counts
}

func checkCounts(t *testing.T, got, want map[string]int) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%q was counted %d times, want %d", name, got[name], n)
		}
	}
	for name, n := range got {
		if want[name] == 0 {
			t.Errorf("%q was counted %d times, want none", name, n)
		}
	}
}

func sum(counts map[string]int) (n int) {
	for _, m := range counts {
		n += m
	}
	return n
}
