package graphitesource

import (
	"errors"
	"slices"
)

// failReason is the reason why a poll failed.
type failReason uint8

const (
	timedOut  failReason = iota // Graphite did not answer in time
	noConnect                   // no connection, or it broke
	badStatus                   // an HTTP status other than 200, 401 and 403
	noAuth                      // Graphite refused our credentials
	malformed                   // not an answer of Graphite's render API
	tooLarge                    // more than the bounds of an answer
	wrongStep                   // points that are not a step apart
	silent                      // no new point for a while: StatsD or carbon is down
)

var reasons = [...]string{"timeout", "connect", "status", "auth", "malformed", "too_large", "step", "silent"}

// Reasons returns the reasons for which a poll can fail, the keys of [Stats.Failures].
func Reasons() []string { return slices.Clone(reasons[:]) }

// String returns the name of r in [Reasons].
func (r failReason) String() string { return reasons[r] }

// ErrUnreachable marks errors that need not be a mistake in the settings: Graphite may only be
// unavailable for now.
var ErrUnreachable = errors.New("graphite source: no answer")

// failure is the error of a failed poll.
type failure struct {
	reason    failReason
	retryable bool // a later attempt may succeed
	err       error
}

func failed(r failReason, err error) error { return &failure{reason: r, err: err} }

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// Is reports whether target is [ErrUnreachable] and a later attempt may succeed.
func (f *failure) Is(target error) bool { return f.retryable && target == ErrUnreachable }
