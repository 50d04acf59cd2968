package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// fakeActor records orders.
type fakeActor struct {
	mu     sync.Mutex
	orders []hotkeys.ControlOrder
	err    error
}

func (a *fakeActor) Find(words string, _ published.ControlAction) (rules.Key, string, error) {
	key, ok := rules.ParseKey(words)
	if !ok {
		return key, "", errors.New("no such key")
	}
	return key, "", nil
}

func (a *fakeActor) CarryOut(_ context.Context, o hotkeys.ControlOrder) (published.Control, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != nil {
		return published.Control{}, a.err
	}
	a.orders = append(a.orders, o)
	return published.Control{Key: o.Key, Action: o.Action, Why: o.Why, Claimed: o.Claimed, Since: time.Unix(0, 0), Until: time.Unix(0, 0).Add(o.For)}, nil
}

func (a *fakeActor) all() []hotkeys.ControlOrder {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.orders
}

var people = []NamedToken{{"ann", testToken}, {"bob", strings.ToUpper(testToken)}}

// actingPage is a page that acts, without a network.
type actingPage struct {
	actor *fakeActor
	page  *Page
	mux   *http.ServeMux
	log   testenv.LogBuffer
}

func newActingPage(t *testing.T) *actingPage {
	t.Helper()
	p := &actingPage{actor: new(fakeActor), mux: http.NewServeMux()}
	view := newFakeView(t)
	view.show(manyKeys(1, 0))
	log := slog.New(slog.NewTextHandler(&p.log, nil))
	p.page = New(Config{Guard: NewGuard(GuardConfig{Tokens: people, Listener: loopback, Log: log}), View: view, Rules: testRules, Actor: p.actor, Log: log})
	p.page.Register(p.mux)
	return p
}

const hotKey = "search-terms GET /search?q=value-0000"

// send sends a request of ann's with the headers of the page's own script, changed by headers; an
// empty value removes one. It returns the status and the answer.
func (p *actingPage) send(path string, body any, headers ...string) (int, map[string]any) {
	text, ok := body.(string)
	if !ok {
		encoded, _ := json.Marshal(body)
		text = string(encoded)
	}
	r := request(http.MethodPost, path, text, append([]string{"Authorization", "Bearer " + testToken, "Content-Type", "application/json", actHeader, "1", "Sec-Fetch-Site", "same-origin"}, headers...)...)
	r.RemoteAddr = "192.0.2.7:1"
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w := httptest.NewRecorder()
	p.mux.ServeHTTP(w, r)
	answer := make(map[string]any)
	_ = json.Unmarshal(w.Body.Bytes(), &answer)
	return w.Code, answer
}

type anyMap = map[string]any

// confirmation asks for one for the hot key.
func (p *actingPage) confirmation(t *testing.T, action string, headers ...string) string {
	t.Helper()
	status, answer := p.send("/api/v1/act/confirmation", anyMap{"key": hotKey, "action": action}, headers...)
	id, _ := answer["confirmation"].(string)
	if status != http.StatusOK || id == "" || answer["effect"] != "Not known: the key has just become hot." {
		t.Fatalf("confirmation: %d %v", status, answer)
	}
	return id
}

