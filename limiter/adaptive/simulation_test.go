package adaptive_test

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter/adaptive"
)

// simulatedServer has workers, each of which serves one request after the other, and an unbounded
// queue, which an adaptive limit has to keep short. Time is the simulation's, and chance has a
// fixed seed.
type simulatedServer struct {
	adaptive *adaptive.Limiter
	rand     *rand.Rand
	now      time.Duration
	workers  int
	service  time.Duration // mean time of one request
	steady   bool          // every request takes the same time
	timeout  time.Duration // a longer latency is reported as Dropped; 0 means never
	rate     float64       // requests per second that arrive
	busy     int
	queue    []*simulatedRequest
	events   simulatedEvents
	worked   time.Duration // time worked by all workers
	seen     simulatedSpan
}

type simulatedRequest struct {
	at        time.Duration // time of the next event
	admission adaptive.Admission
	start     time.Duration // time of its admission
}

type simulatedEvents []*simulatedRequest

func (e simulatedEvents) Len() int           { return len(e) }
func (e simulatedEvents) Less(i, j int) bool { return e[i].at < e[j].at }
func (e simulatedEvents) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *simulatedEvents) Push(x any)        { *e = append(*e, x.(*simulatedRequest)) }
func (e *simulatedEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// simulatedSpan holds the observations of a span of time.
type simulatedSpan struct {
	served, denied int
	latency        time.Duration // sum over the served requests
	least, most    int           // the limit
}

func (s simulatedSpan) mean() time.Duration { return s.latency / time.Duration(max(s.served, 1)) }

func newSimulatedServer(t *testing.T, c adaptive.Config, workers int, service time.Duration) *simulatedServer {
	t.Helper()
	a, err := adaptive.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &simulatedServer{adaptive: a, rand: rand.New(rand.NewPCG(1, 2)), workers: workers, service: service}
}

// capacity returns how many requests the server serves in a second.
func (s *simulatedServer) capacity() float64 { return float64(s.workers) / s.service.Seconds() }

// run simulates requests at load times the capacity for a span of time.
func (s *simulatedServer) run(load float64, span time.Duration) simulatedSpan {
	s.rate = load * s.capacity()
	s.seen = simulatedSpan{least: s.adaptive.Limit()}
	end := s.now + span
	next := s.now + s.gap()
	for {
		if len(s.events) > 0 && s.events[0].at <= min(next, end) {
			s.leave(heap.Pop(&s.events).(*simulatedRequest))
		} else if next <= end {
			s.now = next
			s.arrive()
			next += s.gap()
		} else {
			s.now = end
			return s.seen
		}
		s.seen.least, s.seen.most = min(s.seen.least, s.adaptive.Limit()), max(s.seen.most, s.adaptive.Limit())
	}
}

func (s *simulatedServer) gap() time.Duration {
	if s.rate == 0 {
		return 1000 * time.Hour
	}
	return time.Duration(s.rand.ExpFloat64() / s.rate * float64(time.Second))
}

func (s *simulatedServer) arrive() {
	m, d := s.adaptive.Acquire(s.now)
	if !d.Allowed {
		s.seen.denied++
		return
	}
	s.queue = append(s.queue, &simulatedRequest{admission: m, start: s.now})
	s.work()
}

func (s *simulatedServer) work() {
	for s.busy < s.workers && len(s.queue) > 0 {
		r := s.queue[0]
		s.queue = s.queue[1:]
		s.busy++
		took := s.service
		if !s.steady {
			took = time.Duration(s.rand.ExpFloat64() * float64(s.service))
		}
		r.at = s.now + took
		s.worked += took
		heap.Push(&s.events, r)
	}
}

func (s *simulatedServer) leave(r *simulatedRequest) {
	s.now = r.at
	s.busy--
	outcome := adaptive.Success
	if latency := s.now - r.start; s.timeout > 0 && latency > s.timeout {
		outcome = adaptive.Dropped
	} else {
		s.seen.served++
		s.seen.latency += latency
	}
	r.admission.Done(s.now, outcome)
	s.work()
}

// hold runs a load for a span and checks the results. The server must serve at least this share of
// what it could have served. The mean latency must be at most late times the latency without a
// queue.
func (s *simulatedServer) hold(t *testing.T, what string, load float64, span time.Duration, share, late float64) {
	t.Helper()
	got := s.run(load, span)
	due := min(load, 1) * s.capacity() * span.Seconds()
	t.Logf("%s: throughput %.3f, latency %v, limit %d to %d, base %v",
		what, float64(got.served)/due, got.mean(), got.least, got.most, s.adaptive.Stats().Latency)
	if float64(got.served) < share*due {
		t.Errorf("%s: %d served, want %.0f of %.0f at least", what, got.served, share*due, due)
	}
	if float64(got.mean()) > late*float64(s.service) {
		t.Errorf("%s: mean latency %v, want %.1f × %v at most", what, got.mean(), late, s.service)
	}
	if got.least < s.workers/3 {
		t.Errorf("%s: limit down to %d, with %d workers", what, got.least, s.workers)
	}
}

// Under any load the server is kept busy and answers are not late. The limit is found again when
// the server changes, either in how many requests it serves at a time or in how long each takes.
func TestAdaptiveSimulated(t *testing.T) {
	for _, workers := range []int{10, 30} {
		for _, steady := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d workers, steady %v", workers, steady), func(t *testing.T) {
				s := newSimulatedServer(t, adaptive.Config{Max: 10_000}, workers, 50*time.Millisecond)
				s.steady = steady
				share, late := 0.9, 2.5
				if workers < 20 && !steady { // chance leaves some of so few idle, and others late
					share, late = 0.8, 3.5
				}
				for _, load := range []float64{0.5, 0.8, 1, 1.5, 2, 3, 5, 2, 1, 0.5} {
					s.run(load, 5*time.Second)
					s.hold(t, fmt.Sprintf("load %.1f", load), load, 15*time.Second, share, late)
				}
				for _, tc := range []struct {
					what    string
					workers int
					service time.Duration
				}{
					{"half the workers", workers / 2, 50 * time.Millisecond},
					{"all again", workers, 50 * time.Millisecond},
					{"twice as slow", workers, 100 * time.Millisecond},
					{"as fast again", workers, 50 * time.Millisecond},
				} {
					s.workers, s.service = tc.workers, tc.service
					s.run(2, 40*time.Second)
					s.hold(t, tc.what, 2, 15*time.Second, share, late)
				}
			})
		}
	}
}

