package e2e

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"testing"
)

// lossTruth is what the senders counted and when, by what they wrote down, and what the
// relay knows of the packets that told it. Panes are numbered since the Unix epoch.
type lossTruth struct {
	keys    []lossCounts // by the plan's numbers
	senders [][]lossPacket
	stalls  []lossSpan // when requests should have come and when they came, if the machine held them up
}

// lossStall is how late a request must be to tell that the machine was held up.
const lossStall = int64(100e6)

// stalled reports whether the machine was held up in a time.
func (x *lossTruth) stalled(from, to int64) bool {
	return slices.ContainsFunc(x.stalls, func(s lossSpan) bool { return s.first < to && s.last > from })
}

// late is how late a request was at most.
func (x *lossTruth) late() (most int64) {
	for _, s := range x.stalls {
		most = max(most, s.last-s.first)
	}
	return most
}

// lossCounts is the counts of one key.
type lossCounts struct {
	sure  map[int64]int64 // by pane
	loose []lossSpan      // those that may be of several panes
	all   []lossEvent
}

type lossSpan struct{ first, last int64 } // panes, or instants

type lossEvent struct {
	sender int
	at     int64 // before it was counted
}

// lossWidth is a pane in nanoseconds.
const lossWidth = int64(lossPane)

func newLossTruth(t *testing.T, plan *lossPlan, logs []string, relays []*lossRelay) *lossTruth {
	t.Helper()
	x := &lossTruth{keys: make([]lossCounts, len(plan.keys))}
	for i := range x.keys {
		x.keys[i].sure = make(map[int64]int64)
	}
	for sender, name := range logs {
		r := relays[sender]
		r.mu.Lock()
		packets := slices.Clone(r.packets)
		r.mu.Unlock()
		slices.SortFunc(packets, func(a, b lossPacket) int { return int(a.number) - int(b.number) })
		x.senders = append(x.senders, packets)
		x.read(t, sender, name)
	}
	return x
}

func (x *lossTruth) read(t *testing.T, sender int, name string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// A flush takes what has come until then, also of the pane that has just begun.
	late := make(map[int64][]lossPacket) // by the panes that flushes of others reached into
	for _, p := range x.senders[sender] {
		for pane := p.start/lossWidth + 1; pane <= p.at/lossWidth; pane++ {
			late[pane] = append(late[pane], p)
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
		c.all = append(c.all, lossEvent{sender, before})
		span := lossSpan{before / lossWidth, after / lossWidth}
		for _, p := range late[before/lossWidth] {
			if before <= p.at {
				span.first = min(span.first, p.start/lossWidth)
			}
		}
		if span.first == span.last {
			c.sure[span.first]++
		} else {
			c.loose = append(c.loose, span)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// in is how many counts a key has in panes, at least and at most.
func (c *lossCounts) in(first, last int64) (least, most int64) {
	for pane := first; pane <= last; pane++ {
		least += c.sure[pane]
	}
	most = least
	for _, s := range c.loose {
		if s.first >= first && s.last <= last {
			least++
		}
		if s.first <= last && s.last >= first {
			most++
		}
	}
	return least, most
}

// window is in for the window that ends with a pane.
func (c *lossCounts) window(last int64) (least, most int64) { return c.in(last-9, last) }

// secret is how many of a key's counts in panes no aggregator can know of at an instant,
// nor that they are missing: they are in packets that had not left the relay, and no later
// one of their sender had.
func (x *lossTruth) secret(key int, first, last, now int64) (n int64) {
	now -= 30e6 // it takes time to arrive
	from, to := first*lossWidth, (last+1)*lossWidth
	type span struct{ from, to int64 }
	unknown := make([][]span, len(x.senders))
	for sender, packets := range x.senders {
		i := len(packets)
		for ; i > 0 && (packets[i-1].delivered == 0 || packets[i-1].delivered > now); i-- {
			if p := &packets[i-1]; p.start < to && p.at > from {
				unknown[sender] = append(unknown[sender], span{p.start, p.at})
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

// lost is how many packets did not leave the relay, of all.
func (x *lossTruth) lost() (lost, all int) {
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
