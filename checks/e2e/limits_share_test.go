package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

const shareRules = `
  - id: products
    match: {route: "GET /products/{id}"}
    by: ["path:id"]
    limit: {rate: 12/1h, burst: 12, scope: share}
`

// Instances start, stop and crash, and all know their number. Together they never let more pass
// than the limit. While Redis is unavailable each keeps its share.
func TestSharesFollowTheInstances(t *testing.T) {
	t.Parallel()
	f := newFleet(t, commands(t), shareRules)
	first := f.startAPI()
	f.sharedBy([]*api{first}, "one alone", time.Now())
	rest := f.startAPIs(2)
	three := append([]*api{first}, rest...)
	f.sharedBy(three, "two more joined", time.Now())

	left := time.Now()
	rest[0].Signal(syscall.SIGTERM)
	f.sharedBy([]*api{first, rest[1]}, "one left", left)
	if code := rest[0].Wait(); code != 0 {
		t.Errorf("exit code after SIGTERM: %d, want 0", code)
	}
	again := f.startAPI()
	f.sharedBy([]*api{first, rest[1], again}, "one joined", time.Now())
	crashed := time.Now()
	rest[1].Kill()
	two := []*api{first, again}
	f.sharedBy(two, "one crashed", crashed)

	// The outage is longer than the silence that counts as a death, and Redis comes back empty.
	// The last count stays, and no instance lets more pass.
	f.redis.Kill()
	within(t, patience, "each instance knows that Redis is away", func() bool {
		return all(two, func(in instance) bool { return !in.Members.Connected })
	})
	want := f.passed(two)
	for end := time.Now().Add(2 * deadAfter); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got := f.passed(two); !slices.Equal(got, want) {
			t.Fatalf("%d passed while Redis was away, %d before", got, want)
		}
	}
	f.redis.Restart()
	back := time.Now()
	within(t, patience, "heartbeats are answered", func() bool {
		// After that time, an instance that is still not back is rightly considered dead.
		if got := f.passed(two); !slices.Equal(got, want) && time.Since(back) < deadAfter {
			t.Fatalf("%d passed when Redis was back, %d before", got, want)
		}
		return all(two, func(in instance) bool { return in.Members.Connected && in.Members.Rejoins > 0 })
	})
	f.sharedBy(two, "Redis is back, empty", back)
}

// deadAfter is the time without a heartbeat after which an instance counts as dead.
const deadAfter = 2 * time.Second

// passed returns how many requests about something new each instance lets pass.
func (f *fleet) passed(apis []*api) []int {
	f.t.Helper()
	passed, _ := f.askAll(apis, 13, fmt.Sprintf("/products/%d", time.Now().UnixNano()))
	return passed
}

// sharedBy waits until each instance knows their number and has its initial share. It then checks
// that together they let some requests pass, and no more than the limit.
func (f *fleet) sharedBy(apis []*api, what string, from time.Time) {
	f.t.Helper()
	within(f.t, patience, fmt.Sprintf("%s: each instance knows of %d", what, len(apis)), func() bool {
		return all(apis, func(in instance) bool { return in.Members.Count == len(apis) && in.Members.Settled })
	})
	took, sum := time.Since(from), 0
	for _, n := range f.passed(apis) {
		sum += n
	}
	if sum < 1 || sum > 12 {
		f.t.Errorf("%s: %d passed on all instances, want 1 to 12", what, sum)
	}
	f.t.Logf("%s: %d passed; all know after %v (want 3s on a calm machine)", what, sum, took)
}
