package limiter

import "context"

// eachInTurn executes ops with a Do for each. An error concerns one op; the others are
// executed all the same.
func eachInTurn(ctx context.Context, b Backend, ops []Op, results []Result) error {
	var errs OpErrors
	for i, op := range ops {
		var err error
		results[i], err = b.Do(ctx, op)
		errs = setError(errs, len(ops), i, err)
	}
	return errs.asError()
}
