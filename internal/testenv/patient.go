package testenv

import (
	"net/url"
	"testing"
	"time"
)

// Patient returns redisURL with time-outs so long that the deadlines of the callers apply, so
// that nothing fails on a busy machine.
func Patient(tb testing.TB, redisURL string) string {
	tb.Helper()
	const long = 30 * time.Second
	u, err := url.Parse(redisURL)
	if err != nil {
		tb.Fatalf("testenv: %v", err)
	}
	query := u.Query()
	for _, timeout := range []string{"dial_timeout", "read_timeout", "write_timeout"} {
		query.Set(timeout, long.String())
	}
	u.RawQuery = query.Encode()
	return u.String()
}
