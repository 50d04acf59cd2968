package bench

import (
	"context"
	"errors"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// Rules and route of a pipeline.
const (
	ruleTerms  = "terms"
	ruleProbe  = "probe"
	probeRoute = "GET /probe"
)

// pipelineRules returns the rules of a pipeline. A key is hot at half a percent of all events, which
// about twenty keys reach, and is only watched. Probes are hot at once, but only for the aggregator, so
// instances send them like any key that occurs once.
func (c *partConfig) pipelineRules(probes bool) *rules.Rules {
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

// runPipelineInstance answers when it follows the hot set. It then carries out one order, and
// answers with the totals when all counts are sent.
func runPipelineInstance(ctx context.Context, l *link, c instanceConfig) error {
	in, err := c.newInstance()
	if err != nil {
		return err
	}
	load := newLoad(uint64(c.Number + 1))
	return in.serve(ctx, l, func(ctx context.Context) error {
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
		done, err := loadInstance(ctx, load, order, in.counts)
		if err == nil {
			err = l.send(done)
		} else if ctx.Err() != nil {
			err = nil // the input ended first: no one reads the answer
		}
		return errors.Join(err, <-ended)
	})
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
