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
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// requestLoad holds the requests of the measurement: two parameters, "q=…&b=2", with values of q
// by Zipf's law with exponent 1.1, or the same values elsewhere in the request. Its methods must
// not be called concurrently.
type requestLoad struct {
	queries []string // their number is a power of two
	values  []string // values of q, substrings of the queries
	seed    maphash.Seed
	counts  map[uint64]*atomic.Int64
	buf     [64]byte
	next    int // number of the next request

	cases  []requestCase
	socket net.PacketConn
	guards []*benchGuard
	w      discardWriter
	end    context.CancelFunc // ends the context of the requests, which can end like a server's
}

// requestCase is one case of a request.
type requestCase struct {
	name, what string
	step       func(i int)
	counting   *collector.Collector // collector of the counts of step
	// wrong returns the number of requests with an unexpected outcome.
	wrong func() int
}

// requestValues is the default number of values.
const requestValues = 100_000

// newRequestLoad returns the load: a map of all values for the floor, and guards and collectors
// with their defaults, which have seen the stream once. The collectors send to a socket that no
// process reads, so that the cost is exactly the sender's usual cost.
func newRequestLoad(ctx context.Context, values int) (*requestLoad, error) {
	l := &requestLoad{seed: maphash.MakeSeed(), counts: make(map[uint64]*atomic.Int64, values)}
	for i := range values {
		l.counts[maphash.Bytes(l.seed, yardstick.SortTwo(l.buf[:0], queryOf(i+1)))] = new(atomic.Int64)
	}
	zipf := yardstick.NewZipf(yardstick.NewRand(1), 1.1, values)
	draws := 1 << bits.Len(uint(values))
	l.queries, l.values = make([]string, draws), make([]string, draws)
	for i := range l.queries {
		q := queryOf(zipf.Draw()) // a separate string next to the previous ones, as if from a connection
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

// queryIndex returns the index of request i in the stream, which repeats.
func (l *requestLoad) queryIndex(i int) int { return i & (len(l.queries) - 1) }

// floor does the least work that counts request i. It sorts two parameters without escapes by
// hand, computes a hash, loads from a map that never changes, and makes one atomic add.
func (l *requestLoad) floor(i int) {
	l.counts[maphash.Bytes(l.seed, yardstick.SortTwo(l.buf[:0], l.queries[l.queryIndex(i)]))].Add(1)
}

// check returns an error if the requests had other outcomes than the measured ones.
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
	sink     collector.Sink
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
	g.HotSet().Update("", published.Change{Hot: []published.Hot{{Key: key, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit}}})
}

// warm runs the stream through the guard once.
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

// discardWriter is an http.ResponseWriter that keeps only the status.
type discardWriter struct {
	header http.Header
	status int
}

func (w *discardWriter) Header() http.Header         { return w.header }
func (w *discardWriter) WriteHeader(status int)      { w.status = status }
func (w *discardWriter) Write(p []byte) (int, error) { return len(p), nil }

// reset prepares the writer for another response.
func (w *discardWriter) reset() {
	clear(w.header)
	w.status = 0
}
