package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Actor carries out orders. It is safe for concurrent use.
type Actor interface {
	// Find returns the key that words name, in the form of `hotparam list`, and a note about it or
	// "". It returns an error if the action makes no sense for the key. An empty action is a
	// release. It makes no call.
	Find(words string, action published.ControlAction) (key rules.Key, note string, err error)
	// CarryOut sets or, without an action, releases a control, and returns it.
	CarryOut(ctx context.Context, order hotkeys.ControlOrder) (published.Control, error)
}

// Bounds of orders.
const (
	actsPerPerson = 20 // a minute
	actsPerMinute = 60 // of all people
	maxActBody    = 16 << 10
	actTimeout    = 5 * time.Second
	// actHeader must be in each request that acts. A form cannot set it, and a script of another
	// site may not, since this server allows no preflight.
	actHeader = "Hotparam-Act"
)

// acting is the part of a page that acts.
type acting struct {
	page          *Page
	confirmations *confirmations
	people        *limiter.Limiter // limits each author
	all           *limiter.Local
	done, refused atomic.Uint64
	refusals      loglimit.Limit
}

// refusalLines bounds the log lines about refused orders.
var refusalLines = loglimit.LineRate{Burst: 20, Every: 3 * time.Second}

func newActing(p *Page) *acting {
	// Neither can fail: the quota and the names are constants.
	memory, _ := limiter.NewMemory(limiter.MemoryConfig{MaxKeys: 1024})
	people, _ := limiter.New(memory, "acts", limiter.Per(actsPerPerson, time.Minute))
	return &acting{page: p, confirmations: newConfirmations(), people: people, all: limiter.NewLocal(actsPerMinute/60.0, actsPerMinute)}
}

// register adds the two steps of an order, its confirmation and the order itself.
func (a *acting) register(mux *http.ServeMux) {
	mux.HandleFunc("POST /api/v1/act/confirmation", func(w http.ResponseWriter, r *http.Request) { a.handle(w, r, a.confirm) })
	mux.HandleFunc("POST /api/v1/act", func(w http.ResponseWriter, r *http.Request) { a.handle(w, r, a.act) })
}

// actError is an error with its status.
type actError struct {
	status int
	err    error
}

func (e *actError) Error() string { return e.err.Error() }

func badRequest(err error) error { return &actError{http.StatusBadRequest, err} }

// handle makes the checks that both steps have in common, and answers.
func (a *acting) handle(w http.ResponseWriter, r *http.Request, step func(r *http.Request, author string) (any, error)) {
	author := authorOf(r)
	err := checkAct(r, author)
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxActBody)
		var answer any
		if answer, err = step(r, author); err == nil {
			writeJSON(w, answer)
			return
		}
	}
	a.refused.Add(1)
	status := http.StatusServiceUnavailable
	var known *actError
	if errors.As(err, &known) {
		status = known.status
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	if unlogged, ok := a.refusals.Allow(refusalLines, time.Now()); ok {
		a.page.cfg.Log.Warn("page: an action was refused", "author", author, "remote", r.RemoteAddr, "status", status, "err", err, "more_before", unlogged)
	}
	fail(w, r, status, err.Error())
}

func checkAct(r *http.Request, author string) error {
	if r.Header.Get(actHeader) == "" {
		return &actError{http.StatusForbidden, errors.New("header " + actHeader + " is missing: 1")}
	}
	if author == "" {
		return &actError{http.StatusForbidden, errors.New("the author is not known: the client's certificate has no subject")}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return &actError{http.StatusUnsupportedMediaType, errors.New("want Content-Type: application/json")}
	}
	return nil
}

// decode reads the body of a request into value.
func decode(body io.Reader, value any) error {
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(value); err != nil {
		return badRequest(fmt.Errorf("the body cannot be read: %w", err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return badRequest(errors.New("the body has more than one object"))
	}
	return nil
}

// confirm returns what an action would have done, and the confirmation that makes it possible.
func (a *acting) confirm(r *http.Request, author string) (any, error) {
	var asked struct {
		Key    string                  `json:"key"`
		Action published.ControlAction `json:"action"` // or "release"
	}
	if err := decode(r.Body, &asked); err != nil {
		return nil, err
	}
	switch {
	case asked.Action == "release":
		asked.Action = ""
	case !asked.Action.Valid():
		return nil, badRequest(errors.New("action: want pin, block, allow or release"))
	}
	key, note, err := a.page.cfg.Actor.Find(asked.Key, asked.Action)
	if err != nil {
		return nil, badRequest(err)
	}
	s := a.page.cfg.View.Snapshot()
	if s.Err != nil {
		return nil, fmt.Errorf("Redis cannot be read: %w", s.Err)
	}
	id, err := a.confirmations.add(confirmation{author: author, key: key, action: asked.Action}, time.Now())
	if err != nil {
		return nil, &actError{http.StatusTooManyRequests, err}
	}
	return map[string]any{
		"confirmation": id, "seconds": int(confirmationLife / time.Second), "rule": key.Rule, "key": key.Text,
		"effect": s.Effect(key, asked.Action), "note": note,
	}, nil
}

// act carries out an order that was confirmed.
func (a *acting) act(r *http.Request, author string) (any, error) {
	var asked struct {
		Confirmation string `json:"confirmation"`
		For          string `json:"for"` // such as 10m
		Why          string `json:"why"`
	}
	if err := decode(r.Body, &asked); err != nil {
		return nil, err
	}
	if len(asked.Why) > published.MaxControlWhy {
		return nil, badRequest(fmt.Errorf("why: %d bytes, want at most %d", len(asked.Why), published.MaxControlWhy))
	}
	if d, err := a.people.Allow(r.Context(), author); err != nil || !d.Allowed || !a.all.Allow() {
		return nil, &actError{http.StatusTooManyRequests, fmt.Errorf("too many actions: %d a minute by one person, %d by all", actsPerPerson, actsPerMinute)}
	}
	c, found := a.confirmations.take(asked.Confirmation, author, time.Now())
	if !found {
		return nil, &actError{http.StatusConflict, fmt.Errorf("the confirmation has been used, or is older than %s: ask again", hotwords.Span(confirmationLife))}
	}
	order := hotkeys.ControlOrder{Key: c.key, Action: c.action, Why: asked.Why, Claimed: author}
	if c.action != "" {
		var err error
		if order.For, err = base.ParseDuration(asked.For); err != nil || order.For < time.Second || order.For > published.MaxControlTime {
			return nil, badRequest(fmt.Errorf("for %.20q: want 1s to %s", asked.For, hotwords.Span(published.MaxControlTime)))
		}
		if order.Why == "" {
			return nil, badRequest(errors.New("why: the reason is missing, which others will ask for"))
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), actTimeout)
	defer cancel()
	done, err := a.page.cfg.Actor.CarryOut(ctx, order)
	if err != nil {
		return nil, err
	}
	a.done.Add(1)
	name := c.action
	if name == "" {
		name = "release"
	}
	a.page.cfg.Log.Info("page: an action", "author", author, "remote", r.RemoteAddr, "action", name, "rule", c.key.Rule, "key", c.key.Text, "for", order.For, "why", order.Why)
	return listed.OfControls([]published.Control{done})[0], nil
}
