package limiter

import "context"

// eachInTurn asks for many with a Do for each. At the first error it gives back what
// was taken, since nobody else knows of it.
func eachInTurn(ctx context.Context, b Backend, ops []Op, results []Result) error {
	for i, op := range ops {
		res, err := b.Do(ctx, op)
		if err != nil {
			ctx, cancel := grace(ctx)
			defer cancel()
			for j, op := range ops[:i] {
				if op.Kind <= Reserve && results[j].Taken > 0 {
					op.Ask = results[j].Return()
					_, _ = b.Do(ctx, op) // the first error is what is told
				}
			}
			return err
		}
		results[i] = res
	}
	return nil
}
