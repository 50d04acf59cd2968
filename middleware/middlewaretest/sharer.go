package middlewaretest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/middleware/sharing"
	"github.com/hotparam/hotparam/rules"
)

// newAnswers returns what answers requests of hot keys together, as hotparam.Open has it. It is closed
// when the test ends.
func newAnswers(tb testing.TB) *sharing.Answers {
	answers := sharing.New(slog.New(slog.DiscardHandler))
	tb.Cleanup(func() {
		limit, cancel := context.WithTimeout(context.Background(), longest)
		defer cancel()
		if err := answers.Close(limit); err != nil {
			tb.Errorf("a handler that answers several requests has not returned: %v", err)
		}
	})
	return answers
}

// Heat makes keys hot for a guard, as if they were published: "items GET /items/{id}?path:id=7".
func Heat(tb testing.TB, guard *middleware.Guard, keys ...string) {
	tb.Helper()
	hot := make([]published.Hot, len(keys))
	for i, text := range keys {
		key, ok := rules.ParseKey(text)
		if !ok {
			tb.Fatalf("%q is no key", text)
		}
		hot[i] = published.Hot{Key: key, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit}
	}
	guard.HotSet().Update("", published.Change{Hot: hot})
}