func TestAct(t *testing.T) {
	p := newActingPage(t)
	id := p.confirmation(t, "block")
	status, answer := p.send("/api/v1/act", anyMap{"confirmation": id, "for": "10m", "why": "INC-7"})
	if status != http.StatusOK || answer["action"] != "block" || answer["claimed"] != "ann" {
		t.Fatalf("%d %v", status, answer)
	}
	key, _ := rules.ParseKey(hotKey)
	want := hotkeys.ControlOrder{Key: key, Action: published.ControlBlock, For: 10 * time.Minute, Why: "INC-7", Claimed: "ann"}
	if got := p.actor.all(); len(got) != 1 || got[0] != want {
		t.Errorf("the orders are %+v, want %+v", got, want)
	}
	bob := []string{"Authorization", "Bearer " + people[1].Token}
	id = p.confirmation(t, "release", bob...)
	if status, answer := p.send("/api/v1/act", anyMap{"confirmation": id}, bob...); status != http.StatusOK || p.actor.all()[1] != (hotkeys.ControlOrder{Key: key, Claimed: "bob"}) {
		t.Errorf("a release: %d %v %+v", status, answer, p.actor.all())
	}
	p.actor.err = errors.New("NOPERM")
	if status, answer := p.send("/api/v1/act", anyMap{"confirmation": p.confirmation(t, "pin"), "for": "1h", "why": "x"}); status != http.StatusServiceUnavailable || answer["error"] != "NOPERM" {
		t.Errorf("Redis refuses: %d %v", status, answer)
	}
	if s := p.page.Stats(); s.Acts != 2 || s.RefusedActs != 1 {
		t.Errorf("%+v", s)
	}
	for _, want := range []string{"author=ann", "action=block", "why=INC-7", "NOPERM"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, p.log.String())
		}
	}
}

// Nothing is done for requests of other sites, under other names, without a token, or that are
// malformed.
func TestActIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		status  int
		headers []string
	}{
		"a script of another site":                      {http.StatusForbidden, []string{"Sec-Fetch-Site", "cross-site"}},
		"a script of a sibling":                         {http.StatusForbidden, []string{"Sec-Fetch-Site", "same-site"}},
		"an old browser, another origin":                {http.StatusForbidden, []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}},
		"a sandboxed frame":                             {http.StatusForbidden, []string{"Sec-Fetch-Site", "", "Origin", "null"}},
		"a form":                                        {http.StatusForbidden, []string{actHeader, ""}},
		"a form's encoding":                             {http.StatusUnsupportedMediaType, []string{"Content-Type", "text/plain"}},
		"a name that leads here by DNS":                 {http.StatusMisdirectedRequest, []string{"Host", "evil.example:9128"}},
		"no token":                                      {http.StatusUnauthorized, []string{"Authorization", ""}},
		"a wrong token":                                 {http.StatusUnauthorized, []string{"Authorization", "Bearer wrong"}},
		"the session of the reading page":               {http.StatusUnauthorized, []string{"Authorization", "", "Cookie", sessionOf(sessionCookie, testToken)}},
		"a session of the reading page that is renamed": {http.StatusUnauthorized, []string{"Authorization", "", "Cookie", operatorCookie + strings.TrimPrefix(sessionOf(sessionCookie, testToken), sessionCookie)}},
	} {
		p := newActingPage(t)
		id := p.confirmation(t, "block")
		for path, body := range map[string]anyMap{
			"/api/v1/act":              {"confirmation": id, "for": "10m", "why": "x"},
			"/api/v1/act/confirmation": {"key": hotKey, "action": "block"},
		} {
			if status, answer := p.send(path, body, test.headers...); status != test.status {
				t.Errorf("%s: %s: %d %v, want %d", name, path, status, answer, test.status)
			}
		}
		if got := p.actor.all(); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	// Its own session acts.
	p := newActingPage(t)
	own := []string{"Authorization", "", "Cookie", sessionOf(operatorCookie, testToken)}
	if status, answer := p.send("/api/v1/act", anyMap{"confirmation": p.confirmation(t, "block", own...), "for": "10m", "why": "x"}, own...); status != http.StatusOK || answer["claimed"] != "ann" {
		t.Errorf("a session: %d %v", status, answer)
	}
	for _, body := range []any{
		"", "{", "[]", `{"key": 7}`, `{"key": "x", "action": "block", "more": 1}`, `{"key":"nothing","action":"block"}{}`,
		anyMap{"key": "nothing", "action": "block"}, anyMap{"key": hotKey, "action": ""}, anyMap{"key": hotKey, "action": "hold"}, strings.Repeat(" ", 2*maxActBody),
	} {
		if status, answer := p.send("/api/v1/act/confirmation", body); status != http.StatusBadRequest || answer["error"] == nil {
			t.Errorf("%.80v: %d %v", body, status, answer)
		}
	}
	for _, order := range []anyMap{
		{"for": "", "why": "x"}, {"for": "25h", "why": "x"}, {"for": "1ms", "why": "x"}, {"for": "-10m", "why": "x"}, {"for": "10m", "why": ""},
		{"for": "10m", "why": strings.Repeat("x", published.MaxControlWhy+1)},
	} {
		order["confirmation"] = p.confirmation(t, "block")
		if status, answer := p.send("/api/v1/act", order); status != http.StatusBadRequest {
			t.Errorf("%v: %d %v", order, status, answer)
		}
	}
	if n := len(p.actor.all()); n != 1 {
		t.Errorf("%d orders", n)
	}
}

