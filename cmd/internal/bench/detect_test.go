package bench

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func detect(t *testing.T, memory int64, threshold int64, g Generate) DetectResult {
	t.Helper()
	r, err := Detect(t.Context(), DetectConfig{
		Rules: LineRules(rules.Rate{N: threshold, Per: time.Second}), Memory: memory, Generate: &g,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Events != int64(g.Events*g.Windows) || r.EventsPerSecond <= 0 {
		t.Errorf("%d events at %v per second, want %d", r.Events, r.EventsPerSecond, g.Events*g.Windows)
	}
	if r.MemoryBytes <= 0 || r.MemoryBytes > memory+memory/4 {
		t.Errorf("%d bytes are held, of %d", r.MemoryBytes, memory)
	}
	return r
}

// While no budget limits it, detection is exact: it finds all truly hot keys and no others.
func TestDetectIsExactWithEnoughMemory(t *testing.T) {
	r := detect(t, 64<<20, 100, Generate{Zipf: 1.1, Keys: 1000, Events: 20_000, Windows: 3, Seed: 1})
	if r.Hot == 0 || r.Precision == nil || *r.Precision != 1 || r.Recall == nil || *r.Recall != 1 || r.Floor != 0 || r.MissedAboveFloor != 0 || r.FalseHot != 0 {
		t.Errorf("%+v", r)
	}
}

// The claims also hold when memory is short.
func TestDetectClaimsHoldWithLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	r := detect(t, 3<<19, 100, Generate{Zipf: 0.8, Keys: 1_000_000, Events: 150_000, Windows: 2, Seed: 1})
	if r.Floor == 0 {
		t.Errorf("the memory was enough: %+v", r)
	}
	if r.Floor >= r.Threshold {
		t.Errorf("the floor is %d, the threshold %d: nothing is shown", r.Floor, r.Threshold)
	}
	if r.MissedAboveFloor != 0 || r.FalseHot != 0 || r.Bounds == 0 || r.WrongBounds != 0 || r.Cooled == 0 || r.CooledEarly != 0 || r.CooledLate != 0 {
		t.Errorf("%+v", r)
	}
}

// The judge notices wrong bounds, and keys that cool at a wrong time.
func TestJudgingFindsWhatIsWrong(t *testing.T) {
	th := rules.NewThreshold(rules.Rate{N: 10, Per: time.Second})
	start := time.Unix(1_700_000_000, 0)
	key := func(low, high int64) published.Hot {
		return published.Hot{Key: rules.Key{Text: "k"}, Low: low, High: high, Since: start, Until: start.Add(100 * time.Millisecond)}
	}
	for name, c := range map[string]struct {
		told                    telling
		seconds                 int
		wrong, early, late, all int
	}{
		"right":            {told: telling{Hot: key(9, 9), kind: refreshed}, all: 1},
		"unknown":          {told: telling{Hot: key(9, published.Unknown), kind: refreshed}, all: 1},
		"low above":        {told: telling{Hot: key(10, 11), kind: refreshed}, all: 1, wrong: 1},
		"high below":       {told: telling{Hot: key(8, 8), kind: refreshed}, all: 1, wrong: 1},
		"cool at the exit": {told: telling{Hot: key(9, 9), kind: becameCool}, all: 1, early: 1},
		"hot for too long": {told: telling{Hot: key(0, 0), kind: refreshed}, seconds: 30, all: 30, late: 1},
		"hot as it must":   {told: telling{Hot: key(0, 0), kind: refreshed}, seconds: 11, all: 11},
	} {
		exact := newReference(th.Window())
		for range 9 {
			exact.Count(decode.Count{Text: []byte("k"), N: 1, When: start})
		}
		j := newJudging(exact, &th)
		j.hot["k"] = start
		for at := range max(1, c.seconds) {
			now := start.Add(100 * time.Millisecond)
			if c.seconds > 0 {
				now = start.Add(time.Duration(at+2) * time.Second)
			}
			j.published = append(j.published, c.told)
			j.panesOver(now.UnixNano()/exact.pane, now, 0)
			j.published = j.published[:0]
		}
		if j.wrongBounds != c.wrong || j.cooledEarly != c.early || len(j.late) != c.late || j.bounds != c.all {
			t.Errorf("%s: %d bounds, %d wrong, %d early, %d late", name, j.bounds, j.wrongBounds, j.cooledEarly, len(j.late))
		}
	}
}

func TestDetectOfNothingHot(t *testing.T) {
	r := detect(t, 1<<20, 100, Generate{Zipf: 0, Keys: 1000, Events: 1000, Windows: 1, Seed: 1})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"precision":null,"recall":null,"missed_above_floor":0,"false_hot":0,"floor":0,"threshold":100,"bounds":0,`) {
		t.Error(string(text))
	}
}

func TestJudgeDetection(t *testing.T) {
	exact := &exactCounts{ids: make(map[string]int32)}
	for key, peak := range map[string]int64{"found": 150, "missed": 104, "far": 110, "false": 99, "cold": 50, "twice": 200, "huge": 10_000} {
		exact.ids[key] = int32(len(exact.keys))
		exact.keys = append(exact.keys, referenceKey{peak: peak})
	}
	r := DetectResult{Floor: 10}
	r.judge(exact, map[string]struct{}{"found": {}, "false": {}, "twice": {}, "huge": {}}, 100)
	if *r.Precision != 0.75 || *r.Recall != 0.6 || r.MissedAboveFloor != 1 || r.FalseHot != 1 || r.Keys != 7 || r.Hot != 4 {
		t.Errorf("precision %v, recall %v, %+v", *r.Precision, *r.Recall, r)
	}
	for _, n := range r.Near {
		want := map[float64][2]int{1.02: {1, 0}, 1.1: {1, 0}, 1.5: {1, 1}, 2: {1, 1}, 5: {1, 1}}[n.From]
		if n.True != want[0] || n.Hot != want[1] {
			t.Errorf("%+v, want %v", n, want)
		}
	}
	if last := r.Near[len(r.Near)-1].To; !math.IsInf(last, 1) {
		t.Errorf("the last ones end at %v", last)
	}
}
