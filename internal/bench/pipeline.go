package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
)

// Transports that a [Pipeline] can go over.
const (
	TransportStatsD = "statsd"
	TransportKafka  = "kafka"
)

// PipelineConfig says how the whole chain is measured. Command and Transport are
// required; else the zero value is the default.
type PipelineConfig struct {
	// Command starts a part of this program: see [RunPart].
	Command []string
	// Transport is [TransportStatsD] or [TransportKafka].
	Transport string
	// Rate is how many events there are in a second, over all instances; 0 is
	// 200,000.
	Rate int
	// For is how long there are; 0 is 10 s.
	For time.Duration
	// Instances is how many there are; 0 is 6.
	Instances int
	// Brokers are some of the host:port of a Kafka to go over; empty: an embedded one
	// in a process of its own.
	Brokers []string
	// Redis is the URL of a Redis to go over; empty: a redis-server of the PATH is
	// started.
	Redis string
	// Progress, if not nil, is called with how much of the run is over.
	Progress func(done, total int)
}

func (c *PipelineConfig) setDefaults() {
	if c.Rate == 0 {
		c.Rate = 200_000
	}
	if c.For == 0 {
		c.For = 10 * time.Second
	}
	if c.Instances == 0 {
		c.Instances = 6
	}
}

// PipelineResult is what the whole chain came to: from the count in a collector to
// the detector's window, with the hot keys going back by Redis.
type PipelineResult struct {
	Events          int64   `json:"events"`  // counts that the instances' collectors were given
	Seconds         float64 `json:"seconds"` // in which they were
	EventsPerSecond float64 `json:"events_per_second"`
	// CPUSeconds are user and system time of the instances' processes, with what
	// gives them events, and of the aggregator's, until all that came is counted.
	CPUSeconds float64 `json:"cpu_seconds"`
	// LagMS is the 99th percentile of the time from an event's count to the detector
	// having it in its window, of the Probes that came there.
	LagMS float64 `json:"lag_ms"`
	// Lost are events that the detector has not in its windows in the end; below 0
	// are those that it has twice.
	Lost int64 `json:"lost"`

	Probes int   `json:"-"`
	probed int64 // that were sent
	// Instances and Aggregator are the parts of CPUSeconds.
	Instances, Aggregator float64 `json:"-"`
	// Hot is how many keys were hot in Redis at the end.
	Hot int `json:"-"`
}

// Pipeline measures with real processes: instances, each a guard with its collector
// and its watcher, the transport, an aggregator, and a Redis.
func Pipeline(ctx context.Context, c PipelineConfig) (result PipelineResult, err error) {
	c.setDefaults()
	p := &pipeline{harness: newHarness(c.Command, c.Redis), config: c}
	defer func() {
		err = interrupted(ctx, errors.Join(err, p.stop()))
	}()
	if err := p.start(ctx); err != nil {
		return result, err
	}
	return p.measure(ctx)
}

// pipeline is what runs: a Redis, a broker unless there is one, an aggregator,
// instances.
type pipeline struct {
	harness
	config     PipelineConfig
	topic      *benchTopic // nil: not over Kafka
	aggregator *part
	instances  []*part
}

// start starts all of it, and returns when all are ready.
func (p *pipeline) start(ctx context.Context) error {
	if err := p.useRedis(ctx); err != nil {
		return err
	}
	common := pipelineConfig{Transport: p.config.Transport, Redis: p.redis, Namespace: p.namespace, Rate: p.config.Rate}
	if p.config.Transport == TransportKafka {
		var err error
		if common.Brokers, err = p.useKafka(ctx); err != nil {
			return err
		}
		common.Topic = p.topic.name
	}
	var err error
	if p.aggregator, err = p.harness.start(ctx, "pipeline-aggregator", common); err != nil {
		return err
	}
	if err := p.aggregator.receive(&common.StatsD); err != nil {
		return err
	}
	for i := range p.config.Instances {
		instance, err := p.harness.start(ctx, "pipeline-instance", pipelineInstanceConfig{
			pipelineConfig: common, Name: fmt.Sprintf("bench-%d", i+1), Seed: uint64(i + 1),
		})
		if err != nil {
			return err
		}
		p.instances = append(p.instances, instance)
	}
	for _, instance := range p.instances {
		var ready bool
		if err := instance.receive(&ready); err != nil {
			return err
		}
	}
	return nil
}

