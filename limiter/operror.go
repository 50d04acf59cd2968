package limiter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OpError is an error that concerns one [Op] alone, such as a key whose state cannot be
// read, or a quota that the backend cannot compute. It shows that the backend is
// there, and that it decides on other ops.
type OpError struct{ Err error }

// Error is Err's.
func (e *OpError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// OpErrors is what DoAll of a [Batcher] returns if it could not decide on some of its
// ops: the error of ops[i] at i, nil where results[i] holds. It is as long as the ops.
type OpErrors []error

// Error is the first of them, and how many there are.
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

// Unwrap returns those that are not nil.
func (e OpErrors) Unwrap() []error {
	var all []error
	for _, err := range e {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// ErrorOf returns what the error of a DoAll says about ops[i]; nil if results[i] holds.
func ErrorOf(err error, i int) error {
	if err == nil {
		return nil
	}
	if each := (OpErrors)(nil); errors.As(err, &each) && i < len(each) {
		return each[i]
	}
	return err
}

// setError makes err that of ops[i] of so many. It returns errs, made at the first error.
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

// asError returns errs as an error, nil if there is none.
func (e OpErrors) asError() error {
	if e == nil {
		return nil
	}
	return e
}

// ended returns the error of a context that is over, else nil. A deadline that has passed
// counts, even if the context's own timer is late: a connection's deadline, set to the
// same instant, may come before it.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// endedWith returns err as an error that is the context's, too, if that is over: a
// connection says "i/o timeout" for the deadline that it was given.
func endedWith(ctx context.Context, err error) error {
	over := ended(ctx)
	if err == nil || over == nil || errors.Is(err, over) {
		return err
	}
	return fmt.Errorf("%w: %w", over, err)
}
