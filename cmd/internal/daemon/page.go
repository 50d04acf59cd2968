package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/cmd/internal/page"
	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/rules"
)

// admin is the protected part of the daemon's HTTP server: the page with its API, and all else
// with the same access control. Health, readiness and metrics are not part of it.
type admin struct {
	guard *page.AccessGuard
	view  *live.View // nil without a page
	page  *page.Page // nil without a page
	more  []adminRoute
}

type adminRoute struct {
	pattern string
	handler http.Handler
}

// newAdmin returns the protected handlers for a listener. The function rules returns the rules in
// force.
func newAdmin(set *settings, listener net.Addr, rules func() *rules.Rules) (*admin, error) {
	conf := set.File.Aggregator
	token, err := conf.PageToken()
	if err != nil {
		return nil, &ConfigError{err}
	}
	host, _, err := net.SplitHostPort(conf.HTTP)
	if err != nil {
		return nil, err
	}
	a := &admin{guard: page.NewGuard(page.GuardConfig{
		Token: token, Listener: listener, Hosts: append([]string{host}, conf.PageHosts...), Log: set.Log,
	})}
	if conf.Pprof {
		a.handle("GET "+status.PprofPath, status.Pprof())
	}
	if conf.Page == config.PageOff {
		return a, nil
	}
	if a.view, err = live.NewView(set.Redis, live.Config{Namespace: rules().Namespace, Logger: set.Log}); err != nil {
		return nil, err
	}
	a.page = page.New(page.Config{
		Guard: a.guard, View: a.view, Redis: conf.Redis.URL, Version: set.Build.Version, Log: set.Log,
		Rules: func() page.RuleList { return page.RulesOf(rules()) },
	})
	return a, nil
}

// handle adds a handler with the page's access control. It must be called before run.
func (a *admin) handle(pattern string, handler http.Handler) {
	a.more = append(a.more, adminRoute{pattern, handler})
}

// register adds all handlers to the server's mux.
func (a *admin) register(mux *http.ServeMux) {
	if a.page != nil {
		a.page.Register(mux)
	} else if a.guard.HasToken() {
		mux.Handle("/login", a.guard.Login())
		mux.Handle("/logout", a.guard.Login())
	}
	for _, route := range a.more {
		mux.Handle(route.pattern, a.guard.Protect(route.handler))
	}
}

// run keeps the page up to date until ctx ends.
func (a *admin) run(ctx context.Context) error {
	if a.page == nil {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.view.Run(ctx) })
	group.Go(func() error { return a.page.Run(ctx) })
	if err := group.Wait(); err != nil {
		return fmt.Errorf("the page: %w", err)
	}
	return nil
}

// accessAttr describes, for the log, who has access to the page.
func (a *admin) accessAttr() slog.Attr {
	state := "open to this machine"
	switch {
	case a.page == nil:
		state = "off"
	case a.guard.IsClosed():
		state = "closed: aggregator.http is not a loopback address, and aggregator.page_token_file or page_token_env is missing"
	case a.guard.HasToken():
		state = "with a token"
	}
	return slog.String("page", state)
}
