package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/internal/pace"
	"github.com/hotparam/hotparam/middleware"
)

// RequestConfig says how what a request pays is measured. The zero value is the
// default.
type RequestConfig struct {
	// Rounds is how often each way is measured, in turns; 0 is 12.
	Rounds int
	// Slice is how long it is measured each time, flushes included; 0 is 200 ms, in
	// which there are two.
	Slice time.Duration
	// Progress, if not nil, is called with how much of the run is over.
	Progress func(done, total int)
}

// RequestResult is what a request pays: medians over the rounds, in time of the one
// processor, so that what else runs on the machine is not in them. The request's own
// goroutine pays FloorNS, ColdNS and HotNS; FlushNS is paid by another, on the side.
type RequestResult struct {
	FloorNS    float64 `json:"floor_ns"` // the least that counting a request can cost: see [RequestLoad.Floor]
	ColdNS     float64 `json:"cold_ns"`  // the whole check of a request whose key is not hot
	ColdAllocs float64 `json:"cold_allocs"`
	HotNS      float64 `json:"hot_ns"` // the same where the key is hot, and its bucket decides
	HotAllocs  float64 `json:"hot_allocs"`
	// FlushNS is what the collector's flushes, each 100 ms, and the socket that they
	// send to take for each cold request, while these come as fast as they can.
	// Their allocations are in ColdAllocs.
	FlushNS float64 `json:"flush_ns"`
}

