package demo

import "time"

// Variant is how an API treats its hot keys. The API of each variant gets the same requests, and
// has a database of its own.
type Variant int

// Variants.
const (
	WithoutLimits Variant = iota
	WithLimits
	WithOnHot // with the same limits, and on_hot

	Variants // their number
)

// instancesOf has the numbers of instances. The one without limits hardly works for its requests.
var instancesOf = [Variants]int{WithoutLimits: 1, WithLimits: Instances, WithOnHot: Instances}

var variantNames = [Variants]string{"without limits", "with limits", "with on_hot"}

// String returns the variant in two words.
func (v Variant) String() string { return variantNames[v] }

// Effect is what the API of a variant does for its users.
type Effect struct {
	Latency         // of requests for other companies than the crowd's
	Crowd   Latency `json:"crowd"` // of the crowd's requests
	Calls   float64 `json:"database_calls_per_second"`
}

// recentEffect returns the effect of a variant in the last [latencySpan].
func (d *Demo) recentEffect(v Variant, now time.Time) Effect {
	sender, calls := d.traffic.senders[v], d.databases[v].calls.recentLatency(now)
	return Effect{
		Latency: sender.others.recentLatency(now), Crowd: sender.crowds.recentLatency(now),
		Calls: float64(calls.Requests) / latencySpan.Seconds(),
	}
}

// effectOfCrowds returns the effect of a variant during all crowds, without the first second of
// each.
func (d *Demo) effectOfCrowds(v Variant) Effect {
	sender := d.traffic.senders[v]
	e := Effect{Latency: sender.others.ofCrowds(), Crowd: sender.crowds.ofCrowds()}
	if sent := d.traffic.crowd.sent.Load(); sent > 0 { // at a known rate
		e.Calls = float64(d.databases[v].crowdCalls.Load()) * CrowdRate / float64(sent)
	}
	return e
}
