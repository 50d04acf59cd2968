package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/middleware"
)

// burst is one instance's part of a burst. It has a request at each time of At, in monotonic
// time. After them the instance probes periodically until the key is in force there, or until
// Until.
type burst struct {
	Query string
	At    []int64
	Until int64
}

// burstOutcome is the result of a burst on one instance: the times of its requests, of the first
// refused one, and of the key's arrival in the hot set. Zero means never.
type burstOutcome struct {
	Requests []int64
	Refused  int64
	Swapped  int64
}

// inForce returns the time at which the instance first saw the limit in force. Zero means never.
func (o *burstOutcome) inForce() int64 {
	if o.Refused != 0 && (o.Swapped == 0 || o.Refused < o.Swapped) {
		return o.Refused
	}
	return o.Swapped
}

// burstInstance is an instance that sends bursts.
type burstInstance struct {
	*apiInstance
	await atomic.Pointer[awaited]
	over  atomic.Bool
	probe time.Duration // offset of this instance's probes from those of the first one
}

// awaited is a key that should become hot, and the time at which it did.
type awaited struct {
	text     string
	hotSince atomic.Int64
}

// runInstance answers once it follows the hot set, and then answers each burst with its outcome.
func runInstance(ctx context.Context, l *link, c instanceConfig) (err error) {
	in := &burstInstance{probe: probeEvery * time.Duration(c.Number) / time.Duration(c.Of)}
	if in.apiInstance, err = c.newInstance(middleware.WithOnSwap(in.swapped)); err != nil {
		return err
	}
	return in.serve(ctx, l, func(context.Context) error { return in.bursts(l) })
}

// bursts answers each burst with its outcome until the input ends. The end of the input also ends
// the current burst.
func (in *burstInstance) bursts(l *link) error {
	bursts, ended := make(chan burst, 1), make(chan error, 1) // bursts are sent one by one
	go func() {
		defer close(bursts)
		for {
			var b burst
			if ok, err := l.receive(&b); !ok || err != nil {
				in.over.Store(true)
				ended <- err
				return
			}
			bursts <- b
		}
	}()
	var errs []error
	for b := range bursts {
		if err := l.send(in.run(b)); err != nil {
			errs = append(errs, err) // no one reads; so the input ends as well
		}
	}
	return errors.Join(append(errs, <-ended)...)
}

// swapped records the time at which the awaited key came into the hot set.
func (in *burstInstance) swapped(_ string, hot []middleware.HotKey) {
	a := in.await.Load()
	if a == nil || a.hotSince.Load() != 0 {
		return
	}
	for i := range hot {
		if hot[i].Text == a.text {
			a.hotSince.Store(monotonic())
			return
		}
	}
}

// probeEvery is the interval at which an instance checks, after its part of a burst, whether the
// key is in force.
const probeEvery = 5 * time.Millisecond

// run sends a burst through the guard.
func (in *burstInstance) run(b burst) burstOutcome {
	a := &awaited{text: route + "?" + b.Query}
	in.await.Store(a)
	o := burstOutcome{Requests: make([]int64, 0, len(b.At))}
	for _, due := range b.At {
		time.Sleep(time.Duration(due - monotonic()))
		in.request(b.Query, &o)
	}
	for next := in.firstProbe(b); o.Refused == 0 || a.hotSince.Load() == 0; next += int64(probeEvery) {
		if next > b.Until || in.over.Load() {
			break
		}
		time.Sleep(time.Duration(next - monotonic()))
		in.request(b.Query, &o)
		if a.hotSince.Load() != 0 && o.Refused == 0 {
			in.request(b.Query, &o) // the first one may have taken the only token
		}
	}
	o.Swapped = a.hotSince.Load()
	return o
}

// firstProbe returns the time of the first probe. The instances probe one after the other.
func (in *burstInstance) firstProbe(b burst) int64 {
	after := b.Until - int64(EnforceLimit)
	if n := len(b.At); n > 0 {
		after = max(after, b.At[n-1])
	}
	return after + int64(in.probe)
}

// request sends a request. Its time is taken before the check, that of a refusal after it.
func (in *burstInstance) request(query string, o *burstOutcome) {
	o.Requests = append(o.Requests, monotonic())
	if d := in.guard.Check(request(query)); !d.Allowed && o.Refused == 0 {
		o.Refused = monotonic()
	}
}
