package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// Transports of a [Pipeline].
const (
	TransportStatsD = "statsd"
	TransportKafka  = "kafka"
)

// PipelineConfig configures [Pipeline]. Command and Transport are required. The zero value of any
// other field is its default.
type PipelineConfig struct {
	// Command is the command that starts a part of this program: see [RunPart].
	Command []string
	// Transport is [TransportStatsD] or [TransportKafka].
	Transport string
	// Rate is the number of events per second, over all instances. Zero means 200,000.
	Rate int
	// For is the time in which events are generated. Zero means 10 s.
	For time.Duration
	// Instances is the number of instances. Zero means 6.
	Instances int
	// Brokers are addresses, host:port, of a Kafka to use. If there are none, an embedded one
	// runs in a process of its own.
	Brokers []string
	// Redis is the URL of a Redis to use. If it is empty, a redis-server from the PATH is
	// started.
	Redis string
	// Progress, if not nil, is called with the elapsed and the total seconds.
	Progress func(done, total int)
}

func (c *PipelineConfig) setDefaults() {
	c.Rate = cmp.Or(c.Rate, 200_000)
	c.For = cmp.Or(c.For, 10*time.Second)
	c.Instances = cmp.Or(c.Instances, 6)
}

// PipelineResult is the result for the whole chain, from the count in a collector to the
// detector's window, with the hot keys returning by Redis.
type PipelineResult struct {
	Events          int64   `json:"events"`  // counts added to the instances' collectors
	Seconds         float64 `json:"seconds"` // time in which they were added
	EventsPerSecond float64 `json:"events_per_second"`
	// CPUSeconds is the user and system time of the instances' processes, including the
	// generation of events, and of the aggregator's process, until all arrived events are
	// counted.
	CPUSeconds float64 `json:"cpu_seconds"`
	// LagMS is the 99th percentile, over the Probes that arrived, of the time from an event's
	// count until the detector has it in its window.
	LagMS float64 `json:"lag_ms"`
	// Lost is the number of events missing from the detector's windows at the end. A negative
	// number means that events were counted twice.
	Lost int64 `json:"lost"`

	Probes int   `json:"-"`
	probed int64 // number of probes sent
	// Instances and Aggregator are their shares of CPUSeconds.
	Instances, Aggregator float64 `json:"-"`
	// Hot is the number of hot keys in Redis at the end.
	Hot int `json:"-"`
}

// Pipeline measures with real processes: instances, each a guard with its collector and its
// watcher, the transport, an aggregator, and a Redis.
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

// pipeline holds the running parts: a Redis, a broker unless one was given, an aggregator,
// instances.
type pipeline struct {
	harness
	config     PipelineConfig
	topic      *benchTopic // nil unless over Kafka
	aggregator *partProcess
}

// start starts all parts, and returns when all are ready.
func (p *pipeline) start(ctx context.Context) error {
	if err := p.useRedis(ctx); err != nil {
		return err
	}
	common := partConfig{Transport: p.config.Transport, Redis: p.redis, Namespace: p.namespace, Rate: p.config.Rate}
	if p.config.Transport == TransportKafka {
		var err error
		if common.Brokers, err = p.useKafka(ctx); err != nil {
			return err
		}
		common.Topic = p.topic.name
	}
	var err error
	if p.aggregator, err = p.harness.start(ctx, "aggregator", common); err != nil {
		return err
	}
	if err := p.aggregator.receive(&common.StatsD); err != nil {
		return err
	}
	return p.startInstances(ctx, "pipeline-instance", p.config.Instances, func(i int) any {
		return instanceConfig{partConfig: common, Number: i, Of: p.config.Instances}
	})
}

// stop ends all parts. It also deletes the topic from a Kafka that existed before.
func (p *pipeline) stop() error {
	err := p.harness.stop()
	if p.topic != nil && len(p.config.Brokers) > 0 {
		err = errors.Join(err, p.topic.remove())
	}
	return err
}

const (
	// pipelineSettle is the time without events at the start, in which connections are made and
	// each instance becomes known to the aggregator.
	pipelineSettle = 1500 * time.Millisecond
	// pipelineDrain is the longest time without an arrival after which events in flight are given
	// up.
	pipelineDrain = 2 * time.Second
	drainPoll     = 100 * time.Millisecond
)

func (p *pipeline) measure(ctx context.Context) (r PipelineResult, err error) {
	if err := base.Sleep(ctx, pipelineSettle); err != nil {
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
	r.LagMS, r.Probes = round(float64(yardstick.Percentile(lags, 99))/1e6, 10), len(lags)
	r.Lost = r.Events - (after.Counted - before.Counted)
	return r, nil
}

// wait returns when the load has ended.
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
		if err := base.Sleep(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
}

// hot returns the number of hot keys in Redis.
func (p *pipeline) hot(ctx context.Context) (n int, err error) {
	err = p.withRedis(func(client redis.UniversalClient) error {
		hot, err := hotkeys.List(ctx, client, p.namespace)
		n = len(hot)
		return err
	})
	return n, err
}

// drain waits until all events are counted, or no more arrive.
func (p *pipeline) drain(ctx context.Context, events int64) (last aggregatorTotal, err error) {
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
		if err := base.Sleep(ctx, drainPoll); err != nil {
			return t, err
		}
	}
}
