package blame

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A bench feeds a judge with a steady back end of ten keys, each 20 requests a step of 5 ms.
type bench struct {
	t     *testing.T
	judge *Judge
	now   time.Time
}

const bad = "bad"

func newBench(t *testing.T, config Config) *bench {
	b := &bench{t: t, judge: New(config), now: epoch}
	for range 120 {
		b.step(5*time.Millisecond, Usage{})
	}
	return b
}

func usage(n int64, each time.Duration) Usage {
	return Usage{Busy: time.Duration(n) * each, Took: time.Duration(n) * each, Begun: n, Ended: n}
}

func nameOf(text string) rules.Key { return rules.Key{Rule: "r", Text: text} }

// rows returns the usage of a step in which a request of each ordinary key takes this long.
func rows(each time.Duration, culprit Usage) ([]RouteUsage, []KeyUsage) {
	var total Usage
	keys := []KeyUsage{{nameOf(bad), "/", culprit}}
	total.Add(&culprit)
	for i := range 10 {
		u := usage(20, each+time.Duration(i)*each/100)
		total.Add(&u)
		keys = append(keys, KeyUsage{nameOf(fmt.Sprint(i)), "/", u})
	}
	return []RouteUsage{{"/", total}}, keys
}

func (b *bench) step(each time.Duration, culprit Usage) {
	b.now = b.now.Add(interval)
	routes, keys := rows(each, culprit)
	b.judge.Observe(b.now, routes, keys)
}

func (b *bench) steps(n int, each time.Duration, culprit Usage) {
	for range n {
		b.step(each, culprit)
	}
}

// stage returns the stage of the culprit's hold, or "".
func (b *bench) stage() published.HoldStage {
	b.t.Helper()
	held := b.judge.Held()
	if len(held) > 1 || len(held) == 1 && held[0].Key != nameOf(bad) {
		b.t.Fatalf("held: %+v", held)
	}
	if len(held) == 0 {
		return ""
	}
	return held[0].Hold.Stage
}

func (b *bench) permits() int64 { return b.judge.Held()[0].Hold.Permits }

const (
	fast = 5 * time.Millisecond
	slow = 25 * time.Millisecond
)

var (
	scan    = usage(1, 800*time.Millisecond)
	refused = Usage{Refused: 1}
)

// hold brings the culprit into a trial.
func (b *bench) hold() {
	b.t.Helper()
	b.steps(8, slow, scan)
	if b.stage() != published.HoldTrial || b.permits() != 0 {
		b.t.Fatalf("after 0.8 s: %+v", b.judge.Held())
	}
}

// prove lets one request of the culprit show its cost.
func (b *bench) prove() {
	b.t.Helper()
	b.hold()
	for i := 0; b.permits() == 0; i++ {
		if i == 30 {
			b.t.Fatal("no request is admitted to show its cost")
		}
		b.step(fast, refused)
	}
	if b.stage() != published.HoldTrial {
		b.t.Fatalf("stage %s without proof", b.stage())
	}
	b.step(fast, scan)
	if b.stage() != published.HoldKept {
		b.t.Fatalf("stage %q after a dear request", b.stage())
	}
}

func (b *bench) wantRelease(why string) {
	b.t.Helper()
	released := b.judge.Released()
	if b.stage() != "" || len(released) != 1 || released[0] != (Released{nameOf(bad), why}) {
		b.t.Fatalf("released %+v, held %+v; want %q", released, b.judge.Held(), why)
	}
}

func TestCulpritIsHeldAndKept(t *testing.T) {
	b := newBench(t, Config{Pool: "db"})
	b.prove()
	h := b.judge.Held()[0]
	if h.Route != "/" || h.Hold.Pool != "db" || h.Hold.Each < 500*time.Millisecond || h.Hold.Usual < fast || h.Hold.Usual > 2*fast ||
		h.Hold.Slow < slow || h.Hold.Now > 2*fast || h.Hold.Share < 0.05 || h.Hold.Share > 1 {
		t.Errorf("evidence: %+v", h)
	}
	if h.Hold.Stage != published.HoldKept {
		t.Errorf("stage %q", h.Hold.Stage)
	}
}

func TestDearKeyThatHurtsNobodyIsLeftAlone(t *testing.T) {
	b := newBench(t, Config{})
	b.steps(50, fast, scan)
	if b.stage() != "" || b.judge.trial.running {
		t.Error("held while the others were fast")
	}
}

func TestSlownessOfAllBlamesNobody(t *testing.T) {
	b := newBench(t, Config{})
	b.steps(50, slow, usage(1, slow))
	if b.stage() != "" {
		t.Error("held a key that takes as long as the others")
	}
}

