package limiter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OpError is an error that concerns one [Op] alone, such as a key whose state cannot be read,
// or a quota that the backend cannot compute. It shows that the backend is available, and that
// it decides other ops.
type OpError struct{ Err error }

// Error returns the text of Err.
func (e *OpError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// OpErrors is the error of a DoAll of a [Batcher] that could not decide some of its ops. It is
// as long as the ops. Its element i is the error of ops[i], or nil if results[i] is valid.
type OpErrors []error

// Error returns the text of the first error, and how many more there are.
func (e OpErrors) Error() string {
	all := e.Unwrap()
	switch len(all) {
	case 0:
		return "limiter: no error"
	case 1:
		return all[0].Error()
	}
	return fmt.Sprintf("%v (and %d more of %d ops)", all[0], len(all)-1, len(e))
}

// Unwrap returns the errors that are not nil.
func (e OpErrors) Unwrap() []error {
	var all []error
	for _, err := range e {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// ErrorOf returns the error of ops[i] in err, the error of a DoAll. It returns nil if
// results[i] is valid.
func ErrorOf(err error, i int) error {
	if err == nil {
		return nil
	}
	if each := (OpErrors)(nil); errors.As(err, &each) && i < len(each) {
		return each[i]
	}
	return err
}

// setError sets the error of op i to err, if it is not nil. It returns errs, which it makes for
// the given number of ops at the first error.
func setError(errs OpErrors, ops, i int, err error) OpErrors {
	if err == nil {
		return errs
	}
	if errs == nil {
		errs = make(OpErrors, ops)
	}
	errs[i] = err
	return errs
}

// asError returns errs as an error, or nil if there is none.
func (e OpErrors) asError() error {
	if e == nil {
		return nil
	}
	return e
}

// ended returns the error of a context that has ended, or nil. A deadline that has passed
// counts, even if the context's own timer is late: a connection's deadline, set to the same
// instant, may come before it.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// endedWith returns err, joined with the context's error if the context has ended. A connection
// returns "i/o timeout" for the deadline that it got from the context.
func endedWith(ctx context.Context, err error) error {
	over := ended(ctx)
	if err == nil || over == nil || errors.Is(err, over) {
		return err
	}
	return fmt.Errorf("%w: %w", over, err)
}
