package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/cmd/internal/page"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/filewatch"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// operatorPage is a page that acts, in one namespace. It is a [page.Actor].
type operatorPage struct {
	place  redisPlace
	client redis.UniversalClient
	log    *slog.Logger
	config string // path of the rules file, or empty
	tokens string // path of the file of tokens, or empty
	// tokensText is the contents of that file at the start.
	tokensText []byte

	view  *live.View
	rules *rulesfile.Follower // nil without a file
}

func withAnotherOperateAddress(err error) error {
	return fmt.Errorf("operate: %w", status.WithAnotherAddress(err, "--http or HOTPARAM_HTTP"))
}

// run serves the page until ctx ends.
func (p *operatorPage) run(ctx context.Context, listener net.Listener, encryption *tls.Config, guard page.GuardConfig) error {
	if p.place.file != nil {
		p.rules = rulesfile.New(rulesfile.Config{Path: p.config, Start: p.place.file, Put: func(*config.File) error { return nil }, Log: p.log})
	}
	var err error
	if p.view, err = live.NewView(p.client, live.Config{Namespace: p.place.namespace, Logger: p.log}); err != nil {
		return err
	}
	access := page.NewGuard(guard)
	past, closePast, err := p.history()
	if err != nil {
		return err
	}
	defer closePast()
	shown := page.New(page.Config{
		Guard: access, View: p.view, Redis: p.place.redis.URL, Version: readVersion().Version, Log: p.log, Actor: p, Rules: p.ruleList,
	})
	server, mux := status.NewServer(status.Config{
		Log: p.log, Build: readVersion(), TLS: encryption, Ready: p.ready,
		Collect: func(s figure.Samples) {
			figure.Collect(s, page.Figures, shown.Stats())
			figure.Collect(s, page.ActFigures, shown.Stats())
		},
	})
	shown.Register(mux)
	mux.Handle("GET "+history.Path, access.Protect(history.NewHandler(past)))
	scheme := "http"
	if encryption != nil {
		scheme = "https"
	}
	p.log.Info("operate is up", "version", readVersion().Version, "namespace", p.place.namespace, "url", scheme+"://"+listener.Addr().String(),
		"people", len(guard.Tokens), "certificates", guard.Certificates, "redis", redacted(p.place.redis.URL))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.view.Run(ctx) })
	group.Go(func() error { return shown.Run(ctx) })
	group.Go(func() error { return server.Serve(ctx, listener) })
	if p.rules != nil {
		group.Go(func() error { return p.rules.Run(ctx) })
	}
	if p.tokens != "" {
		group.Go(func() error { p.followTokens(ctx, access); return nil })
	}
	return group.Wait()
}

// history returns the history of the namespace, and a function that closes its client if it has its own.
func (p *operatorPage) history() (*history.Store, func(), error) {
	place := p.place.ofHistory()
	if place.redis == p.place.redis {
		store, err := history.NewStore(p.client, place.namespace)
		return store, func() {}, err
	}
	client, err := place.client()
	if err != nil {
		return nil, nil, err
	}
	store, err := history.NewStore(client, place.namespace)
	return store, func() { _ = client.Close() }, err // it has only read
}

// followTokens reads the file of tokens again whenever it changes. A file that cannot be used changes
// nothing: an editor may have written half of it.
func (p *operatorPage) followTokens(ctx context.Context, access *page.AccessGuard) {
	filewatch.Run(ctx, filewatch.Config{Path: p.tokens, Known: p.tokensText, OnChange: func(data []byte) {
		tokens, err := page.ParseTokens(data)
		if err != nil {
			p.log.Warn("the file of tokens cannot be used: the same people as before may act", "err", err)
			return
		}
		access.SetTokens(tokens)
		p.log.Info("the file of tokens has been read", "people", len(tokens))
	}, OnAccess: func(err error) {
		if err != nil {
			p.log.Warn("the file of tokens cannot be read: the same people as before may act", "err", err)
		}
	}})
}

func (p *operatorPage) ready() (string, bool) {
	switch s := p.view.Snapshot(); {
	case s.Err != nil:
		return "not ready: " + s.Err.Error(), false
	case s.Read.IsZero():
		return "not ready: Redis has not been read yet", false
	}
	return "ready", true
}

// ruleset returns the rules of the file, or nil without one.
func (p *operatorPage) ruleset() *rules.Rules {
	if p.rules == nil {
		return nil
	}
	return p.rules.Rules()
}

func (p *operatorPage) ruleList() page.RuleList {
	if r := p.ruleset(); r != nil {
		return page.RulesOf(r)
	}
	return page.RuleList{Namespace: p.place.namespace, Rules: []page.RuleText{}}
}

// Find implements [page.Actor].
func (p *operatorPage) Find(words string, action published.ControlAction) (rules.Key, string, error) {
	s := p.view.Snapshot()
	search := keySearch{words: words, controls: s.Controls, ruleset: p.ruleset(), releases: action == ""}
	for i := range s.Hot {
		search.hot = append(search.hot, s.Hot[i].Hot)
	}
	for i := range s.Members {
		search.held = search.held || s.Members[i].Held > 0
	}
	if !s.Published && len(s.Members) == 0 && s.MembersErr == nil {
		return rules.Key{}, "", fmt.Errorf("no instance sends heartbeats in namespace %s, so none would obey", p.place.namespace)
	}
	found, err := search.findFor(action)
	if err != nil {
		return rules.Key{}, "", err
	}
	note := ""
	if action != "" && !found.seen {
		note = found.unseenNote(p.place.namespace)
	}
	return found.key, note, nil
}

// CarryOut implements [page.Actor].
func (p *operatorPage) CarryOut(ctx context.Context, order hotkeys.ControlOrder) (published.Control, error) {
	c, err := hotkeys.CarryOut(ctx, p.client, p.place.namespace, order)
	if err != nil {
		return c, errors.New(printable(p.place.explain(err, operatorUser).Error()))
	}
	p.view.Now()
	return c, nil
}
