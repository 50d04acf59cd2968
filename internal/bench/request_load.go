package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/bits"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// requestLoad is what requests are measured with: two parameters, "q=…&b=2", of
// which q has values by Zipf's law with exponent 1.1, or the same values
// elsewhere in the request. Its methods are for one goroutine.
type requestLoad struct {
	queries []string // a power of two
	values  []string // of q, pieces of the queries
	seed    maphash.Seed
	counts  map[uint64]*atomic.Int64
	buf     [64]byte
	next    int // the request that comes next

	cases  []requestCase
	socket net.PacketConn
	guards []*benchGuard
	w      discardWriter
	end    context.CancelFunc // of the context that requests have: one that can end, as a server's
}

// requestCase is one way that a request can go.
type requestCase struct {
	name, what string
	step       func(i int)
	counting   *collector.Collector // that step counts with
	// wrong is how many requests did not go that way.
	wrong func() int
}

// requestValues is how many values there are by default.
const requestValues = 100_000

// newRequestLoad makes the load: a map of all values for the floor, and guards and
// collectors as they are by default, which have seen the stream once. The collectors
// send to a socket that no process reads: sending costs the sender what it always
// costs, and nothing else.
func newRequestLoad(ctx context.Context, values int) (*requestLoad, error) {
	l := &requestLoad{seed: maphash.MakeSeed(), counts: make(map[uint64]*atomic.Int64, values)}
	for i := range values {
		l.counts[maphash.Bytes(l.seed, SortTwo(l.buf[:0], queryOf(i+1)))] = new(atomic.Int64)
	}
	zipf := NewZipf(newRand(1), 1.1, values)
	draws := 1 << bits.Len(uint(values))
	l.queries, l.values = make([]string, draws), make([]string, draws)
	for i := range l.queries {
		q := queryOf(zipf.Draw()) // with bytes of its own, next to those before it, as it comes from a connection
		l.queries[i], l.values[i] = q, q[len("q="):strings.IndexByte(q, '&')]
	}
	var lc net.ListenConfig
	var err error
	if l.socket, err = lc.ListenPacket(ctx, "udp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	ctx, l.end = context.WithCancel(ctx)
	if err := l.addCases(ctx); err != nil {
		return nil, fmt.Errorf("bench: %w", errors.Join(err, l.Close()))
	}
	return l, nil
}

func queryOf(value int) string { return "q=" + strconv.Itoa(value) + "&b=2" }

// Close closes the sockets and ends the requests' context.
func (l *requestLoad) Close() error {
	l.end()
	err := l.socket.Close()
	for _, g := range l.guards {
		err = errors.Join(err, g.sink.Close())
	}
	return err
}

// at is where request i is in the stream, which starts over.
func (l *requestLoad) at(i int) int { return i & (len(l.queries) - 1) }

// floor is the least that counting request i can cost: its two parameters, in which
// there is nothing to decode, sorted by hand, a hash, a load from a map that never
// changes, one atomic add.
func (l *requestLoad) floor(i int) {
	l.counts[maphash.Bytes(l.seed, SortTwo(l.buf[:0], l.queries[l.at(i)]))].Add(1)
}

// check returns an error if the load did not do what it was to measure.
func (l *requestLoad) check() error {
	for _, c := range l.cases {
		if n := c.wrong(); n > 0 {
			return fmt.Errorf("bench: %d requests did not do what %q measures: %s", n, c.name, c.what)
		}
	}
	for _, g := range l.guards {
		if n := g.counting.Stats().Dropped.Sum(); n > 0 {
			return fmt.Errorf("bench: a collector dropped %d counts", n)
		}
	}
	return nil
}

// benchGuard is a guard whose collector sends to the load's socket.
type benchGuard struct {
	*middleware.Guard
	counting *collector.Collector
	sink     *statsdsink.Sink
}

func (l *requestLoad) newGuard(rules *rules.Rules, options ...middleware.Option) (*benchGuard, error) {
	sink, err := statsdsink.New(statsdsink.Config{Rules: rules, Addrs: []string{l.socket.LocalAddr().String()}, Instance: "bench"})
	if err != nil {
		return nil, err
	}
	g := &benchGuard{sink: sink}
	l.guards = append(l.guards, g)
	if g.counting, err = collector.New(collector.Config{Sink: g.sink, Rules: rules}); err != nil {
		return nil, err
	}
	g.Guard, err = middleware.New(rules, g.counting, options...)
	return g, err
}

// heat makes a key hot.
func (g *benchGuard) heat(key rules.Key) {
	g.HotSet().Update("", rules.Change{Hot: []rules.Hot{{Key: key, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit}}})
}

// warm has the guard see the stream once.
func (g *benchGuard) warm(ctx context.Context, draws int, step func(i int)) {
	for i := range draws {
		step(i)
		if i%10_000 == 0 {
			g.counting.Flush(ctx, time.Now())
		}
	}
}

func request(query string) middleware.Request {
	return middleware.Request{Method: "GET", Path: "/search", Query: query, Pattern: route}
}

// discardWriter is an http.ResponseWriter that keeps nothing but its status.
type discardWriter struct {
	header http.Header
	status int
}

func (w *discardWriter) Header() http.Header         { return w.header }
func (w *discardWriter) WriteHeader(status int)      { w.status = status }
func (w *discardWriter) Write(p []byte) (int, error) { return len(p), nil }

// reset makes it the writer of another response.
func (w *discardWriter) reset() {
	clear(w.header)
	w.status = 0
}

// SortTwo appends a query of two parameters to dst, with the parameters sorted and nothing
// decoded. It is the least work that makes a key.
func SortTwo(dst []byte, query string) []byte {
	amp := 0
	for query[amp] != '&' {
		amp++
	}
	first, second := query[:amp], query[amp+1:]
	if second < first {
		first, second = second, first
	}
	dst = append(dst, first...)
	dst = append(dst, '&')
	return append(dst, second...)
}
