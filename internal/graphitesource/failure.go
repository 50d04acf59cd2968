package graphitesource

import (
	"errors"
	"slices"
)

// reason is why a poll failed.
type reason uint8

const (
	timedOut  reason = iota // Graphite did not answer in time
	noConnect               // no connection, or it broke
	badStatus               // an HTTP status other than 200, 401 and 403
	noAuth                  // Graphite does not let us
	malformed               // the answer is not one of Graphite's render API
	tooLarge                // more than is taken
	wrongStep               // points that are not a step apart
	silent                  // no new point for a while: StatsD or carbon is away
)

var reasons = [...]string{"timeout", "connect", "status", "auth", "malformed", "too_large", "step", "silent"}

// Reasons returns the reasons for which a poll fails, as [Stats.Failures] counts them.
func Reasons() []string { return slices.Clone(reasons[:]) }

// String is one of [Reasons].
func (r reason) String() string { return reasons[r] }

// ErrUnreachable says of an error that Graphite may only be away for now: nothing in
// the settings need be wrong.
var ErrUnreachable = errors.New("graphite source: no answer")

// failure is why a poll failed, in words.
type failure struct {
	reason reason
	away   bool // waiting may help
	err    error
}

func failed(r reason, err error) error { return &failure{reason: r, err: err} }

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap gives the cause.
func (f *failure) Unwrap() error { return f.err }

// Is reports whether target is [ErrUnreachable] and f is such a failure.
func (f *failure) Is(target error) bool { return f.away && target == ErrUnreachable }
