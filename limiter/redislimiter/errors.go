package redislimiter

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/limiter"
)

// awayCodes are the error codes by which a server reports that it currently serves no one, or
// executes no writes. All other errors concern the command.
var awayCodes = map[string]bool{
	"LOADING": true, "READONLY": true, "OOM": true, "MISCONF": true, "NOREPLICAS": true,
	"MASTERDOWN": true, "CLUSTERDOWN": true, "BUSY": true, "UNKILLABLE": true,
	"NOAUTH": true, "WRONGPASS": true, "NOPERM": true,
}

// isAnswer reports whether err is the reply of a server that could have executed the command.
// Any other error means that no server answered in time, or that it refuses all writes.
func isAnswer(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	text := reply.Error()
	switch {
	case strings.HasPrefix(text, "CLUSTERDOWN Hash slot not served"): // other slots are served
		return true
	case strings.HasPrefix(text, "ERR max number of clients"):
		return false
	}
	return !awayCodes[codeOf(text)]
}

// inScript matches the code of an error that occurred in a script, in the text in which Redis
// before 7 reports it.
var inScript = regexp.MustCompile(`user_script: ?\d+: -?([A-Z]{2,})\b`)

// codeOf returns the code of an error of Redis.
func codeOf(text string) string {
	if found := inScript.FindStringSubmatch(text); found != nil {
		return found[1]
	}
	code, _, _ := strings.Cut(strings.TrimPrefix(text, "-"), " ")
	return code
}

// scriptError is an error that occurred at one of a script's keys.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// RedisError implements [redis.Error].
func (scriptError) RedisError() {}

// backendError returns err in the form in which a backend reports it. If it is a server's reply it
// becomes an error of one op. Otherwise, if the context has ended, it becomes the context's error.
func backendError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	ctxErr := ended(ctx)
	// A server that does not know the script has executed nothing. There was no time to send it.
	unsent := ctxErr != nil && redis.HasErrorPrefix(err, "NOSCRIPT")
	if isAnswer(err) && !unsent {
		return &limiter.OpError{Err: err}
	}
	if ctxErr != nil && !errors.Is(err, ctxErr) {
		return fmt.Errorf("%w: %w", ctxErr, err)
	}
	return err
}

// ended returns the context's error. It does so also when the deadline has passed but only the
// connection has noticed it yet.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
