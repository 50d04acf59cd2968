package limiter

// path says which backend took permits where several stand around each other: a
// [Failover] takes them from its primary or, while that is away, from its local backend. It is
// a path of two bits for each of them, the outermost lowest. The zero path is what the innermost backend took itself.
type path uint32

const (
	// pathWithin is what the backend took that the wrapper stands around.
	pathWithin path = 0
	// pathHere is what the wrapper took itself: a Failover of its local backend.
	pathHere path = 1
	// pathNobody is what was allowed and taken from no backend.
	pathNobody path = 2

	pathBits = 2
	pathStep = 1<<pathBits - 1
)

// via returns f as seen from a wrapper that took step.
func (f path) via(step path) path { return f<<pathBits | step }

// split returns the step of the outermost wrapper, and what it passes on.
func (f path) split() (step, rest path) { return f & pathStep, f >> pathBits }
