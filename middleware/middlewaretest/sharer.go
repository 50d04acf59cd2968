package middlewaretest

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// sharer answers requests of hot keys together, as that of hotparam.Open. Its caches are closed when
// the test ends.
type sharer struct {
	tb     testing.TB
	caches []*onhot.Cache
}

// ForRule implements [middleware.Sharer].
func (s *sharer) ForRule(r *rules.Rule) (middleware.Sharing, error) {
	cache, err := onhot.New(onhot.Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s.caches = append(s.caches, cache)
	s.tb.Cleanup(func() {
		limit, cancel := context.WithTimeout(context.Background(), longest)
		defer cancel()
		if err := cache.Close(limit); err != nil {
			s.tb.Errorf("a handler that answers several requests has not returned: %v", err)
		}
	})
	return &sharing{cache, onhot.NewPolicy(*r.OnHot)}, nil
}

// Invalidate implements [middleware.Sharer].
func (s *sharer) Invalidate(host, path, query string) {
	for _, cache := range s.caches {
		cache.InvalidateTarget(onhot.TargetID(host, path, query))
	}
}

type sharing struct {
	cache  *onhot.Cache
	policy *onhot.Policy
}

var outcomes = map[onhot.How]middleware.Outcome{
	onhot.Hit: middleware.Stored, onhot.Stale: middleware.Stored, onhot.Joined: middleware.Joined, onhot.Led: middleware.Led,
	onhot.Alone: middleware.Alone, onhot.Refused: middleware.Refused, onhot.Gone: middleware.Left,
}

// Share implements [middleware.Sharing].
func (s *sharing) Share(r *http.Request, key string, header http.Header, admit func(bool) (http.Handler, bool)) (shared middleware.Shared) {
	res := s.cache.Do(r, s.policy, key, admit)
	if shared.Outcome = outcomes[res.How]; res.Shared() {
		shared.Status, shared.Body = res.Reply(r, header)
	} else if res.How == onhot.Alone {
		res.Explain(header)
	}
	return shared
}

// Heat makes keys hot for a guard, as if they were published: "items GET /items/{id}?path:id=7".
func Heat(tb testing.TB, guard *middleware.Guard, keys ...string) {
	tb.Helper()
	hot := make([]rules.Hot, len(keys))
	for i, text := range keys {
		key, ok := rules.ParseKey(text)
		if !ok {
			tb.Fatalf("%q is no key", text)
		}
		hot[i] = rules.Hot{Key: key, Low: 1, High: 1, Rate: 1, Mode: rules.ModeLimit}
	}
	guard.HotSet().Update("", rules.Change{Hot: hot})
}