// Request measures what a request pays on one processor, to which it sets the
// runtime until it returns.
func Request(ctx context.Context, c RequestConfig) (RequestResult, error) {
	if c.Rounds == 0 {
		c.Rounds = 12
	}
	if c.Slice == 0 {
		c.Slice = 2 * pace.Flush
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	load, err := NewRequestLoad(ctx)
	if err != nil {
		return RequestResult{}, err
	}
	measured, err := load.measure(ctx, c)
	return measured, errors.Join(err, load.Close())
}

func (l *RequestLoad) measure(ctx context.Context, c RequestConfig) (RequestResult, error) {
	ways := []struct {
		step              func(i int)
		ns, flush, allocs []float64
	}{{step: l.Floor}, {step: l.Cold}, {step: l.Hot}}
	for round := range c.Rounds {
		for i := range ways {
			way := &ways[i]
			took, err := l.perCall(ctx, way.step, c.Slice)
			if err != nil {
				return RequestResult{}, err
			}
			way.ns, way.flush, way.allocs = append(way.ns, took.ns), append(way.flush, took.flush), append(way.allocs, took.allocs)
			if c.Progress != nil {
				c.Progress(round*len(ways)+i+1, c.Rounds*len(ways))
			}
		}
	}
	floor, cold, hot := &ways[0], &ways[1], &ways[2]
	return RequestResult{
		FloorNS: tenth(Median(floor.ns)),
		ColdNS:  tenth(Median(cold.ns)), ColdAllocs: tenth(Median(cold.allocs)),
		HotNS: tenth(Median(hot.ns)), HotAllocs: tenth(Median(hot.allocs)),
		FlushNS: tenth(Median(cold.flush)),
	}, l.check()
}

// callCost is what a call takes: nanoseconds of processor time, of its own and of
// the flushes for it, and allocations of both.
type callCost struct{ ns, flush, allocs float64 }

// perCall returns what a call of step takes, where it is called for a time and what
// it counted is flushed each 100 ms.
func (l *RequestLoad) perCall(ctx context.Context, step func(i int), length time.Duration) (callCost, error) {
	const batch = 1 << 12 // calls between two looks at the clock
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	calls := 0
	var own, flushes time.Duration
	for left := length; left > 0; left -= pace.Flush {
		if err := ctx.Err(); err != nil {
			return callCost{}, err
		}
		from, err := cpuTime()
		if err != nil {
			return callCost{}, err
		}
		start := time.Now()
		for time.Since(start) < min(left, pace.Flush) {
			for range batch {
				step(calls)
				calls++
			}
		}
		counted, err := cpuTime()
		if err != nil {
			return callCost{}, err
		}
		l.counting.Flush(ctx, start)
		flushed, err := cpuTime()
		if err != nil {
			return callCost{}, err
		}
		own, flushes = own+counted-from, flushes+flushed-counted
	}
	runtime.ReadMemStats(&after)
	per := 1 / float64(calls)
	return callCost{
		ns:     float64(own.Nanoseconds()) * per,
		flush:  float64(flushes.Nanoseconds()) * per,
		allocs: float64(after.Mallocs-before.Mallocs) * per,
	}, nil
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

// RequestLoad is what requests are measured with: two parameters, "q=…&b=2", of
// which q has 100,000 values by Zipf's law with exponent 1.1. Its methods are for
// one goroutine.
type RequestLoad struct {
	queries []string
	seed    maphash.Seed
	counts  map[uint64]*atomic.Int64
	buf     [64]byte

	guard           *middleware.Guard
	counting        *collector.Collector
	sink            *statsdsink.Sink
	socket          net.PacketConn
	wrong           int // cold requests that were refused
	passed, refused int // hot requests
}

// Requests of a [RequestLoad].
const (
	requestValues = 100_000
	requestDraws  = 1 << 17 // before the stream starts over: a power of two
)

// NewRequestLoad makes the load: a map of all values for the floor, and a guard and
// collector as they are by default, which have seen the stream once. The collector
// sends to a socket that no process reads: sending costs the sender what it always
// costs, and nothing else.
func NewRequestLoad(ctx context.Context) (*RequestLoad, error) {
	l := &RequestLoad{seed: maphash.MakeSeed(), counts: make(map[uint64]*atomic.Int64, requestValues)}
	for i := range requestValues {
		l.counts[maphash.Bytes(l.seed, sortTwo(l.buf[:0], queryOf(i+1)))] = new(atomic.Int64)
	}
	zipf := NewZipf(newRand(1), 1.1, requestValues)
	l.queries = make([]string, requestDraws)
	for i := range l.queries {
		l.queries[i] = queryOf(zipf.Draw()) // with bytes of its own, next to those before it, as it comes from a connection
	}
	if err := l.start(ctx); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return l, nil
}

func queryOf(value int) string { return "q=" + strconv.Itoa(value) + "&b=2" }

// hotQuery is a request whose key is hot.
const hotQuery = "q=hot&b=2"

func (l *RequestLoad) start(ctx context.Context) error {
	rules := searchRules("shop", hotparam.NewThreshold(unreachable),
		&hotparam.Limit{Quota: hotparam.Quota{Rate: hotparam.Rate{N: 1, Per: time.Hour}, Burst: 1}, Mode: hotparam.ModeLimit})
	var lc net.ListenConfig
	var err error
	if l.socket, err = lc.ListenPacket(ctx, "udp", "127.0.0.1:0"); err != nil {
		return err
	}
	l.sink, err = statsdsink.New(statsdsink.Config{Rules: rules, Addrs: []string{l.socket.LocalAddr().String()}, Instance: "bench"})
	if err != nil {
		return errors.Join(err, l.socket.Close())
	}
	if l.counting, err = collector.New(collector.Config{Sink: l.sink, Rules: rules}); err != nil {
		return errors.Join(err, l.Close())
	}
	if l.guard, err = middleware.New(rules, l.counting); err != nil {
		return errors.Join(err, l.Close())
	}
	for i, q := range l.queries {
		l.guard.Check(request(q))
		if i%10_000 == 0 {
			l.counting.Flush(ctx, time.Now())
		}
	}
	l.guard.HotSet().Update("", hotparam.Change{Hot: []hotparam.Hot{{
		Key: hotparam.Key{Rule: "terms", Text: route + "?b=2&q=hot"}, Low: 1, High: 1, Rate: 1, Mode: hotparam.ModeLimit,
	}}})
	return nil
}

// Close closes the sockets.
func (l *RequestLoad) Close() error { return errors.Join(l.sink.Close(), l.socket.Close()) }

// Floor is the least that counting request i can cost: its two parameters, in which
// there is nothing to decode, sorted by hand, a hash, a load from a map that never
// changes, one atomic add.
func (l *RequestLoad) Floor(i int) {
	l.counts[maphash.Bytes(l.seed, sortTwo(l.buf[:0], l.queries[i%requestDraws]))].Add(1)
}

// Cold is the whole check of request i, whose key is not hot.
func (l *RequestLoad) Cold(i int) {
	if !l.guard.Check(request(l.queries[i%requestDraws])).Allowed {
		l.wrong++
	}
}

// Hot is the whole check of a request whose key is hot and, from the second one
// on, over its limit.
func (l *RequestLoad) Hot(int) {
	if l.guard.Check(request(hotQuery)).Allowed {
		l.passed++
	} else {
		l.refused++
	}
}

// check returns an error if the load did not do what it was to measure.
func (l *RequestLoad) check() error {
	switch {
	case l.wrong > 0:
		return fmt.Errorf("bench: %d requests were refused whose keys are not hot", l.wrong)
	case l.passed > 1 || l.refused == 0:
		return fmt.Errorf("bench: of the hot key's requests %d passed and %d were refused; want one and the others", l.passed, l.refused)
	}
	return nil
}

func request(query string) middleware.Request {
	return middleware.Request{Method: "GET", Path: "/search", Query: query, Pattern: route}
}

// sortTwo sorts a query that is known to have two parameters, with nothing to
// decode: the least that making a key can be.
func sortTwo(dst []byte, query string) []byte {
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
