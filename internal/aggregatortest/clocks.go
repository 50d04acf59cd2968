package aggregatortest

import (
	"fmt"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/wire"
)

// Instance is a sender whose clock may be off, with its link to the aggregator. Times are
// relative to [Noon].
type Instance struct {
	Name   string
	Clock  func(t time.Duration) time.Duration // offset of its clock at a time; positive if ahead
	Delay  func(t time.Duration) time.Duration // delay of a packet sent at a time
	Silent func(t time.Duration) bool          // reports whether it sends nothing; nil means never
	Plain  bool                                // its version does not report when it sends
}

// Stamp returns the reading of the instance's clock at a time.
func (i *Instance) Stamp(t time.Duration) int64 { return Noon.Add(t + i.Clock(t)).UnixNano() }

// Arrival is a packet and the time of its arrival.
type Arrival struct {
	From  *Instance
	Start time.Duration // start of its counts
	At    time.Duration
	Meta  wire.Meta
}

// Arrivals returns the packets that the instances send until lasts, in the order of arrival.
func Arrivals(lasts time.Duration, all ...*Instance) (packets []Arrival) {
	for _, i := range all {
		seq, before := uint64(0), i.Stamp(-base.FlushInterval)
		for t := base.FlushInterval; t < lasts; t += base.FlushInterval {
			if i.Silent != nil && i.Silent(t) {
				continue
			}
			seq++
			m := wire.Meta{Instance: []byte(i.Name), Incarnation: 1, Seq: seq, Start: i.Stamp(t - base.FlushInterval), Sent: i.Stamp(t), Held: 1}
			m.Sums = wire.Sums{Stated: true, Loose: seq - 1, Since: m.Start - before}
			before = m.Start
			if i.Plain {
				m.Sent = 0
			}
			packets = append(packets, Arrival{i, t - base.FlushInterval, t + i.Delay(t), m})
		}
	}
	slices.SortStableFunc(packets, func(a, b Arrival) int { return int(a.At - b.At) })
	return packets
}

// Always returns a function that returns d for any time.
func Always(d time.Duration) func(time.Duration) time.Duration {
	return func(time.Duration) time.Duration { return d }
}

// MetaFields returns the fields of a meta line that an instance sends at a time after [Noon].
// The line reports no counts held back.
func MetaFields(instance string, incarnation, seq int, sent time.Duration) string {
	stamp := Noon.Add(sent).UnixNano()
	return fmt.Sprintf("i:%s,e:%x,s:%d,t:%d,h:1,u:0,w:%d", instance, incarnation, seq, stamp, stamp)
}
