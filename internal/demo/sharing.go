package demo

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/sharing"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// sharingAPI is an instance of the same API that also answers identical requests of a hot key
// once and from memory, by on_hot. It follows the hot keys that the instances with limits have
// made hot. Its requests are not counted: they are the same ones.
type sharingAPI struct {
	*api
	answers *sharing.Answers
}

// onHot is the on_hot of its rule.
var onHot = rules.OnHot{Coalesce: true, Cache: 500 * time.Millisecond, Stale: 2 * time.Second}

func (d *Demo) newSharingAPI(ctx context.Context, ruleset *rules.Rules, database *database, log *slog.Logger) (*sharingAPI, error) {
	shared := *ruleset
	shared.Rules = []rules.Rule{ruleset.Rules[0]}
	shared.Rules[0].OnHot = &onHot
	answers := sharing.New(log)
	a, err := d.newInstance(ctx, uncounted{}, &shared, log, middleware.WithoutLocal(), middleware.WithSharer(answers))
	if err != nil {
		return nil, err
	}
	answers.Adopt(&shared)
	mux := http.NewServeMux()
	mux.Handle(Route, a.guard.Handler(filings(database)))
	a.handler = mux
	return &sharingAPI{api: a, answers: answers}, nil
}

// run serves until ctx ends.
func (a *sharingAPI) run(ctx context.Context) error {
	err := a.api.run(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastAnswers)
	defer cancel()
	return errors.Join(err, a.answers.Close(ctx))
}

// uncounted is a sink that sends nothing.
type uncounted struct{ collector.CountsOnly }

func (uncounted) Send(context.Context, collector.Flush, []collector.Count) collector.Sent {
	return collector.Sent{}
}
func (uncounted) Fit(text []byte) []byte { return text }
func (uncounted) Close() error           { return nil }
