package claims

import (
	"strconv"
	"strings"
	"time"
)

// Clock is an instance's clock. It is Ahead of the aggregator's clock and gains Drift seconds per
// second. It is set forward once by Set, when At of the stream has passed.
type Clock struct {
	Ahead time.Duration
	Drift float64
	Set   time.Duration
	At    time.Duration
}

// clocks holds the clocks of a run's instances and what an aggregator can know about them.
type clocks struct {
	of    []Clock // nil if packets carry no times
	began int64
	most  int64 // longest delay of the network
	heard []heard
	late  int64 // counts that may be placed too late for any window
}

// heard is what an aggregator received from an instance whose clock it does not know yet.
type heard struct {
	first, last int64
	packets     int    // packets that were not overtaken
	newest      uint64 // number of the newest packet
	ahead       int64  // offset of the clock at the newest packet
}

const (
	// From docs/design/aggregator.md: clocks within slack are left alone. A clock's offset is the
	// least delay of forgets. It is known after knownAfter of packets, if at least knownFrom
	// came.
	slack      = 250 * int64(time.Millisecond)
	forgets    = 30 * second
	knownAfter = second + 4*tenth
	knownFrom  = 10
	// set is the time before and after a clock is set in which counts may be placed anywhere
	// between the two times.
	set = second
)

func newClocks(c *Case, began int64) *clocks {
	k := &clocks{began: began, most: int64(c.Network.Most), heard: make([]heard, c.Instances)}
	if c.Clocks != nil {
		k.of = make([]Clock, c.Instances)
		copy(k.of, c.Clocks)
	}
	return k
}

// doubted reports whether some clock may at first be mistaken for a delay.
func (c *Case) doubted() bool {
	for _, of := range c.Clocks {
		if int64(of.Ahead) < -slack || of.Drift != 0 || of.Set != 0 {
			return true
		}
	}
	return false
}

// slackClocks reports whether some clock is off, none changes, and none is off by more than
// slack.
func (c *Case) slackClocks() bool {
	off := false
	for _, of := range c.Clocks {
		if of.Drift != 0 || of.Set != 0 || int64(of.Ahead.Abs()) > slack {
			return false
		}
		off = off || of.Ahead != 0
	}
	return off
}

// ahead returns how far an instance's clock is ahead at an instant.
func (k *clocks) ahead(instance int, at int64) int64 {
	c := &k.of[instance]
	d := int64(c.Ahead) + int64(c.Drift*float64(at-k.began))
	if at-k.began >= int64(c.At) {
		d += int64(c.Set)
	}
	return d
}

// deliver records the arrival of a packet.
func (k *clocks) deliver(p *packet) {
	h := &k.heard[p.instance]
	if k.of == nil || p.number <= h.newest {
		return
	}
	ahead := k.ahead(p.instance, p.sent)
	wasSet := max(ahead-h.ahead, h.ahead-ahead) > slack
	if h.packets == 0 || !k.known(p.instance) && (p.arrives-h.last > second || wasSet) {
		*h = heard{first: p.arrives}
	}
	h.packets++
	h.last, h.newest, h.ahead = p.arrives, p.number, ahead
}

// known reports whether an aggregator must know an instance's clock by now.
func (k *clocks) known(instance int) bool {
	h := &k.heard[instance]
	return h.packets >= knownFrom && h.last-h.first >= knownAfter
}

// blur returns the blur of an instance's counts that begin at an instant.
func (k *clocks) blur(instance int, at int64) (by blur) {
	if k.of == nil || k.of[instance] == (Clock{}) {
		return by
	}
	c := &k.of[instance]
	ahead := k.ahead(instance, at)
	by.late = k.most
	if c.Drift != 0 {
		drift := slack + int64(float64(forgets)*max(c.Drift, -c.Drift))
		by.early, by.late = drift, by.late+drift
	}
	if -slack-k.most <= ahead && ahead <= slack+k.most { // the clock may be left alone
		by.early, by.late = by.early+max(0, -ahead), by.late+max(0, ahead)
	}
	if ahead < -slack && !k.known(instance) {
		by.doubt = -ahead
	}
	if since := at - k.began - int64(c.At); c.Set != 0 && -set < since && since < set {
		by.early, by.late = by.early+int64(c.Set.Abs()), by.late+int64(c.Set.Abs())
	}
	return by
}

// write returns the packet with the times of its meta line replaced by those of the instance's
// clock: the start of its flush and the time of sending.
func (k *clocks) write(p *packet) []byte {
	if k.of == nil {
		return p.bytes
	}
	head, lines, _ := strings.Cut(string(p.bytes), "\n")
	fields := strings.Split(head, ",")
	var start, was int64
	for i, field := range fields {
		switch name, value, _ := strings.Cut(field, ":"); name {
		case "t":
			was, _ = strconv.ParseInt(value, 10, 64)
			start = was + k.ahead(p.instance, was)
			sent := p.sent + k.ahead(p.instance, p.sent)
			fields[i] = "t:" + strconv.FormatInt(start, 10) + ",w:" + strconv.FormatInt(sent, 10)
		case "b": // stands after the time; holds how much earlier than its flush the account begins, and the interval from the previous flush
			sums := strings.Split(value, ".")
			age, _ := strconv.ParseInt(sums[5], 16, 64)
			since, _ := strconv.ParseInt(sums[6], 16, 64)
			flush := was + age
			before := flush - since
			sums[5] = strconv.FormatInt(flush+k.ahead(p.instance, flush)-start, 16)
			sums[6] = strconv.FormatInt(flush+k.ahead(p.instance, flush)-before-k.ahead(p.instance, before), 16)
			fields[i] = "b:" + strings.Join(sums, ".")
		}
	}
	return []byte(strings.Join(fields, ",") + "\n" + lines)
}
