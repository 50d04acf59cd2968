package hotkeys

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// transact runs what queue queues as one transaction. A value that is not there is
// no error. Where Redis refuses a command the error is why, not that the
// transaction was therefore discarded.
func transact(ctx context.Context, client redis.UniversalClient, queue func(redis.Pipeliner)) error {
	commands, err := client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		queue(tx)
		return nil
	})
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if redis.IsExecAbortError(err) {
		for _, c := range commands {
			if cause := c.Err(); cause != nil && !redis.IsExecAbortError(cause) {
				return cause
			}
		}
	}
	return err
}