// stop also leaves nothing in a Kafka that was there before.
func (p *pipeline) stop() error {
	err := p.harness.stop()
	if p.topic != nil && len(p.config.Brokers) > 0 {
		err = errors.Join(err, p.topic.remove())
	}
	return err
}

const (
	// pipelineSettle is how long it runs without events: connections are made, and
	// each instance has been heard of.
	pipelineSettle = 1500 * time.Millisecond
	// pipelineDrain is how long what is on its way may take without any of it coming.
	pipelineDrain = 2 * time.Second
	drainPoll     = 100 * time.Millisecond
)

func (p *pipeline) measure(ctx context.Context) (r PipelineResult, err error) {
	if err := sleep(ctx, pipelineSettle); err != nil {
		return r, err
	}
	before, err := p.aggregator.tally()
	if err != nil {
		return r, err
	}
	from := monotonic() + int64(100*time.Millisecond) // time for the order to arrive
	order := loadOrder{From: from, Until: from + int64(p.config.For), Rate: float64(p.config.Rate) / float64(len(p.instances))}
	for _, instance := range p.instances {
		if err := instance.send(order); err != nil {
			return r, err
		}
	}
	if err := p.wait(ctx, order); err != nil {
		return r, err
	}
	ended := order.Until
	var cpu time.Duration
	for _, instance := range p.instances {
		var l loaded
		if err := instance.receive(&l); err != nil {
			return r, err
		}
		r.Events += l.Events
		r.probed += l.Probes
		cpu += l.CPU
		ended = max(ended, l.Ended)
	}
	after, err := p.drain(ctx, r.Events)
	if err != nil {
		return r, err
	}
	if r.Hot, err = p.hot(ctx); err != nil {
		return r, err
	}
	var lags []int64
	if err := p.aggregator.last(&lags); err != nil {
		return r, err
	}
	if len(lags) == 0 {
		return r, fmt.Errorf("bench: no probe of %d events came to the aggregator's window, and %d counts did", r.Events, after.Counted)
	}
	round := func(v float64, digits float64) float64 { return math.Round(v*digits) / digits }
	r.Seconds = round(float64(ended-from)/1e9, 1000)
	r.EventsPerSecond = math.Round(float64(r.Events) / r.Seconds)
	r.Instances = round(cpu.Seconds(), 1000)
	r.Aggregator = round((after.CPU - before.CPU).Seconds(), 1000)
	r.CPUSeconds = round(r.Instances+r.Aggregator, 1000)
	r.LagMS, r.Probes = round(float64(Percentile(lags, 99))/1e6, 10), len(lags)
	r.Lost = r.Events - (after.Counted - before.Counted)
	return r, nil
}

// wait waits for the end of the load.
func (p *pipeline) wait(ctx context.Context, order loadOrder) error {
	total := int(p.config.For / time.Second)
	for second := 0; ; second++ {
		if p.config.Progress != nil {
			p.config.Progress(min(second, total), total)
		}
		left := time.Duration(order.Until - monotonic())
		if left <= 0 {
			return nil
		}
		if err := sleep(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
}

// hot is how many keys are hot in Redis.
func (p *pipeline) hot(ctx context.Context) (n int, err error) {
	err = p.withRedis(func(client redis.UniversalClient) error {
		hot, err := hotkeys.List(ctx, client, p.namespace)
		n = len(hot)
		return err
	})
	return n, err
}

// drain waits until all events are counted, or nothing comes any more.
func (p *pipeline) drain(ctx context.Context, events int64) (last tally, err error) {
	for changed := time.Now(); ; {
		t, err := p.aggregator.tally()
		switch {
		case err != nil:
			return t, err
		case t.Counted == events:
			return t, nil
		case t.Counted != last.Counted:
			changed = time.Now()
		case time.Since(changed) > pipelineDrain:
			return t, nil
		}
		last = t
		if err := sleep(ctx, drainPoll); err != nil {
			return t, err
		}
	}
}
