//go:build !race

// These tests run in one goroutine: they have no races, and are slow under the race detector.

package claims

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

// holds runs a case and checks that every claim holds.
func holds(t tester, c Case) Result {
	t.Helper()
	r, err := Run(testContext, c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Violations() > 0 {
		t.Errorf("%s, %d bytes in %d parts, %d lines, %v, seed %d: %d violations: %s",
			c.Name, c.Memory, c.Parts, c.Lines, c.Network, c.Seed, r.Violations(), r.String())
	}
	return r
}

// Claims hold for each kind of stream, with and without enough memory and lines, over each kind
// of network. The command runs more and longer cases.
func TestClaims(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	size := StreamSize{Rate: 8000, Keys: 5000, Instances: 4, Length: 2 * time.Second}
	for i, s := range []struct {
		name   string
		stream func(uint64) (EventStream, error)
		n      int64
		hot    bool // some key is
	}{
		{"zipf 0.8", Zipf(size, 0.8), 60, true},
		{"zipf 1.0", Zipf(size, 1), 60, true},
		{"zipf 1.1", Zipf(size, 1.1), 60, true},
		{"zipf 1.4", Zipf(size, 1.4), 60, true},
		{"flat and hot", FlatAndHot(size, 10, 100), 60, true},
		{"distinct", Distinct(size), 10, false},
		{"moving", Moving(size, 200), 80, true},
		{"bursts", Bursts(size, 1, 10, 150), 100, true},
	} {
		for j, network := range networks {
			c := Case{Name: s.name, Stream: s.stream, Rules: []HotRule{NewRule(s.n, time.Second, time.Second/2)}, Instances: size.Instances,
				Keys: 4096, Memory: megabyte / 4, Parts: 1 + (i+j)%4, Lines: 60 * (j % 2), Network: network, Seed: uint64(i)}
			if j >= 2 {
				c.Memory = 16 * megabyte
			}
			t.Run(fmt.Sprintf("%s/%v", s.name, network), func(t *testing.T) {
				if r := holds(t, c); r.Must > 0 != s.hot || r.Events < 10_000 || s.hot && r.Judged < 8 {
					t.Errorf("%d keys reached the threshold in %d events, %d bounds were judged: the stream is not what it should be", r.Must, r.Events, r.Judged)
				}
			})
		}
	}
}

// Claims hold for random streams over random networks.
func TestRandomCases(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(t, name) }
		length := time.Duration(draw("length", 100, 15_000)) * time.Millisecond
		size := StreamSize{
			Rate:      float64(draw("events", 10, 2500)) / length.Seconds(),
			Keys:      int32(draw("keys", 20, 3000)),
			Instances: draw("instances", 1, 5),
			Length:    length,
		}
		hot := float64(draw("hot", 1, 500)) / min(2, length.Seconds())
		streams := map[string]func(uint64) (EventStream, error){
			"zipf":     Zipf(size, float64(draw("exponent", 5, 20))/10),
			"flat":     FlatAndHot(size, 5, hot),
			"distinct": Distinct(size),
			"moving":   Moving(size, hot),
			"bursts":   Bursts(size, 1, 5, int64(hot)),
			"flood":    Flood(size, 5, hot, draw("skewed", 0, 1) == 1),
			"steady":   Steady(size, hot, true),
			"square":   Square(size, hot, time.Second),
		}
		c := Case{
			Instances: size.Instances,
			Keys:      draw("table", 16, 2000),
			Memory:    int64(draw("memory", 64<<10, 2*megabyte)),
			Parts:     draw("parts", 1, 4),
			Lines:     draw("bound", 0, 1) * draw("lines", 1, 100),
			Network: Network{
				Most:    time.Duration(draw("late", 0, 1)*draw("delay", 0, 1500)) * time.Millisecond,
				Lost:    float64(draw("lossy", 0, 1)*draw("lost", 0, 300)) / 1000,
				Doubled: float64(draw("doubled", 0, 300)) / 1000,
			},
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		for range draw("rules", 1, 2) {
			d := rapid.SampledFrom([]time.Duration{time.Second, 1500 * time.Millisecond, 10 * time.Second, 15 * time.Second, time.Minute}).Draw(t, "window")
			r := NewRule(int64(draw("threshold", 2, 200)), d, time.Duration(draw("hold", 0, 2000))*time.Millisecond)
			r.CoolDown = time.Duration(draw("coolDown", 0, 1)*draw("cool", 0, 2000)) * time.Millisecond
			c.Rules = append(c.Rules, r)
		}
		switch draw("clocks", 0, 2) {
		case 0:
			c.Clocks = []InstanceClock{} // all right
		case 1:
			c.Clocks = randomClocks(t, c.Instances)
			c.Network.Most = min(c.Network.Most, 100*time.Millisecond) // else it takes half a minute to know them
			if slices.ContainsFunc(c.Clocks, func(c InstanceClock) bool { return c.Set != 0 }) {
				c.Lines = 0 // counts held back would arrive later, by another clock
			}
		}
		c.Name = rapid.SampledFrom([]string{"zipf", "flat", "distinct", "moving", "bursts", "flood", "steady", "square"}).Draw(t, "stream")
		c.Stream = streams[c.Name]
		holds(t, c)
	})
}

