package demo

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/onhot"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// sharingAPI is an instance of the same API that also answers identical requests of a hot key
// once and from memory, by on_hot. It follows the hot keys that the instances with limits have
// made hot. Its requests are not counted: they are the same ones.
type sharingAPI struct {
	*api
	cache *onhot.Cache
}

// onHot is the on_hot of its rule.
var onHot = rules.OnHot{Coalesce: true, Cache: 500 * time.Millisecond, Stale: 2 * time.Second}

func (d *Demo) newSharingAPI(ctx context.Context, ruleset *rules.Rules, database *database, log *slog.Logger) (*sharingAPI, error) {
	cache, err := onhot.New(onhot.Config{Log: log})
	if err != nil {
		return nil, err
	}
	sharing := *ruleset
	sharing.Rules = []rules.Rule{ruleset.Rules[0]}
	sharing.Rules[0].OnHot = &onHot
	a, err := d.newInstance(ctx, uncounted{}, &sharing, log, middleware.WithoutLocal(),
		middleware.WithSharer(&sharer{cache: cache, policy: onhot.NewPolicy(onHot)}))
	if err != nil {
		return nil, errors.Join(err, cache.Close(ctx))
	}
	mux := http.NewServeMux()
	mux.Handle(Route, a.guard.Handler(filings(database)))
	a.handler = mux
	return &sharingAPI{api: a, cache: cache}, nil
}

// run serves until ctx ends.
func (a *sharingAPI) run(ctx context.Context) error {
	err := a.api.run(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	return errors.Join(err, a.cache.Close(ctx))
}

// sharer answers by one cache, as hotparam.Open does for each rule.
type sharer struct {
	cache  *onhot.Cache
	policy *onhot.Policy
}

// ForRule implements [middleware.Sharer].
func (s *sharer) ForRule(*rules.Rule) (middleware.Sharing, error) { return s, nil }

// Invalidate implements [middleware.Sharer].
func (s *sharer) Invalidate(host, path, query string) { s.cache.InvalidateTarget(host, path, query) }

// Share implements [middleware.Sharing].
func (s *sharer) Share(r *http.Request, key string, header http.Header, admit func(bool) (http.Handler, bool)) middleware.Shared {
	res := s.cache.Do(r, s.policy, key, admit)
	switch {
	case res.Shared():
		status, body := res.Reply(r, header)
		return middleware.Shared{Outcome: middleware.Stored, Status: status, Body: body}
	case res.How == onhot.Refused:
		return middleware.Shared{Outcome: middleware.Refused}
	case res.How == onhot.Gone:
		return middleware.Shared{Outcome: middleware.Left}
	}
	return middleware.Shared{Outcome: middleware.Alone, Reason: res.Reason.String()}
}

// uncounted is a sink that sends nothing.
type uncounted struct{ collector.CountsOnly }

func (uncounted) Send(context.Context, collector.Flush, []collector.Count) collector.Sent {
	return collector.Sent{}
}
func (uncounted) Fit(text []byte) []byte { return text }
func (uncounted) Close() error           { return nil }
