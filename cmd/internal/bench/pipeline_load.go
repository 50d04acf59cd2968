package bench

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/rules"
)

// The events of an instance: 100,000 values of q by Zipf's law with exponent 1.1. The most
// frequent value has an eighth of all events.
const (
	loadKeys = 100_000
	loadZipf = 1.1
	loadLoop = 1 << 18 // events after which the stream repeats; a power of two
)

// Events come in clumps, so that waking up for them costs little compared with them. Their
// interval is 5 to 15 ms, so that clumps and flushes do not synchronize.
const (
	clumpLeast = 5 * time.Millisecond
	clumpMost  = 15 * time.Millisecond
	// probeShare is the number of clumps per probe, on average.
	probeShare = 10
)

// probeQuery precedes the time of a probe in its key.
const probeQuery = "t="

// eventLoad is the stream of an instance's events. It is generated in advance, so that an event
// costs only a look-up before it is counted.
type eventLoad struct {
	rand  *rand.Rand
	keys  []loadKey
	ranks []uint32
}

type loadKey struct {
	hash   uint64
	member []byte
}

func newLoad(seed uint64) *eventLoad {
	l := &eventLoad{rand: yardstick.NewRand(seed), keys: make([]loadKey, loadKeys), ranks: make([]uint32, loadLoop)}
	for i := range l.keys {
		l.keys[i] = newLoadKey(ruleTerms, rules.Text(route, rules.Param{Name: "b", Value: "2"}, rules.Param{Name: "q", Value: strconv.Itoa(i + 1)}))
	}
	zipf := yardstick.NewZipf(l.rand, loadZipf, loadKeys)
	for i := range l.ranks {
		l.ranks[i] = uint32(zipf.Draw() - 1)
	}
	return l
}

func newLoadKey(rule, text string) loadKey {
	key := rules.Key{Rule: rule, Text: text}
	member := []byte(key.String())
	return loadKey{rules.Hash(member), member}
}

// loadOrder is the time and rate at which an instance counts events. The times are monotonic.
type loadOrder struct {
	From, Until int64
	Rate        float64
}

// loaded is what an instance has counted, and the processor time that it took.
type loaded struct {
	Events int64 // including probes
	Probes int64
	Ended  int64 // monotonic
	CPU    time.Duration
}

// run counts the events of an order by calling add.
func (l *eventLoad) run(ctx context.Context, o loadOrder, add func(hash uint64, member []byte, n uint64)) (r loaded, err error) {
	next := o.From
	for done := int64(0); ; {
		if err := base.Sleep(ctx, time.Duration(next-monotonic())); err != nil {
			return r, err
		}
		now := monotonic()
		due := int64(float64(min(now, o.Until)-o.From) * o.Rate / 1e9)
		for ; done < due; done++ {
			k := &l.keys[l.ranks[done&(loadLoop-1)]]
			add(k.hash, k.member, 1)
		}
		if now >= o.Until {
			r.Events, r.Ended = done+r.Probes, now
			return r, nil
		}
		if l.rand.IntN(probeShare) == 0 {
			probe := newProbe(monotonic())
			add(probe.hash, probe.member, 1)
			r.Probes++
		}
		next = min(o.Until, now+int64(clumpLeast)+l.rand.Int64N(int64(clumpMost-clumpLeast)))
	}
}

// newProbe returns a new key that contains the time of its count.
func newProbe(now int64) loadKey {
	return newLoadKey(ruleProbe, probeRoute+"?"+probeQuery+strconv.FormatInt(now, 10))
}

// probeTime returns the time at which a probe was counted. ok is false if the key is not a probe.
func probeTime(key rules.Key) (counted int64, ok bool) {
	const head = len(probeRoute) + len("?") + len(probeQuery)
	if key.Rule != ruleProbe || len(key.Text) < head {
		return 0, false
	}
	counted, err := strconv.ParseInt(key.Text[head:], 10, 64)
	return counted, err == nil
}