// A case gives the same result each time.
func TestSameEachTime(t *testing.T) {
	size := StreamSize{Rate: 5000, Keys: 3000, Instances: 3, Length: 2 * time.Second}
	c := Case{Name: "zipf", Stream: Zipf(size, 1), Rules: []HotRule{NewRule(40, time.Second, 0)}, Instances: size.Instances, Keys: 2048,
		Memory: megabyte / 8, Parts: 2, Network: networks[2], Seed: 7}
	a, b := holds(t, c), holds(t, c)
	if a.Took, b.Took = 0, 0; !reflect.DeepEqual(a, b) {
		t.Errorf("%+v, then %+v", a, b)
	}
	c.Seed++
	if b = holds(t, c); a.Judged == b.Judged && a.FloorMost == b.FloorMost {
		t.Error("another seed, and nothing differs")
	}
}

// Claims hold in a flood of values that each come once, together with some hot keys. The test
// measures the memory of the process, so nothing may run in parallel.
func TestAttack(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, c := range attacks(StreamSize{Rate: 10_000, Instances: 5, Length: 5 * time.Second}) {
		c.Keys, c.Memory, c.Lines, c.Seed = 4096, megabyte, 100, 1
		if r := holds(t, c); r.Hot != 20 || r.Must != 20 {
			t.Errorf("%d keys were hot, %d reached the threshold, want the 20", r.Hot, r.Must)
		}
	}
}

// Claims hold for a key that comes exactly as often as the threshold, and for one that does so
// every other second.
func TestSteady(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, c := range atThreshold(StreamSize{Rate: 20, Keys: 50, Instances: 3, Length: 10 * time.Minute}) {
		c.Keys, c.Memory, c.Lines, c.Seed = 256, megabyte, 200, 1
		t.Run(c.Name, func(t *testing.T) {
			if r := holds(t, c); r.Hot != 1 {
				t.Errorf("%d keys were hot, want 1", r.Hot)
			}
		})
	}
}

// Claims hold for the log in the repository.
func TestDemoLog(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	holdsTrace(t, "../../cmd/internal/demo/data/edgar-2017-06-30.access.log.zst", "cik", NewRule(10, time.Second, time.Second))
}

func holdsTrace(t *testing.T, path, keyBy string, rules ...HotRule) {
	t.Helper()
	stream, err := Trace(path, keyBy, traceInstances)
	if err != nil {
		t.Fatal(err)
	}
	for i, network := range networks {
		r := holds(t, Case{Name: path, Stream: stream, Rules: rules, Instances: traceInstances, Keys: 4096, Memory: megabyte, Parts: 2, Lines: 4 * (i % 2), Network: network, Seed: 1})
		if r.Must == 0 {
			t.Error("no key reaches a threshold")
		}
	}
}
