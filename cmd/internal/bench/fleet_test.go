package bench

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/yardstick"
	"github.com/hotparam/hotparam/rules"
)

func TestFleetOverARedisThatWasThere(t *testing.T) {
	if testing.Short() {
		t.Skip("sends requests for seconds: left out with -short")
	}
	server := testenv.Redis(t)
	open := yardstick.FleetPolicy{Name: "none", Start: func(client redis.UniversalClient, limit yardstick.FleetLimit) (yardstick.FleetTake, error) {
		limit.Go(func(ctx context.Context) {
			for ctx.Err() == nil {
				client.Get(ctx, limit.Key)
				time.Sleep(10 * time.Millisecond)
			}
		})
		return func(ctx context.Context) (bool, error) { return true, client.Ping(ctx).Err() }, nil
	}}
	quota := rules.Quota{Rate: rules.Rate{N: 1000, Per: time.Second}, Burst: 200}
	r, err := Fleet(t.Context(), partsOfTest(), server.URL(), yardstick.FleetConfig{
		Instances: 3, Quota: quota, Demands: []float64{2}, Zipf: true, For: time.Second,
		Policies: append(yardstick.FleetPolicies(), open),
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