func TestMomentBlamesNobody(t *testing.T) {
	b := newBench(t, Config{})
	for range 5 {
		b.step(slow, scan)
		b.steps(2, slow, Usage{})
		b.steps(80, fast, Usage{})
	}
	if b.stage() != "" {
		t.Error("held after 300 ms")
	}
}

func TestNobodyIsBlamedBeforeUsageIsKnown(t *testing.T) {
	b := &bench{t: t, judge: New(Config{}), now: epoch}
	b.steps(20, fast, Usage{})
	b.steps(30, slow, scan)
	if b.stage() != "" {
		t.Error("held without a baseline")
	}
}

func TestTrialWithoutGainEnds(t *testing.T) {
	b := newBench(t, Config{})
	b.hold()
	b.steps(32, slow, refused)
	b.wantRelease(whyNoGain)
	b.steps(60, slow, scan)
	if b.stage() != "" {
		t.Error("held again within 6 s")
	}
}

// A queue that grew before the hold may take longer to drain than a trial without progress lasts.
func TestTrialLastsWhileAQueueDrains(t *testing.T) {
	b := newBench(t, Config{})
	b.steps(30, 400*time.Millisecond, usage(2, 2*time.Second))
	if b.stage() != published.HoldTrial {
		t.Fatalf("%q", b.stage())
	}
	for each := 400 * time.Millisecond; each > 5*time.Millisecond; each -= 4 * time.Millisecond {
		b.step(each, Usage{Refused: 2})
		if b.stage() == "" {
			t.Fatalf("released with the others at %v", each)
		}
	}
}

// A queue that builds up and drains again and again is an overload, too.
func TestSlowAgainAndAgain(t *testing.T) {
	b := newBench(t, Config{})
	for i := 0; !b.judge.present.overloaded(); i++ {
		if i > 6 {
			t.Fatal("no overload after 3 s")
		}
		b.steps(2, slow, Usage{})
		b.steps(3, fast, Usage{})
	}
}

// A key is dear if its requests were so again and again, beyond what chance explains, and not if one
// was, or if others of its requests were not.
func TestDearAgainAndAgain(t *testing.T) {
	const usual = 0.005
	for name, c := range map[string]struct {
		took    []time.Duration // of one request in each step
		scatter float64
		quiet   float64 // seconds afterwards
		want    bool
	}{
		"again":             {[]time.Duration{time.Second, time.Second, 2 * time.Second}, 0.01, 1, true},
		"once":              {[]time.Duration{time.Second}, 0.01, 1, false},
		"not always":        {[]time.Duration{time.Second, time.Second, 5 * time.Millisecond, time.Second}, 0.01, 1, false},
		"by chance":         {[]time.Duration{time.Second, time.Second, time.Second}, 0.5, 1, false},
		"a while ago":       {[]time.Duration{time.Second, time.Second, time.Second}, 0.01, 20, false},
		"less than three x": {[]time.Duration{14 * time.Millisecond, 14 * time.Millisecond, 14 * time.Millisecond}, 0, 1, false},
	} {
		s, p := &subject{key: nameOf(bad)}, &present{scatter: c.scatter}
		for _, took := range c.took {
			s.step = usage(1, took)
			s.compare(0.1, usual, p)
		}
		s.step = Usage{}
		s.compare(c.quiet, usual, p)
		if s.isDear() != c.want {
			t.Errorf("%s: %v of %v", name, s.isDear(), c.took)
		}
	}
}

func TestGainIsNoProof(t *testing.T) {
	b := newBench(t, Config{})
	b.hold()
	for i := 0; b.stage() != "" && b.permits() == 0 && i < 30; i++ {
		b.step(fast, refused)
	}
	b.step(fast, usage(1, fast))
	b.wantRelease(whyCheap)
}

// The instance of a request that is admitted as a test may pause for a second.
func TestPauseIsNoProof(t *testing.T) {
	b := newBench(t, Config{})
	b.hold()
	for i := 0; b.permits() == 0 && i < 30; i++ {
		b.step(fast, refused)
	}
	b.step(fast, Usage{Busy: interval, Begun: 1})
	b.steps(11, fast, Usage{Busy: interval})
	if b.stage() != published.HoldTrial {
		t.Fatalf("stage %q after 1.2 s", b.stage())
	}
	b.steps(6, fast, Usage{Busy: interval})
	if b.stage() != published.HoldKept {
		t.Errorf("stage %q after 1.8 s", b.stage())
	}
}

