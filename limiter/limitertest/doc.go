// Package limitertest is the suite that every [limiter.Backend] passes: in memory, on
// Redis, or one of your own. [TestPermits] and [TestSemaphore] are the same for
// permits.RateLimiter and semaphore.Acquirer.
//
// # A backend of your own
//
// Give the suite what makes one, on a clock that the suite sets:
//
//	func TestMine(t *testing.T) {
//		limitertest.TestBackend(t, limitertest.Config{
//			New: func(t *testing.T, now func() time.Duration) limiter.Backend {
//				return mine.New(now)
//			},
//			Supports: func(q *hotparam.Quota, kind limiter.Kind) bool {
//				return q.Algorithm == hotparam.TokenBucket && q.Penalty == 0 && kind == limiter.Take
//			},
//		})
//	}
//
// Supports narrows the suite to what the backend is for; what it says no to is skipped,
// and all else is held to the promises of package limiter. The tests of this package
// show one of 60 lines that passes. Run it with -race.
//
// # What it consists of
//
// Named cases (cases_*.go) state in figures what is due, each line of which came from
// an article, or from a defect of another limiter. All that they ask is also asked of a
// model (model.go, ideal*.go), in exact fractions and plain lists: every field of every
// answer has to be the model's.
//
// Properties (schedule.go, bounds.go, mix.go, warmup.go) run random schedules of all kinds of
// asks. Where permits come back at whole ticks the answers are the model's; where they
// do not, and on clocks that go back, no window holds more than it may, and a retry
// passes on time and not a tick before.
//
// What comes back on a Return, in any order and in parts, is held to a list of takes
// (returns.go). Several quotas of one key (cases_quotas.go, mix.go) have no model: an account of what was
// admitted is held to the largest of them.
//
// Who tests the tests: the models run the suite themselves, and so do mutants, each with
// one flaw that the suite must find (model_test.go, mutants_quota_test.go).
package limitertest
