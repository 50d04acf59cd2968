package yardstick

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/rules"
)

// FleetConfig configures [Fleet]. Connect and Namespace are required. The zero value of any other
// field is its default.
type FleetConfig struct {
	// Connect returns a client of the Redis to use, for an instance.
	Connect func() (redis.UniversalClient, error)
	// Namespace is that of the keys in Redis.
	Namespace string
	// Instances is the number of instances. Zero means 20.
	Instances int
	// Quota is the limit. Zero means 5,000/s with a burst of 500.
	Quota rules.Quota
	// Demands are multiples of the limit's rate. Nil means 0.8, 1.2 and 3.
	Demands []float64
	// Zipf spreads requests over the instances by Zipf's law with exponent 1. Otherwise all
	// instances have the same demand.
	Zipf bool
	// For is the length of a measurement. Zero means 5 s.
	For time.Duration
	// Policies are compared, in turns. Nil means [FleetPolicies].
	Policies []FleetPolicy
	// Progress, if not nil, is called with the number of measurements done and the total.
	Progress func(done, total int)
}

func (c *FleetConfig) setDefaults() {
	c.Instances = cmp.Or(c.Instances, 20)
	if c.Quota.Rate.IsZero() {
		c.Quota = rules.Quota{Rate: rules.Rate{N: 5000, Per: time.Second}, Burst: 500}
	}
	if c.Demands == nil {
		c.Demands = []float64{0.8, 1.2, 3}
	}
	c.For = cmp.Or(c.For, 5*time.Second)
	if c.Policies == nil {
		c.Policies = FleetPolicies()
	}
}

// FleetResult has a row for each demand and policy.
type FleetResult struct {
	Rows []FleetRow `json:"rows"`
}

// FleetRow is how one policy held the limit at one demand.
type FleetRow struct {
	Policy   string  `json:"policy"`
	Demand   float64 `json:"demand"`
	Asked    int     `json:"asked"`
	Admitted int     `json:"admitted"`
	// Errors is the number of requests that were refused because of an error.
	Errors int `json:"errors"`
	// Use is the number of admitted requests, compared with one bucket that decides at once.
	Use float64 `json:"use"`
	// Overshoot is by how many permits the admitted requests exceeded burst + rate × w in the
	// window w in which they exceeded it most.
	Overshoot float64 `json:"overshoot"`
	// Calls are round trips to Redis per second, and Settlements those that were not made by a
	// request.
	Calls       float64 `json:"calls_per_s"`
	Settlements float64 `json:"settlements_per_s"`
	// RedisCPU is the processor time of Redis per second.
	RedisCPU float64 `json:"redis_cpu"`
	// P50US and P99US are the times from request to decision in µs.
	P50US float64 `json:"p50_us"`
	P99US float64 `json:"p99_us"`
}

// fleetWarmUp is the time for which a policy limits another key first. Until then connections are
// made and scripts are loaded.
const fleetWarmUp = 500 * time.Millisecond

// Fleet measures how instances hold one limit on one hot key together. The instances are in this
// process, each with its own client of a real Redis. The key becomes hot with its first request.
func Fleet(ctx context.Context, c FleetConfig) (result FleetResult, err error) {
	c.setDefaults()
	var clients []*countedClient
	defer func() {
		for _, client := range clients {
			_ = client.Close() // all answers have arrived
		}
	}()
	for range c.Instances {
		client, err := c.Connect()
		if err != nil {
			return result, err
		}
		counted := &countedClient{UniversalClient: client}
		client.AddHook(counted)
		clients = append(clients, counted)
	}
	for _, demand := range c.Demands {
		for _, policy := range c.Policies {
			load := fleetLoad{FleetConfig: c, demand: demand, policy: policy, clients: clients, rand: NewRand(uint64(1000 * demand))}
			load.For = fleetWarmUp
			limit := FleetLimit{Namespace: c.Namespace, Key: fmt.Sprintf("warm-%d", len(result.Rows)), Quota: &c.Quota, Instances: c.Instances}
			if _, err := load.measure(ctx, limit); err != nil {
				return result, err
			}
			load.For, limit.Key = c.For, fmt.Sprintf("hot-%d", len(result.Rows))
			row, err := load.measure(ctx, limit)
			if err != nil {
				return result, err
			}
			result.Rows = append(result.Rows, row)
			if c.Progress != nil {
				c.Progress(len(result.Rows), len(c.Demands)*len(c.Policies))
			}
		}
	}
	return result, nil
}

// row judges the requests of a measurement.
func (l *fleetLoad) row(requests []fleetRequest) FleetRow {
	r := FleetRow{Policy: l.policy.Name, Demand: l.demand, Asked: len(requests)}
	arrived, admitted := make([]int64, 0, len(requests)), make([]int64, 0, len(requests))
	took := make([]int64, 0, len(requests))
	for i := range requests {
		q := &requests[i]
		arrived, took = append(arrived, q.began), append(took, q.ended-q.began)
		switch {
		case q.err != nil:
			r.Errors++
		case q.admitted:
			admitted = append(admitted, q.ended)
		}
	}
	slices.Sort(arrived)
	slices.Sort(admitted)
	slices.Sort(took)
	rate, burst := float64(l.Quota.Rate.N)/float64(l.Quota.Rate.Per), float64(l.Quota.Burst)
	ideal, _ := pour(arrived, rate, burst, false)
	_, lowest := pour(admitted, rate, burst, true)
	r.Admitted, r.Overshoot = len(admitted), max(0, -lowest)
	r.Use = float64(r.Admitted) / float64(max(ideal, 1))
	r.P50US, r.P99US = float64(Percentile(took, 50))/1e3, float64(Percentile(took, 99))/1e3
	return r
}

// pour takes a permit at each of some times, in order, out of a bucket that begins full. With debt
// it takes those that are missing too. It returns the number of taken permits, and the lowest
// level. The level stays at 0 or above if and only if no window w has more than burst + rate × w
// of the times. It shares no code with the limiters that it judges.
func pour(times []int64, perNano, burst float64, debt bool) (taken int, lowest float64) {
	level, last := burst, int64(0)
	lowest = burst
	for _, t := range times {
		level = min(burst, level+float64(t-last)*perNano)
		last = t
		if level >= 1 || debt {
			level--
			taken++
		}
		lowest = min(lowest, level)
	}
	return taken, lowest
}
