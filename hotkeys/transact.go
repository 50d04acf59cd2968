package hotkeys

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// errForeign is that a key of ours holds a value of a wrong type.
var errForeign = errors.New("a key holds a value of a type that is not ours")

// transact runs what queue queues as one transaction. A value that is not there is
// no error. Where Redis refuses a command the error is why, not that the
// transaction was therefore discarded. The other commands have answered where it is
// errForeign.
func transact(ctx context.Context, client redis.UniversalClient, queue func(redis.Pipeliner)) error {
	commands, err := client.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		queue(tx)
		return nil
	})
	if errors.Is(err, redis.Nil) || isWrongType(err) {
		return firstCause(commands)
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

// firstCause returns the first error of commands that were all run, absent values
// aside, and errForeign where there is no other.
func firstCause(commands []redis.Cmder) error {
	var foreign error
	for _, c := range commands {
		switch err := c.Err(); {
		case err == nil || errors.Is(err, redis.Nil):
		case isWrongType(err):
			foreign = errForeign
		default:
			return err
		}
	}
	return foreign
}
