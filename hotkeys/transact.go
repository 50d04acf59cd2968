package hotkeys

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// errForeign means that one of our keys holds a value of another type.
var errForeign = errors.New("a key holds a value of a foreign type")

// transact runs the commands that queue queues as one transaction. A missing value is no error.
// If Redis refuses a command, the error is that command's, not the EXECABORT that follows from
// it. If the error is errForeign, all other commands have succeeded.
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

// firstCause returns the first error of commands that have all run. It ignores missing
// values, and returns errForeign only if there is no other error.
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
