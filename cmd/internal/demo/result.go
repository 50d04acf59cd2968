package demo

// Result is the outcome of the demo.
type Result struct {
	Requests int64            `json:"requests"` // number of answered requests
	Allowed  int64            `json:"allowed"`
	Limited  int64            `json:"limited"`
	Failed   int64            `json:"failed"` // number of requests with no answer or an unexpected one
	Hot      []HotResult      `json:"hot"`    // keys that were hot at least once, highest peak first
	Enforce  Percentiles      `json:"time_to_enforce_ms"`
	Dropped  map[string]int64 `json:"dropped"` // counts that were lost, by reason
	Crowd    *CrowdResult     `json:"crowd"`   // null if there was none
}

// CrowdResult holds the effects during a flash crowd.
type CrowdResult struct {
	Key      string `json:"key"`
	Rate     int    `json:"rate"`
	NoLimits Effect `json:"without_limits"`
	Limits   Effect `json:"with_limits"`
	OnHot    Effect `json:"with_on_hot"`
}

// Effects returns the effects of all variants.
func (c *CrowdResult) Effects() [Variants]Effect {
	return [Variants]Effect{WithoutLimits: c.NoLimits, WithLimits: c.Limits, WithOnHot: c.OnHot}
}

// HotResult is a key that was hot at least once.
type HotResult struct {
	Key      string  `json:"key"`
	PeakRate float64 `json:"peak_rate"` // per second, over all instances
	Limited  int64   `json:"limited"`
}

// Result returns the demo's result, once Run has returned.
func (d *Demo) Result() Result {
	r := Result{
		Failed:  d.traffic.senders[WithLimits].failed.Load(),
		Hot:     d.exact.hot(),
		Enforce: d.exact.percentiles(),
	}
	r.Allowed, r.Limited = d.exact.answers()
	r.Requests = r.Allowed + r.Limited
	stats := d.transport.stats()
	r.Dropped = map[string]int64{
		"table_full": 0, "too_long": 0, "send_error": 0,
		"lost_packets":  stats.Decoder.LostPackets,
		"late":          stats.Detector.Late,
		"hot_set_full":  d.transport.overflow(),
		"not_published": d.exact.unenforced(),
	}
	if d.traffic.crowd.ranBefore {
		r.Crowd = &CrowdResult{
			Key: CrowdKey, Rate: CrowdRate,
			NoLimits: d.effectOfCrowds(WithoutLimits), Limits: d.effectOfCrowds(WithLimits), OnHot: d.effectOfCrowds(WithOnHot),
		}
	}
	for _, a := range d.apis[WithLimits] {
		dropped := a.counts.Stats().Dropped
		r.Dropped["table_full"] += dropped.TableFull
		r.Dropped["too_long"] += dropped.TooLong
		r.Dropped["send_error"] += dropped.SendError
	}
	return r
}
