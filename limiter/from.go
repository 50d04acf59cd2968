package limiter

// From says which backend took permits where several stand around each other: a
// [Failover] takes them from its primary or, while that is away, from its local backend;
// a [Deferred] takes them itself, or asks. It is a path of two bits for each of them,
// the outermost lowest. The zero From is what the innermost backend took itself.
type From uint32

const (
	// fromWithin is what the backend took that the wrapper stands around.
	fromWithin From = 0
	// fromHere is what the wrapper took itself: a Failover of its local backend.
	fromHere From = 1
	// fromNobody is what was allowed and taken from no backend.
	fromNobody From = 2

	fromBits = 2
	fromStep = 1<<fromBits - 1
)

// via returns f as seen from a wrapper that took step.
func (f From) via(step From) From { return f<<fromBits | step }

// split returns the step of the outermost wrapper, and what it passes on.
func (f From) split() (step, rest From) { return f & fromStep, f >> fromBits }
