package testenv

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Within polls until ok, which must be so within a time, and returns how long it took. It is for
// what has no event that reaches the test, such as the state of a process. If it fails it logs the
// rest, of which functions are called first.
func Within(tb testing.TB, limit time.Duration, what string, ok func() bool, rest ...any) time.Duration {
	tb.Helper()
	begun := time.Now()
	for {
		asked := time.Since(begun) // the answer is at least as old as the question
		if ok() {
			return asked
		}
		if asked > limit {
			var state strings.Builder
			for _, v := range rest {
				if call, is := v.(func() any); is {
					v = call()
				}
				fmt.Fprintf(&state, "\n%+v", v)
			}
			tb.Fatalf("not within %v: %s%s", limit, what, &state)
		}
		// The longer it takes, the less often it is asked: asking takes processor time from
		// those that are asked.
		time.Sleep(min(max(asked/50, time.Millisecond), 50*time.Millisecond))
	}
}

// Eventually is Within for what has no time of its own.
func Eventually(tb testing.TB, what string, ok func() bool, rest ...any) {
	tb.Helper()
	Within(tb, Patience, what, ok, rest...)
}
