package kafkasource

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// However partitions pass from one member to another, each key that reaches its threshold is
// published as hot once, and cools afterwards. That includes a key whose burst falls into the
// time in which its partition has no owner.
func TestBurstsInHandOversAreFound(t *testing.T) {
	handOvers := []string{"the only member ends", "one of two ends", "one of two falls silent", "a second one joins", "one returns under its name"}
	for seed := range uint64(testenv.Cases(30, 10)) {
		r := rand.New(rand.NewPCG(seed, 3))
		kind := handOvers[seed%uint64(len(handOvers))]
		rule := hotRule("r", 100, []time.Duration{time.Second, time.Second, 10 * time.Second, time.Minute}[r.IntN(4)])
		rule.Hot[0].Hold = time.Duration(r.IntN(3)) * time.Second
		rule.Hot[0].CoolDown = time.Duration(2+r.IntN(2)) * time.Second
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			t.Logf("%s, hot at %v, hold %v, cool-down %v", kind, &rule.Hot[0].Rate, rule.Hot[0].Hold, rule.Hot[0].CoolDown)
			inWorld(t, 1, 2, func(w *world) { w.burstsWhile(kind, rule, r) })
		})
	}
}

func (w *world) burstsWhile(kind string, rule rules.Rule, r *rand.Rand) {
	w.Helper()
	upTo := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	link := newLink(w)
	session := 1500*time.Millisecond + upTo(8*time.Second)
	join := func(name string) *member {
		return w.join(func(c *Config) {
			c.Session = session
			c.Rules.Rules = []rules.Rule{rule}
			if kind == "one returns under its name" {
				c.Member = name
			}
		})
	}
	w.dial = link.DialContext
	first := join("first")
	w.dial = nil
	partitions := 2
	if strings.HasPrefix(kind, "one of two") {
		w.has(join("second"), 1)
		partitions = 1
	}
	w.has(first, partitions)
	inst := w.instance("a", 2)
	inst.runs(map[int32][]string{0: {"q=steady0"}, 1: {"q=steady1"}})
	w.until("the steady keys hot", func() bool { return w.redis.hot("q=steady0") && w.redis.hot("q=steady1") })
	time.Sleep(10 * time.Second)

	var bursts []string
	for i := range 12 {
		text := fmt.Sprint("q=burst", i)
		bursts = append(bursts, text)
		time.AfterFunc(upTo(14*time.Second), func() { inst.send(inst.record(int32(i%2), 100*time.Millisecond, line(text, 150))) })
	}
	time.Sleep(5 * time.Second)
	last, gap := first, upTo(10*time.Second)
	switch kind {
	case "the only member ends":
		first.stop()
		time.Sleep(gap)
		last = join("other")
	case "one returns under its name":
		first.stop()
		time.Sleep(min(gap, session-time.Second))
		last = join("first")
	case "one of two ends":
		first.stop()
	case "one of two falls silent":
		link.cut()
	case "a second one joins":
		last = join("other")
	}
	time.Sleep(25*time.Second + gap)
	_ = last
	for _, text := range bursts {
		if n := w.redis.heated(text); n != 1 {
			w.Errorf("%s became hot %d times, want once\n%s", text, n, w.redis)
		}
	}
	time.Sleep(rule.Hot[0].Rate.Per)
	for _, text := range bursts {
		if w.redis.hot(text) {
			w.Errorf("%s is still hot\n%s", text, w.redis)
		}
	}
	w.dontCool("q=steady0")
	w.dontCool("q=steady1")
}

// heated returns how often a key became hot.
func (r *redis) heated(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		if strings.HasSuffix(c, "hot r "+text) {
			n++
		}
	}
	return n
}
