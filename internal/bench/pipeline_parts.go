package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// pipelineConfig is the configuration that the parts share.
type pipelineConfig struct {
	Transport string
	Redis     string // URL
	Namespace string
	Rate      int    // events per second, over all instances
	StatsD    string // address
	Brokers   []string
	Topic     string
}

// Rules and route of a pipeline.
const (
	ruleTerms  = "terms"
	ruleProbe  = "probe"
	probeRoute = "GET /probe"
)

// rules returns the rules of a part. A key is hot at half a percent of all events, which about
// twenty keys reach, and is only watched. Probes are hot at once, but only for the aggregator, so
// instances send them like any key that occurs once.
func (c *pipelineConfig) rules(probes bool) *rules.Rules {
	second := func(n int64) rules.Rate { return rules.Rate{N: n, Per: time.Second} }
	ruleset := searchRules(c.Namespace, rules.NewThreshold(second(max(10, int64(c.Rate)/200))), nil)
	rate := unreachable
	if probes {
		rate = second(1)
	}
	hot := rules.NewThreshold(rate)
	hot.Hold, hot.CoolDown = 0, 0
	r, err := rules.ParseRoute(probeRoute)
	if err != nil {
		panic(err) // a constant
	}
	ruleset.Rules = append(ruleset.Rules, rules.Rule{
		ID: ruleProbe, Match: rules.Match{Route: r}, By: rules.By{Kind: rules.ByAll}, Hot: []rules.Threshold{hot},
	})
	return ruleset
}

type pipelineInstanceConfig struct {
	pipelineConfig
	Name string
	Seed uint64
}

// runPipelineInstance answers when it follows the hot set. It then carries out one order, and
// answers with the totals when all counts are sent.
func runPipelineInstance(ctx context.Context, l *link, c pipelineInstanceConfig) (err error) {
	rules := c.rules(false)
	sink, err := c.sink(rules)
	if err != nil {
		return err
	}
	counts, err := collector.New(collector.Config{Sink: sink, Rules: rules})
	if err != nil {
		return err
	}
	guard, err := middleware.New(rules, counts)
	if err != nil {
		return err
	}
	client, err := hotkeys.NewClient(c.Redis)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	watcher, err := hotkeys.NewWatcher(client, hotkeys.WatcherConfig{Namespace: c.Namespace}, guard.HotSet())
	if err != nil {
		return err
	}
	load := newLoad(c.Seed)
	return l.serve(ctx, func() error {
		if err := connected(watcher); err != nil {
			return err
		}
		if err := l.send(true); err != nil {
			return err
		}
		var order loadOrder
		if ok, err := l.receive(&order); !ok || err != nil {
			return err
		}
		ctx, over := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			defer over()
			ended <- l.untilEnd()
		}()
		done, err := loadInstance(ctx, load, order, counts)
		if err == nil {
			err = l.send(done)
		} else if ctx.Err() != nil {
			err = nil // the input ended first: no one reads the answer
		}
		return errors.Join(err, <-ended)
	}, counts.Run, watcher.Run)
}

// sink returns the instance's end of the transport.
func (c *pipelineInstanceConfig) sink(rules *rules.Rules) (collector.Sink, error) {
	if c.Transport == TransportKafka {
		return c.kafkaSink(rules)
	}
	return statsdsink.New(statsdsink.Config{Rules: rules, Addrs: []string{c.StatsD}, Instance: c.Name})
}

// connected waits until a watcher is connected.
func connected(watcher *hotkeys.Watcher) error {
	for deadline := time.Now().Add(10 * time.Second); !watcher.Stats().Connected; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("not connected to Redis after 10s: %+v", watcher.Stats())
		}
	}
	return nil
}

// loadInstance carries out an order, and returns when the collector has sent all counts that it
// will send.
func loadInstance(ctx context.Context, load *eventLoad, o loadOrder, counts *collector.Collector) (done loaded, err error) {
	if err := base.Sleep(ctx, time.Duration(o.From-monotonic())); err != nil {
		return done, err
	}
	before, err := cpuTime()
	if err != nil {
		return done, err
	}
	if done, err = load.run(ctx, o, counts.Add); err != nil {
		return done, err
	}
	// Wait until the last counts, and the counts that the budget held back, have been flushed.
	for deadline := time.Now().Add(pipelineDrain); ; {
		if err := base.Sleep(ctx, 2*base.FlushInterval); err != nil {
			return done, err
		}
		if counts.Stats().Unsent == 0 || time.Now().After(deadline) {
			break
		}
	}
	after, err := cpuTime()
	done.CPU = after - before
	return done, err
}
