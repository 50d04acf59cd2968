package bench

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func TestPour(t *testing.T) {
	const perNano = 10.0 / 1e9 // a permit each 100 ms
	ms := int64(time.Millisecond)
	for name, c := range map[string]struct {
		times  []int64
		debt   bool
		taken  int
		lowest float64
	}{
		"none":                 {lowest: 3},
		"the burst":            {times: []int64{0, 0, 0}, taken: 3, lowest: 0},
		"more, without debt":   {times: []int64{0, 0, 0, 0}, taken: 3, lowest: 0},
		"more, with debt":      {times: []int64{0, 0, 0, 0}, debt: true, taken: 4, lowest: -1},
		"earned in between":    {times: []int64{0, 0, 0, 100 * ms}, taken: 4, lowest: 0},
		"too soon":             {times: []int64{0, 0, 0, 50 * ms}, debt: true, taken: 4, lowest: -0.5},
		"no more than a burst": {times: []int64{0, 1e13, 1e13, 1e13, 1e13}, debt: true, taken: 5, lowest: -1},
	} {
		if taken, lowest := pour(c.times, perNano, 3, c.debt); taken != c.taken || math.Abs(lowest-c.lowest) > 1e-9 {
			t.Errorf("%s: %d taken, lowest level %v; want %d, %v", name, taken, lowest, c.taken, c.lowest)
		}
	}
}

func TestFleetOverARedisThatWasThere(t *testing.T) {
	if testing.Short() {
		t.Skip("sends requests for seconds: left out with -short")
	}
	server := testenv.Redis(t)
	open := FleetPolicy{"none", func(client redis.UniversalClient, limit FleetLimit) (FleetTake, error) {
		limit.Go(func(ctx context.Context) {
			for ctx.Err() == nil {
				client.Get(ctx, limit.Key)
				time.Sleep(10 * time.Millisecond)
			}
		})
		return func(ctx context.Context) (bool, error) { return true, client.Ping(ctx).Err() }, nil
	}}
	quota := rules.Quota{Rate: rules.Rate{N: 1000, Per: time.Second}, Burst: 200}
	r, err := Fleet(t.Context(), FleetConfig{
		Instances: 3, Quota: quota, Demands: []float64{2}, Zipf: true, For: time.Second,
		Policies: append(FleetPolicies(), open), Redis: server.URL(),
	})
	if err != nil || len(r.Rows) != 3 {
		t.Fatalf("%+v, error %v", r, err)
	}
	fleet, exact, none := r.Rows[0], r.Rows[1], r.Rows[2]
	if fleet.Overshoot > 1e-6 || fleet.Admitted == 0 || fleet.Use > 1.01 || fleet.Settlements != fleet.Calls {
		t.Errorf("%+v", fleet)
	}
	if exact.Admitted == 0 || exact.Errors > 0 || exact.Settlements != 0 {
		t.Errorf("%+v", exact)
	}
	if none.Admitted != none.Asked || none.Overshoot < 300 || none.Use < 1.2 || none.Settlements == 0 || none.Calls < float64(none.Asked)/2 || none.P50US <= 0 || none.P99US < none.P50US {
		t.Errorf("%+v", none)
	}
	leavesNothing(t, server)
}