// A limit that starts far too low doubles in each round.
func TestAdaptiveSimulatedFromBelow(t *testing.T) {
	s := newSimulatedServer(t, adaptive.Config{Initial: 5}, 500, 50*time.Millisecond)
	s.run(1.5, 10*time.Second)
	s.hold(t, "overload", 1.5, 5*time.Second, 0.9, 2.5)
}

// A limit that starts far too high falls at the first overload.
func TestAdaptiveSimulatedFromAbove(t *testing.T) {
	s := newSimulatedServer(t, adaptive.Config{Initial: 1000}, 10, 20*time.Millisecond)
	s.run(3, time.Minute)
	s.hold(t, "overload", 3, 15*time.Second, 0.9, 2.5)
}

// A time with few or no requests hardly changes the limit.
func TestAdaptiveSimulatedIdle(t *testing.T) {
	s := newSimulatedServer(t, adaptive.Config{}, 40, 20*time.Millisecond)
	s.run(3, 20*time.Second)
	for _, idle := range []time.Duration{time.Second, time.Minute, 24 * time.Hour} {
		s.run(0.01, time.Minute)
		s.now += idle
		if got := s.adaptive.Limit(); got < 30 || got > 100 {
			t.Errorf("after %v: limit %d, with 40 workers", idle, got)
		}
		s.hold(t, fmt.Sprintf("after %v", idle), 3, 10*time.Second, 0.9, 2.5)
	}
}

// Requests that time out lower the limit even if the latency does not matter.
func TestAdaptiveSimulatedDropped(t *testing.T) {
	s := newSimulatedServer(t, adaptive.Config{Initial: 100, Tolerance: 1000}, 10, 20*time.Millisecond)
	s.steady, s.timeout = true, 50*time.Millisecond
	s.run(3, 30*time.Second)
	s.hold(t, "overload", 3, 30*time.Second, 0.6, 2.5) // the rest is late
	if got := s.adaptive.Limit(); got > 30 {
		t.Errorf("limit %d, and 25 can be on time", got)
	}
}

// With a CPU reading, the CPU is kept at its target, whatever the latency.
func TestAdaptiveSimulatedCPU(t *testing.T) {
	var s *simulatedServer
	var last, work time.Duration
	cpu := func() float64 {
		used, elapsed := s.worked-work, s.now-last
		work, last = s.worked, s.now
		return used.Seconds() / elapsed.Seconds() / float64(s.workers)
	}
	s = newSimulatedServer(t, adaptive.Config{CPU: cpu, CPUTarget: 0.7, Tolerance: 1000}, 100, 20*time.Millisecond)
	s.run(3, 20*time.Second)
	before := s.worked
	got := s.run(3, 20*time.Second)
	busy := (s.worked - before).Seconds() / 20 / 100
	t.Logf("busy %.3f, limit %d to %d", busy, got.least, got.most)
	if busy < 0.65 || busy > 0.75 {
		t.Errorf("busy %.3f, want about 0.7", busy)
	}
}