// sessionOf returns the header of a session that has begun.
func sessionOf(cookie, token string) string {
	w := httptest.NewRecorder()
	s := newSessions(cookie, token)
	s.startSession(w, request(http.MethodPost, "/login", ""), time.Now())
	value, _, _ := strings.Cut(w.Result().Header.Get("Set-Cookie"), ";")
	return value
}

// No token is in the log, an answer's headers other than the session's end, or a URL.
func TestTokensStaySecret(t *testing.T) {
	p := newActingPage(t)
	p.send("/api/v1/act/confirmation", anyMap{"key": hotKey, "action": "block"}, "Authorization", "Bearer "+testToken+"x")
	p.send("/api/v1/act?token="+testToken, anyMap{"confirmation": "none"}, "Authorization", "")
	p.send("/api/v1/act", anyMap{"confirmation": "none", "for": "1h", "why": "x"})
	w := httptest.NewRecorder()
	p.mux.ServeHTTP(w, request(http.MethodPost, "/login", url.Values{"token": {testToken}}.Encode(), "Content-Type", "application/x-www-form-urlencoded"))
	var answer bytes.Buffer
	if err := w.Result().Write(&answer); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(answer.String(), operatorCookie+"=") || !strings.Contains(answer.String(), "SameSite=Strict") || strings.Contains(answer.String(), testToken) {
		t.Errorf("the login answers\n%s", answer.String())
	}
	if text := p.log.String(); strings.Contains(text, testToken) || !strings.Contains(text, "a wrong token") {
		t.Errorf("the log:\n%s", text)
	}
}

// The aggregator's page has no way to act.
func TestReadingPageDoesNotAct(t *testing.T) {
	f := serveView(t, newFakeView(t), "")
	var session struct {
		MayAct bool `json:"may_act"`
	}
	if f.get(t, "/api/v1/session", &session); session.MayAct {
		t.Error("it may act")
	}
	for _, path := range []string{"/api/v1/act", "/api/v1/act/confirmation"} {
		resp, err := f.server.Client().Post(f.server.URL+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// Whatever the bodies of requests are, the page answers, and acts only by a confirmation.
func FuzzAct(f *testing.F) {
	f.Add(`{"key":"search-terms GET /search?q=value-0000","action":"block"}`, `{"confirmation":"x","for":"10m","why":"x"}`)
	f.Fuzz(func(t *testing.T, confirmation, order string) {
		p := newActingPage(t)
		if status, _ := p.send("/api/v1/act/confirmation", confirmation); status != http.StatusOK && status != http.StatusBadRequest {
			t.Fatalf("%q: %d", confirmation, status)
		}
		if status, _ := p.send("/api/v1/act", order); status != http.StatusBadRequest && status != http.StatusConflict {
			t.Fatalf("%q: %d", order, status)
		}
		if got := p.actor.all(); len(got) != 0 {
			t.Fatalf("%+v", got)
		}
	})
}

// While Redis cannot be read, the effect of an action is not known, and it is not carried out.
func TestActWithoutRedis(t *testing.T) {
	p := newActingPage(t)
	p.page.cfg.View.(*fakeView).show(&live.Snapshot{Err: errors.New("connection refused")})
	if status, answer := p.send("/api/v1/act/confirmation", anyMap{"key": hotKey, "action": "block"}); status != http.StatusServiceUnavailable || !strings.Contains(answer["error"].(string), "connection refused") {
		t.Errorf("%d %v", status, answer)
	}
}
