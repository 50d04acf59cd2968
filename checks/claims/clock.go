package claims

import (
	"strconv"
	"strings"
	"time"
)

// InstanceClock is an instance's clock. It is Ahead of the aggregator's clock and gains Drift
// seconds per second. It is set forward once by Set, when At of the stream has passed.
type InstanceClock struct {
	Ahead time.Duration
	Drift float64
	Set   time.Duration
	At    time.Duration
}

// clocks holds the clocks of a run's instances and what an aggregator can know about them.
type clocks struct {
	perInstance []InstanceClock // nil if packets carry no times
	began       int64
	maxDelay    int64 // longest delay of the network
	arrivals    []arrivalState
	lateCounts  int64 // counts that may be placed too late for any window
}

// arrivalState is what an aggregator received from an instance whose clock it does not know yet.
type arrivalState struct {
	first, last int64
	packets     int    // packets that were not overtaken
	newest      uint64 // number of the newest packet
	ahead       int64  // offset of the clock at the newest packet
}

const (
	// From docs/design/aggregator.md: clocks within slack are left alone. A clock's offset is the
	// least delay within offsetMemory. It is known after knownAfter of packets, if at least
	// knownFrom came.
	clockSlack   = 250 * int64(time.Millisecond)
	offsetMemory = 30 * second
	knownAfter   = second + 4*tenthSecond
	knownFrom    = 10
	// setMargin is the time before and after a clock is set in which counts may be placed anywhere
	// between the two times.
	setMargin = second
)

func newClocks(c *Case, began int64) *clocks {
	k := &clocks{began: began, maxDelay: int64(c.Network.Most), arrivals: make([]arrivalState, c.Instances)}
	if c.Clocks != nil {
		k.perInstance = make([]InstanceClock, c.Instances)
		copy(k.perInstance, c.Clocks)
	}
	return k
}

// hasDoubtfulClock reports whether some clock may at first be mistaken for a delay.
func (c *Case) hasDoubtfulClock() bool {
	for _, clock := range c.Clocks {
		if int64(clock.Ahead) < -clockSlack || clock.Drift != 0 || clock.Set != 0 {
			return true
		}
	}
	return false
}

// slackClocks reports whether some clock is off, none changes, and none is off by more than
// slack.
func (c *Case) slackClocks() bool {
	off := false
	for _, clock := range c.Clocks {
		if clock.Drift != 0 || clock.Set != 0 || int64(clock.Ahead.Abs()) > clockSlack {
			return false
		}
		off = off || clock.Ahead != 0
	}
	return off
}

// ahead returns how far an instance's clock is ahead at an instant.
func (k *clocks) ahead(instance int, instant int64) int64 {
	c := &k.perInstance[instance]
	d := int64(c.Ahead) + int64(c.Drift*float64(instant-k.began))
	if instant-k.began >= int64(c.At) {
		d += int64(c.Set)
	}
	return d
}

// recordArrival records the arrival of a packet.
func (k *clocks) recordArrival(p *packet) {
	h := &k.arrivals[p.instance]
	if k.perInstance == nil || p.number <= h.newest {
		return
	}
	ahead := k.ahead(p.instance, p.sent)
	wasSet := max(ahead-h.ahead, h.ahead-ahead) > clockSlack
	if h.packets == 0 || !k.mustKnow(p.instance) && (p.arrives-h.last > second || wasSet) {
		*h = arrivalState{first: p.arrives}
	}
	h.packets++
	h.last, h.newest, h.ahead = p.arrives, p.number, ahead
}

// mustKnow reports whether an aggregator must know an instance's clock by now.
func (k *clocks) mustKnow(instance int) bool {
	h := &k.arrivals[instance]
	return h.packets >= knownFrom && h.last-h.first >= knownAfter
}

// blurOf returns the blur of an instance's counts that begin at an instant.
func (k *clocks) blurOf(instance int, begin int64) (uncertainty blur) {
	if k.perInstance == nil || k.perInstance[instance] == (InstanceClock{}) {
		return uncertainty
	}
	c := &k.perInstance[instance]
	ahead := k.ahead(instance, begin)
	uncertainty.late = k.maxDelay
	if c.Drift != 0 {
		drift := clockSlack + int64(float64(offsetMemory)*max(c.Drift, -c.Drift))
		uncertainty.early, uncertainty.late = drift, uncertainty.late+drift
	}
	if -clockSlack-k.maxDelay <= ahead && ahead <= clockSlack+k.maxDelay { // the clock may be left alone
		uncertainty.early, uncertainty.late = uncertainty.early+max(0, -ahead), uncertainty.late+max(0, ahead)
	}
	if ahead < -clockSlack && !k.mustKnow(instance) {
		uncertainty.doubt = -ahead
	}
	if since := begin - k.began - int64(c.At); c.Set != 0 && -setMargin < since && since < setMargin {
		uncertainty.early, uncertainty.late = uncertainty.early+int64(c.Set.Abs()), uncertainty.late+int64(c.Set.Abs())
	}
	return uncertainty
}

// withClockTimes returns the packet with the times of its meta line replaced by those of the
// instance's clock: the start of its flush and the time of sending.
func (k *clocks) withClockTimes(p *packet) []byte {
	if k.perInstance == nil {
		return p.bytes
	}
	head, lines, _ := strings.Cut(string(p.bytes), "\n")
	fields := strings.Split(head, ",")
	var start, writtenStart int64
	for i, field := range fields {
		switch name, value, _ := strings.Cut(field, ":"); name {
		case "t":
			writtenStart, _ = strconv.ParseInt(value, 10, 64)
			start = writtenStart + k.ahead(p.instance, writtenStart)
			sent := p.sent + k.ahead(p.instance, p.sent)
			fields[i] = "t:" + strconv.FormatInt(start, 10) + ",w:" + strconv.FormatInt(sent, 10)
		case "b": // stands after the time; holds how much earlier than its flush the account begins, and the interval from the previous flush
			sums := strings.Split(value, ".")
			age, _ := strconv.ParseInt(sums[5], 16, 64)
			since, _ := strconv.ParseInt(sums[6], 16, 64)
			flush := writtenStart + age
			before := flush - since
			sums[5] = strconv.FormatInt(flush+k.ahead(p.instance, flush)-start, 16)
			sums[6] = strconv.FormatInt(flush+k.ahead(p.instance, flush)-before-k.ahead(p.instance, before), 16)
			fields[i] = "b:" + strings.Join(sums, ".")
		}
	}
	return []byte(strings.Join(fields, ",") + "\n" + lines)
}
