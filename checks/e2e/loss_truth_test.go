package e2e

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
)

// lossTruth holds the senders' counts with their times, read from their logs, and the fate of the
// packets that carried them. Instants are nanoseconds since the Unix epoch.
type lossTruth struct {
	keys    []lossCounts // indexed by the plan's numbers
	senders [][]lossPacket
	stalls  []lossSpan // from a request's due time to its late arrival, while the machine was stalled
}

// lossStall is the delay of a request that shows that the machine was stalled.
const lossStall = int64(100e6)

// stalled reports whether the machine was stalled at any time in a span.
func (x *lossTruth) stalled(from, to int64) bool {
	return slices.ContainsFunc(x.stalls, func(s lossSpan) bool { return s.first < to && s.last > from })
}

// maxLateness returns the longest delay of a request.
func (x *lossTruth) maxLateness() (longest int64) {
	for _, s := range x.stalls {
		longest = max(longest, s.last-s.first)
	}
	return longest
}

// lossCounts holds the counts of one key. A count is placed at the beginning of its flush, so its
// time is anywhere from there to when it was counted.
type lossCounts struct {
	times[int64]
	all []lossEvent
}

type lossSpan struct{ first, last int64 }

type lossEvent struct {
	sender int
	at     int64 // instant before it was counted
}

// lossWidth is a pane of a window of a second.
const lossWidth = int64(lossPane)

var lossSecond = exact.NewWindow(time.Second)

func newLossTruth(t *testing.T, plan *lossPlan, logs []string, relays []*lossRelay) *lossTruth {
	t.Helper()
	x := &lossTruth{keys: make([]lossCounts, len(plan.keys))}
	for sender, name := range logs {
		r := relays[sender]
		r.mu.Lock()
		packets := slices.Clone(r.packets)
		r.mu.Unlock()
		slices.SortFunc(packets, func(a, b lossPacket) int { return int(a.number) - int(b.number) })
		x.senders = append(x.senders, packets)
		x.readCounts(t, sender, name)
	}
	for i := range x.keys {
		x.keys[i].sort()
	}
	return x
}

func (x *lossTruth) readCounts(t *testing.T, sender int, name string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// A flush also takes counts of the pane that has just begun.
	reach := make(map[int64][]lossPacket) // by the panes that they may have counts of
	for _, p := range x.senders[sender] {
		for pane := p.start / lossWidth; pane <= p.arrived/lossWidth; pane++ {
			reach[pane] = append(reach[pane], p)
		}
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var key int
		var planned, before, after int64
		if _, err := fmt.Sscan(lines.Text(), &key, &planned, &before, &after); err != nil {
			t.Fatalf("%s: %q: %v", name, lines.Text(), err)
		}
		if before-planned > lossStall {
			x.stalls = append(x.stalls, lossSpan{planned, before})
		}
		c := &x.keys[key]
		first := before
		for _, p := range reach[before/lossWidth] {
			if before <= p.arrived {
				first = min(first, p.start)
			}
		}
		c.all = append(c.all, lossEvent{sender, before})
		c.add(first, after)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// secret returns how many of a key's counts between two instants are unknown to every aggregator
// now, even as missing. They are in packets that had not left the relay, and no later packet of
// their sender had left it.
func (x *lossTruth) secret(key int, from, to, now int64) (n int64) {
	now -= 30e6 // it takes time to arrive
	type span struct{ from, to int64 }
	unknown := make([][]span, len(x.senders))
	for sender, packets := range x.senders {
		i := len(packets)
		for ; i > 0 && (packets[i-1].delivered == 0 || packets[i-1].delivered > now); i-- {
			if p := &packets[i-1]; p.start < to && p.arrived > from {
				unknown[sender] = append(unknown[sender], span{p.start, p.arrived})
			}
		}
	}
	for _, e := range x.keys[key].all {
		if e.at >= from-lossWidth && e.at < to && slices.ContainsFunc(unknown[e.sender], func(s span) bool { return s.from <= e.at && e.at <= s.to }) {
			n++
		}
	}
	return n
}

// countLost returns how many packets did not leave the relay, and the number of all packets.
func (x *lossTruth) countLost() (lost, all int) {
	for _, packets := range x.senders {
		all += len(packets)
		for _, p := range packets {
			if p.delivered == 0 {
				lost++
			}
		}
	}
	return lost, all
}
