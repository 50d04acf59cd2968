package aggregator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// heldBackRun is a detector with a share of half a group's requests, of at least 10, and one
// sender that holds counts back.
type heldBackRun struct {
	decoder  *decode.Decoder
	detector *Detector
	out      *recorder
	mark     uint32
	sums     wire.Sums
	seq      uint64
}

func newHeldBackRun() *heldBackRun {
	rule := hotRule("r", 10, time.Second)
	rule.Hot[0].Kind, rule.Hot[0].Factor = rules.Share, rules.Percent(50)
	rules := testRules(rule)
	r := &heldBackRun{out: newRecorder(), mark: wire.GroupsMark(rules), decoder: decode.NewDecoder(rules, wire.Plain)}
	r.detector = NewDetector(DetectorConfig{Rules: rules, Publisher: r.out})
	r.detector.Advance(noon)
	r.sums.Stated = true
	return r
}

// send sends a packet of the flush that began at start. Its counts begin earlier by age.
func (r *heldBackRun) send(start time.Time, age time.Duration, mark uint32, lines ...string) {
	r.seq++
	m := wire.Meta{Instance: []byte("i"), Incarnation: 1, Seq: r.seq, Start: start.Add(-age).UnixNano(), Held: 5, Groups: mark, Sums: r.sums}
	m.Sums.Age = int64(age)
	packet := string(wire.AppendMeta(nil, m)) + "\n" + strings.Join(lines, "\n")
	r.detector.Advance(start)
	r.decoder.Packet([]byte(packet), start.Add(base.FlushInterval), r.detector)
	for _, line := range lines {
		var n uint64
		_, number, _ := strings.Cut(line, ":")
		_, _ = fmt.Sscanf(number, "%d", &n)
		if strings.Contains(line, ".hot_held.") {
			r.sums.HeldBack += n
		} else {
			r.sums.Loose += n
		}
	}
}

const heldKey = "shop.r.hot_param.GET%20/s?q="

// total returns the bounds of the group's total after all panes have closed.
func (r *heldBackRun) total(end time.Time) (low, high int64) {
	r.detector.Advance(end)
	v := r.detector.rules[0].views[0]
	return v.groups.Bounds(v.Window, []byte("GET /s?q=a"), v.Index(noon.Add(500*time.Millisecond)))
}

func TestHeldBackIsInItsGroup(t *testing.T) {
	mark := newHeldBackRun().mark
	first, second := noon.Add(100*time.Millisecond), noon.Add(200*time.Millisecond)
	held := func(group string, n int) string { return fmt.Sprintf("shop.r.hot_held.%s:%d|c", group, n) }
	group := "GET%20/s?q"
	for name, test := range map[string]struct {
		play      func(r *heldBackRun)
		low, high int64
	}{
		"told at once, and not again when it comes": {func(r *heldBackRun) {
			r.send(first, 0, mark, heldKey+"a:20|c", held(group, 30))
			r.send(second, 100*time.Millisecond, mark, heldKey+"b:12|c")
		}, 50, 50},
		"what counts once too often is taken off at once": {func(r *heldBackRun) {
			r.send(first, 0, mark, heldKey+"a:20|c", held(group, 30), held("GET%20/s?~again&q", 4))
			r.send(second, 100*time.Millisecond, mark, "shop.r.hot_param.GET%20/s?~again&q:4|c")
		}, 46, 46},
		"groups without a line may be any": {func(r *heldBackRun) {
			r.send(first, 0, mark, heldKey+"a:20|c", held(wire.Rest, 30), held("~again&"+wire.Rest, 4))
		}, 16, 50},
		"a sender with other rules": {func(r *heldBackRun) {
			r.send(first, 0, mark^8, heldKey+"a:20|c", held(group, 30))
			r.send(second, 100*time.Millisecond, mark^8, heldKey+"b:12|c")
		}, 32, published.Unknown},
		"a sender that tells no groups": {func(r *heldBackRun) {
			r.send(first, 0, 0, heldKey+"a:20|c")
			r.send(second, 100*time.Millisecond, 0, heldKey+"b:12|c")
		}, 32, published.Unknown},
		"held back before the sender was heard of": {func(r *heldBackRun) {
			r.seq = 6
			r.send(second, 0, mark, heldKey+"a:20|c")
			r.send(second, 100*time.Millisecond, mark, heldKey+"b:12|c")
		}, 20, 32},
		"what was lost may have told of it": {func(r *heldBackRun) {
			r.send(first, 0, mark, heldKey+"a:20|c")
			r.seq++
			r.sums.HeldBack += 30
			r.send(second, 0, mark, heldKey+"b:12|c")
		}, 32, 62},
		"and comes after all": {func(r *heldBackRun) {
			r.send(first, 0, mark, heldKey+"a:20|c")
			late, sums := r.seq+1, r.sums
			r.seq++
			r.sums.HeldBack += 30
			r.send(second, 0, mark, heldKey+"b:12|c")
			after := r.sums
			r.seq, r.sums = late-1, sums
			r.send(second, 0, mark, held(group, 30))
			r.sums = after
		}, 62, 62},
	} {
		t.Run(name, func(t *testing.T) {
			r := newHeldBackRun()
			test.play(r)
			if low, high := r.total(noon.Add(800 * time.Millisecond)); low != test.low || high != test.high {
				t.Errorf("the total is %d to %d, want %d to %d", low, high, test.low, test.high)
			}
		})
	}
}

// A flood whose counts are all held back still lowers a key's share, and the key with the share is
// found. With an h of 5 at most 4 of its 24 counts belong to a later window.
func TestShareUnderAFlood(t *testing.T) {
	for held, want := range map[int]bool{15: true, 16: true, 17: false} {
		r := newHeldBackRun()
		r.send(noon.Add(100*time.Millisecond), 0, r.mark, heldKey+"a:24|c", fmt.Sprintf("shop.r.hot_held.GET%%20/s?q:%d|c", held))
		r.total(noon.Add(800 * time.Millisecond))
		if _, hot := r.out.hot()[rules.Key{Rule: "r", Text: "GET /s?q=a"}]; hot != want {
			t.Errorf("20 to 24 of %d: hot is %v, want %v", 24+held, hot, want)
		}
	}
}

// Malformed held-back lines are counted as malformed and not passed on.
func TestHeldBackLines(t *testing.T) {
	r := newHeldBackRun()
	r.send(noon, 0, r.mark, "shop.r.hot_held.a:x|c", "shop.r.hot_held.:1|c", "shop.other.hot_held.a:1|c", "shop.r.hot_held.%zz:1|c", "shop.r.hot_held.a:1|c")
	s := r.decoder.Stats()
	if s.Malformed != 2 || s.NoRule != 1 || s.BadKey != 1 || s.HeldBack != 1 || s.Counts != 0 || s.Sum != 0 {
		t.Errorf("%+v", s)
	}
}
