package daemon

import (
	"context"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/figure"
)

// newDays returns the still empty history that jumps over days compare with. It is named after
// the share of the keys that this daemon counts and publishes.
func newDays(a config.Aggregator) *baseline.Days {
	share := a.Source
	if a.Name != "" && a.Source != config.SourceKafka { // a Kafka partition moves between aggregators
		share += "-" + a.Name
	}
	return baseline.NewDays(share)
}

// keepBaselines returns the companion that keeps the baselines of a pipeline in Redis.
func keepBaselines(p pipeline, set *settings) (companion, error) {
	store, err := newBaselineStore(set.Redis, set.File.Rules.Namespace)
	if err != nil {
		return companion{}, err
	}
	keeper := baseline.NewKeeper(baseline.KeeperConfig{Days: set.days, Store: store, InOffice: p.publishes, Log: set.Log})
	return companion{
		run:     func(ctx context.Context) error { keeper.Run(ctx); return nil },
		collect: func(s figure.Samples) { figure.Collect(s, baselineMetrics, keeper.Stats()) },
	}, nil
}

// baselineMetrics are the metrics of jumps over days.
var baselineMetrics = []figure.Figure[baseline.Stats]{
	figure.Flag("baselines_failing", "1 if the counts of earlier days cannot be read from or written to Redis.",
		func(s *baseline.Stats) bool { return s.Failing }).
		Explain("1 if the counts of earlier days cannot be read from or written to Redis: [jumps over " +
			"days](docs/RULES.md#jumps-over-days) then use the counts read before"),
	figure.Counter("baselines_failures_total", "Times that baselines could not be read or written.",
		func(s *baseline.Stats) int64 { return s.Failures }),
	figure.Gauge("baselines_known", "Known hours of earlier days and of this day.",
		func(s *baseline.Stats) float64 { return float64(s.Hours) }),
	figure.Gauge("baselines_bytes", "Bytes of the hours that are known.",
		func(s *baseline.Stats) float64 { return float64(s.Bytes) }),
	figure.Gauge("baselines_unsaved", "Hours of a part of the keys that are not yet in Redis.",
		func(s *baseline.Stats) float64 { return float64(s.Unsaved) }),
	figure.Counter("baselines_dropped_total", "DATA LOSS: hours that could not be read, or had no room.",
		func(s *baseline.Stats) int64 { return s.Unreadable + s.Refused }),
}
