package bench

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/statsdsource"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// enforcePartConfig is the configuration that the parts of a fleet share.
type enforcePartConfig struct {
	Redis      string // URL
	Namespace  string
	Threshold  int
	Slow       bool
	Aggregator string // address
}

// rules returns rules with a limit far below the threshold, and with a hold so short that the hot
// set does not grow with the samples.
func (c *enforcePartConfig) rules() *rules.Rules {
	hot := rules.NewThreshold(rules.Rate{N: int64(c.Threshold), Per: time.Second})
	hot.Hold = time.Second
	return searchRules(c.Namespace, hot, &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 1}, Mode: rules.ModeLimit})
}

// runAggregator answers with the address that it listens on.
func runAggregator(ctx context.Context, l *link, c enforcePartConfig) (err error) {
	client, err := hotkeys.NewClient(c.Redis)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: c.Namespace})
	if err != nil {
		return err
	}
	a, err := statsdsource.New(ctx, statsdsource.Config{Rules: c.rules(), Publisher: publisher, Listen: []string{"127.0.0.1:0"}})
	if err != nil {
		return err
	}
	return l.serve(ctx, func() error {
		if err := l.send(a.Addr().String()); err != nil {
			return err
		}
		return l.untilEnd()
	}, a.Run, publisher.Run)
}

// serve runs the loops until talk returns, and then waits for them to end. It returns the error of
// talk and the first error of the loops.
func (l *link) serve(ctx context.Context, talk func() error, loops ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	for _, run := range loops {
		group.Go(func() error { return run(ctx) })
	}
	err := talk()
	stop()
	return errors.Join(err, group.Wait())
}

type instanceConfig struct {
	enforcePartConfig
	Name       string
	Number, Of int
}

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

// guardInstance is an instance of an API without the API itself.
type guardInstance struct {
	guard *middleware.Guard
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
	rules := c.rules()
	sink, err := statsdsink.New(statsdsink.Config{Rules: rules, Addrs: []string{c.Aggregator}, Instance: c.Name})
	if err != nil {
		return err
	}
	counts, err := collector.New(collectorConfig(sink, rules, c.Slow))
	if err != nil {
		return err
	}
	in := &guardInstance{probe: probeEvery * time.Duration(c.Number) / time.Duration(c.Of)}
	if in.guard, err = middleware.New(rules, counts, middleware.WithOnSwap(in.swapped)); err != nil {
		return err
	}
	client, err := hotkeys.NewClient(c.Redis)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	watcher, err := hotkeys.NewWatcher(client, hotkeys.WatcherConfig{Namespace: c.Namespace}, in.guard.HotSet())
	if err != nil {
		return err
	}
	return l.serve(ctx, func() error {
		if err := connected(watcher); err != nil {
			return err
		}
		if err := l.send(true); err != nil {
			return err
		}
		return in.bursts(l)
	}, counts.Run, watcher.Run)
}

// bursts answers each burst with its outcome until the input ends. The end of the input also ends
// the current burst.
func (in *guardInstance) bursts(l *link) error {
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

// collectorConfig returns the configuration of an instance's collector, with or without urgent
// flushes.
func collectorConfig(sink collector.Sink, rules *rules.Rules, slow bool) collector.Config {
	c := collector.Config{Sink: sink, Rules: rules}
	if slow {
		c.Urgent = -1
	}
	return c
}

// swapped records the time at which the awaited key came into the hot set.
func (in *guardInstance) swapped(_ string, hot []rules.Hot) {
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
func (in *guardInstance) run(b burst) burstOutcome {
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
func (in *guardInstance) firstProbe(b burst) int64 {
	after := b.Until - int64(EnforceLimit)
	if n := len(b.At); n > 0 {
		after = max(after, b.At[n-1])
	}
	return after + int64(in.probe)
}

// request sends a request. Its time is taken before the check, that of a refusal after it.
func (in *guardInstance) request(query string, o *burstOutcome) {
	o.Requests = append(o.Requests, monotonic())
	if d := in.guard.Check(request(query)); !d.Allowed && o.Refused == 0 {
		o.Refused = monotonic()
	}
}
