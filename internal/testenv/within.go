package testenv

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Within polls ok until it returns true, which must happen within limit, and returns the time
// that took. It is for conditions without an event that reaches the test, such as the state of a
// process. If it fails, it logs details, calling the functions in it first.
func Within(tb testing.TB, limit time.Duration, what string, ok func() bool, details ...any) time.Duration {
	tb.Helper()
	begun := time.Now()
	for {
		asked := time.Since(begun) // the answer is at least as old as the question
		if ok() {
			return asked
		}
		if asked > limit {
			var state strings.Builder
			for _, v := range details {
				if call, isFunc := v.(func() any); isFunc {
					v = call()
				}
				fmt.Fprintf(&state, "\n%+v", v)
			}
			tb.Fatalf("not within %v: %s%s", limit, what, &state)
		}
		// Poll less often the longer it takes, since polling takes processor time from the polled
		// processes.
		time.Sleep(min(max(asked/50, time.Millisecond), 50*time.Millisecond))
	}
}

// Eventually is like Within for conditions without a limit of their own.
func Eventually(tb testing.TB, what string, ok func() bool, details ...any) {
	tb.Helper()
	Within(tb, Patience, what, ok, details...)
}
