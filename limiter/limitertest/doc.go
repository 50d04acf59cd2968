// Package limitertest is the conformance suite of [limiter.Backend]: in memory, on Redis, or
// one of your own. [TestPermits] and [TestSemaphore] do the same for permits.RateLimiter and
// semaphore.Acquirer, [TestAlgorithm] for an algorithm, and [TestWrapper] for a backend around
// another one.
//
// # A backend of your own
//
// Give the suite a function that makes one, on a clock that the suite sets:
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
// Supports narrows the suite to what the backend is for. What it returns false for is skipped;
// everything else must keep the promises of package limiter. The tests of this package include
// a backend of 60 lines that passes. Run the suite with -race.
//
// # The parts of the suite
//
// What is tested: backend.go, wrapper.go, algorithm.go, permits.go, semaphore.go; with the quotas
// of quotas.go, in the world of world.go.
//
// Named cases (cases_*.go) state expected results in figures. Each comes from an article or
// from a defect of another limiter. Their asks are also put to a model (model.go, ideal*.go)
// in exact fractions and plain lists, and every field of every result must equal the model's.
//
// Properties (schedule.go, bounds.go, mix.go, warmup.go) run random schedules of all kinds of
// asks. Where permits come back at whole ticks, the results must equal the model's. Where they
// do not, and on clocks that go back, no window may hold more than it should, and a retry must
// pass on time and not a tick before.
//
// Requests to several limits, which take together or not at all, are held to models (together.go)
// and, with returns in any order and several quotas, to twins that are asked one by one
// (twins.go).
//
// Returns, in any order and in parts, are held to a list of takes (returns.go). Several quotas
// of one key (cases_quotas.go, cases_reload.go, mix.go) have no model: what was admitted is
// held to the largest of them.
//
// [TestFull] runs schedules that bound what is admitted on a backend that is full of other keys
// (full.go).
//
// The suite itself is tested by running it on the models, and on mutants, each with one flaw
// that it must find (model_test.go, mutants_quota_test.go).
package limitertest