func TestKeyThatTurnsCheapIsReleased(t *testing.T) {
	b := newBench(t, Config{})
	b.prove()
	for i := 0; b.stage() != ""; i++ {
		if i > 100 {
			t.Fatalf("held for 10 s: %+v", b.judge.Held())
		}
		if b.permits() > 0 {
			b.step(fast, usage(1, fast))
		} else {
			b.step(fast, refused)
		}
	}
	b.wantRelease(whyCheap)
}

func TestKeyWhoseRequestsStopIsReleased(t *testing.T) {
	b := newBench(t, Config{})
	b.prove()
	b.steps(100, fast, Usage{})
	b.wantRelease(whyStopped)
}

func TestPermitsFallWhenTheOthersAreHurt(t *testing.T) {
	b := newBench(t, Config{})
	b.prove()
	var most, zeros int64
	for range 200 {
		if n := b.permits(); n > 0 {
			b.step(3*fast, scan)
			most = max(most, n)
		} else {
			b.step(fast, refused)
			zeros++
		}
	}
	if most > 1 || zeros < 150 {
		t.Errorf("up to %d permits, none in %d of 200 steps", most, zeros)
	}
	for range 300 {
		u := scan
		u.Refused = 1
		b.step(fast, u)
	}
	if b.permits() < 2 {
		t.Errorf("%d permits although the others are fast", b.permits())
	}
}

func TestRelearningEndsSlowness(t *testing.T) {
	b := newBench(t, Config{})
	b.steps(800, slow, usage(1, slow))
	if p := &b.judge.present; p.overloaded() {
		t.Errorf("after 80 s of a slower program it is %.1f times as slow as usual", p.slow)
	}
	b.steps(50, fast, Usage{})
	b.steps(8, slow, scan)
	if b.stage() == "" {
		t.Error("a faster back end was not learned at once")
	}
}

func TestShadowOnlyReports(t *testing.T) {
	b := newBench(t, Config{Shadow: true})
	b.steps(8, slow, scan)
	if b.stage() != published.HoldSuspected {
		t.Fatalf("stage %q", b.stage())
	}
	b.steps(80, fast, Usage{})
	b.wantRelease(whyOver)
}

func TestStateGoesToASuccessor(t *testing.T) {
	b := newBench(t, Config{Pool: "db"})
	b.prove()
	text, err := json.Marshal(b.judge.Save())
	if err != nil {
		t.Fatal(err)
	}
	var state State
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	next := &bench{t: t, judge: New(Config{Pool: "db"}), now: b.now}
	next.judge.Load(state)
	if !reflect.DeepEqual(next.judge.Save(), state) {
		t.Error("the state changed")
	}
	next.judge.Adopt(b.judge.Held(), b.now)
	next.steps(10, fast, refused)
	if next.stage() != published.HoldKept {
		t.Fatalf("stage %q after the change of judges", next.stage())
	}
	next.steps(100, fast, Usage{})
	next.wantRelease(whyStopped)

	fresh := &bench{t: t, judge: New(Config{}), now: b.now}
	fresh.judge.Load(state)
	fresh.hold() // with the baseline of another
}

func TestOrderOfKeysDoesNotMatter(t *testing.T) {
	one, two := New(Config{}), New(Config{})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 150 {
		each, culprit := fast, Usage{}
		if i > 120 {
			each, culprit = slow, scan
		}
		now := epoch.Add(time.Duration(i) * interval)
		routes, keys := rows(each, culprit)
		one.Observe(now, routes, keys)
		random.Shuffle(len(keys), func(a, b int) { keys[a], keys[b] = keys[b], keys[a] })
		two.Observe(now, routes, keys)
	}
	if !reflect.DeepEqual(one.Save(), two.Save()) || !reflect.DeepEqual(one.Held(), two.Held()) || len(one.Held()) != 1 {
		t.Errorf("held %+v and %+v", one.Held(), two.Held())
	}
}

func TestTableIsBounded(t *testing.T) {
	j := New(Config{})
	for i := range 40 {
		var keys []KeyUsage
		for k := range 200 {
			keys = append(keys, KeyUsage{nameOf(fmt.Sprint(i*200 + k)), "/", usage(1, fast)})
		}
		j.Observe(epoch.Add(time.Duration(i)*interval), []RouteUsage{{"/", usage(200, fast)}}, keys)
		if n := len(j.table.subjects); n > maxSubjects || n != len(j.table.index) {
			t.Fatalf("%d subjects, %d in the index", n, len(j.table.index))
		}
	}
	if j.table.index[rules.Key{Text: "/"}] == nil {
		t.Error("the unreported keys of the route were evicted")
	}
}
