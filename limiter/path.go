package limiter

// path identifies the backend that took permits if several are nested. A [Failover] takes them
// from its primary or, while that is unavailable, from its local backend. A path has two bits
// for each of these, the outermost lowest. The zero path means that the innermost backend took
// them.
type path uint32

const (
	// pathWithin means that the backend inside the wrapper took the permits.
	pathWithin path = 0
	// pathHere means that the wrapper took them itself: a Failover from its local backend.
	pathHere path = 1
	// pathNobody means that they were allowed and taken from no backend.
	pathNobody path = 2

	pathBits = 2
	pathStep = 1<<pathBits - 1
)

// via returns the path f as the wrapper around it records it: with that wrapper's step in front.
func (f path) via(step path) path { return f<<pathBits | step }

// split returns the step of the outermost wrapper, and the path inside it.
func (f path) split() (step, tail path) { return f & pathStep, f >> pathBits }
