// Package limitertest is the conformance suite of [limiter.Backend], for backends in memory, on
// Redis, or elsewhere. [TestPermits] and [TestSemaphore] test a permits.RateLimiter and a
// semaphore.Acquirer. [TestAlgorithm] tests an algorithm, and [TestWrapper] a backend around
// another one.
//
// # A backend of your own
//
// Give the suite a function that makes a backend, on a clock that the suite sets:
//
//	func TestMine(t *testing.T) {
//		limitertest.TestBackend(t, limitertest.Config{
//			New: func(t *testing.T, now func() time.Duration) limiter.Backend {
//				return mine.New(now)
//			},
//			Supports: func(q *rules.Quota, kind limiter.Kind) bool {
//				return q.Algorithm == rules.TokenBucket && q.Penalty == 0 && kind == limiter.Take
//			},
//		})
//	}
//
// Supports limits the suite to the asks that the backend supports. The suite skips asks for which
// it returns false; all others must keep the promises of package limiter. The tests of this
// package include a backend of 60 lines that passes. Run the suite with -race.
//
// # The parts of the suite
//
// The tests: backend.go, wrapper.go, algorithm.go, permits.go, semaphore.go. They use the quotas
// of quotas.go, in the world of world.go.
//
// Named cases (cases_*.go) state expected results in figures. Each comes from an article or from
// a defect of another limiter. The same asks are also put to a model (model.go, ideal*.go) with
// exact fractions and plain lists, and every field of every result must equal the model's.
//
// Properties (schedule.go, bounds.go, mix.go, warmup.go) run random schedules of all kinds of
// asks. If permits return at whole ticks, the results must equal the model's. If they do not, or
// if the clock is set back, no window may hold more than it should, and a retry must pass on time
// and not a tick before.
//
// Requests to several limits, which take together or not at all, are compared with twins that are
// asked one by one (twins.go).
//
// Returns, in any order and in parts, are compared with a list of takes (returns.go). Several
// quotas of one key (cases_quotas.go, cases_reload.go, mix.go) have no model: the admitted
// permits must keep to the largest of the quotas.
//
// [TestFull] runs schedules on a backend that is full of other keys, and bounds the admitted
// permits (full.go).
//
// The suite itself is tested by running it on the models, and on mutants, each with one flaw
// that it must find (model_test.go, mutants_quota_test.go).
package limitertest
