package limiter

import (
	"fmt"

	"github.com/hotparam/hotparam/rules"
)

// DeniedError is a denial as an error. A RetryAfter of 0 means that no retry can pass. Find
// it with errors.As. Its text names the limiter and never the key, so that it may be logged.
type DeniedError struct{ rules.Decision }

// Error returns the limiter, the reason and when to retry.
func (e *DeniedError) Error() string {
	if e.RetryAfter <= 0 {
		return fmt.Sprintf("limiter %q: denied (%s): no retry can pass, the limit is %d", e.Rule, e.Reason, e.Limit)
	}
	return fmt.Sprintf("limiter %q: denied (%s): retry in %v", e.Rule, e.Reason, e.RetryAfter)
}
