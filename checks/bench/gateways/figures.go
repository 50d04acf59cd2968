package gateways

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/yardstick"
)

// Measurement is the result of a run.
type Measurement struct {
	Machine     yardstick.Machine
	Busy        float64 // share of the processors' time in use before it began, 0 to 1
	Rate        int     // requests per second
	Connections int
	Turns       int
	Slice       time.Duration
	Gateways    []Gateway
}

// Gateway is the result for one gateway in several variants.
type Gateway struct {
	Name, Version string
	Skipped       string       `json:",omitempty"` // reason why there are no rows
	Lacks         string       `json:",omitempty"` // a variant that is not available
	LacksWhy      string       `json:",omitempty"`
	Rows          []VariantRow // the first one is the gateway alone
}

// VariantRow is one variant with one kind of request.
type VariantRow struct {
	Name  string
	Kind  requestKind
	Turns []Turn
}

// Turn is the measurement of a row in one turn.
type Turn struct {
	Requests int
	P50, P99 time.Duration // latency from the due time of a request to the end of its answer
	LateP99  time.Duration // delay with which the load sent requests
	// Processor time per request of the gateway, of the service that it asks, and of the stores
	// that the service needs.
	Gateway, Service, Stores time.Duration
	Wrong                    int // requests with an unexpected answer
	Undecided                int // requests that the service made no decision on
}

// Spread is the median, least and greatest value of a figure over the turns.
type Spread struct{ Median, Least, Most float64 }

func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	return Spread{Median: yardstick.Median(values), Least: slices.Min(values), Most: slices.Max(values)}
}

// figure returns a quantity of a turn.
type figure func(*Turn) time.Duration

func p50(t *Turn) time.Duration        { return t.P50 }
func p99(t *Turn) time.Duration        { return t.P99 }
func gatewayCPU(t *Turn) time.Duration { return t.Gateway }
func serviceCPU(t *Turn) time.Duration { return t.Service }
func storesCPU(t *Turn) time.Duration  { return t.Stores }
func allCPU(t *Turn) time.Duration     { return t.Gateway + t.Service + t.Stores }

// ratioTo returns a figure of r divided by that of another row, turn by turn. It returns false if
// the other row has no such figure.
func (r *VariantRow) ratioTo(other *VariantRow, fig figure) (s Spread, ok bool) {
	var ratios []float64
	for i := range min(len(r.Turns), len(other.Turns)) {
		if divisor := fig(&other.Turns[i]); divisor > 0 {
			ratios = append(ratios, float64(fig(&r.Turns[i]))/float64(divisor))
		}
	}
	return spreadOf(ratios), len(ratios) > 0
}

// median returns the median of a figure over the turns.
func (r *VariantRow) median(fig figure) time.Duration {
	values := make([]float64, len(r.Turns))
	for i := range r.Turns {
		values[i] = float64(fig(&r.Turns[i]))
	}
	return time.Duration(yardstick.Median(values))
}

// wrongShare returns the share of requests with an unexpected answer or without a decision.
func (r *VariantRow) wrongShare() float64 {
	var odd, all int
	for _, t := range r.Turns {
		odd += max(t.Wrong, t.Undecided)
		all += t.Requests
	}
	return float64(odd) / float64(max(1, all))
}
