package cost

import (
	"net/http"

	"github.com/alibaba/sentinel-golang/api"
	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/core/system"
	"github.com/alibaba/sentinel-golang/logging"
)

// sentinelRules let four requests wait for each connection to the database, and refuse all while
// the mean time of a request is a tenth of a second.
var sentinelRules = []*system.Rule{
	{MetricType: system.Concurrency, TriggerCount: 5 * connections / instances},
	{MetricType: system.AvgRT, TriggerCount: 100},
}

// withSentinel guards a handler by Sentinel's system rules.
func withSentinel(next http.Handler) (http.Handler, error) {
	logging.ResetGlobalLoggerLevel(logging.ErrorLevel)
	c := config.NewDefaultConfig()
	c.Sentinel.Log.Logger = logging.NewConsoleLogger()
	c.Sentinel.Log.Metric.FlushIntervalSec = 0 // no metric files
	if err := api.InitWithConfig(c); err != nil {
		return nil, err
	}
	if _, err := system.LoadRules(sentinelRules); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entry, refusal := api.Entry("api", api.WithTrafficType(base.Inbound))
		if refusal != nil {
			http.Error(w, refusal.Error(), http.StatusTooManyRequests)
			return
		}
		defer entry.Exit()
		next.ServeHTTP(w, r)
	}), nil
}
