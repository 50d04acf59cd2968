package claims

import (
	"context"
	"sync"
)

// RunAll runs cases, up to atATime at once. A case that measures the process runs alone. It calls
// done with each result, in the order of the cases.
func RunAll(ctx context.Context, cases []Case, atATime int, done func(Case, Result)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type caseOutcome struct {
		result Result
		err    error
	}
	outcomes := make([]chan caseOutcome, len(cases))
	for i := range outcomes {
		outcomes[i] = make(chan caseOutcome, 1)
	}
	var workers sync.WaitGroup
	defer workers.Wait()
	workers.Go(func() {
		var running sync.WaitGroup
		defer running.Wait()
		room := make(chan struct{}, atATime)
		for i, c := range cases {
			if c.Measure {
				running.Wait()
			}
			room <- struct{}{}
			running.Go(func() {
				result, err := Run(ctx, c)
				outcomes[i] <- caseOutcome{result, err}
				<-room
			})
			if c.Measure {
				running.Wait()
			}
		}
	})
	for i, c := range cases {
		o := <-outcomes[i]
		if o.err != nil {
			cancel(o.err) // makes the others end soon
			return o.err
		}
		done(c, o.result)
	}
	return nil
}
