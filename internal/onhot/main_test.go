package onhot

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCache(tb testing.TB, config Config) *Cache {
	tb.Helper()
	if config.Log == nil {
		config.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	c, err := New(config)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// closeCache closes a cache whose handlers return. In a bubble of synctest it is called before the bubble
// ends.
func closeCache(tb testing.TB, c *Cache) {
	tb.Helper()
	if err := c.Close(context.Background()); err != nil {
		tb.Error(err)
	}
	if s := c.Stats(); s.Bytes != 0 || s.Leaders != 0 || s.Entries != 0 {
		tb.Errorf("after Close: %d bytes, %d entries, %d leaders", s.Bytes, s.Entries, s.Leaders)
	}
}

// site is a cache in front of a handler, as in a middleware without a limit.
type site struct {
	*Cache
	policy  *Policy
	handler http.HandlerFunc
	calls   atomic.Int64
	refuse  atomic.Bool // the limit refuses
}

func newSite(tb testing.TB, policy rules.OnHot, handler http.HandlerFunc) *site {
	tb.Helper()
	return &site{Cache: newCache(tb, Config{}), policy: NewPolicy(policy), handler: handler}
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.serve(w, r) }

func (s *site) serve(w http.ResponseWriter, r *http.Request) Result {
	res := s.Serve(w, r, s.policy, "hot key", func(bool) (http.Handler, bool) {
		if s.refuse.Load() {
			return nil, false
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.calls.Add(1)
			s.handler(w, r)
		}), true
	})
	if res.How == Refused {
		w.WriteHeader(http.StatusTooManyRequests)
	}
	return res
}

// Serve answers a request by [Cache.Do], or lets it go alone. If the limit refuses the request,
// it writes nothing, and the caller refuses.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request, p *Policy, tag string, admit Admit) Result {
	res := c.Do(r, p, tag, admit)
	switch {
	case res.Shared():
		status, body := res.Reply(r, w.Header())
		w.WriteHeader(status)
		if len(body) > 0 {
			_, _ = w.Write(body) // the client may have left
		}
	case res.How == Alone:
		h, ok := admit(false)
		if !ok {
			res.How = Refused
			break
		}
		res.Explain(w.Header())
		h.ServeHTTP(w, r)
	}
	return res
}

// get returns the response to a request with these headers.
func (s *site) get(target string, headers ...string) *httptest.ResponseRecorder {
	w, _ := s.ask(http.MethodGet, target, headers...)
	return w
}

func (s *site) ask(method, target string, headers ...string) (*httptest.ResponseRecorder, Result) {
	w := httptest.NewRecorder()
	res := s.serve(w, newRequest(method, target, headers...))
	return w, res
}

func newRequest(method, target string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// String returns how a request was answered, and the reason if it went alone.
func (res Result) String() string {
	if res.How == Alone {
		return "alone: " + res.Reason.String()
	}
	return res.How.String()
}

// isLeader reports whether r is a leader's request, which has no client.
func isLeader(r *http.Request) bool { return r.RemoteAddr == "" }

var hour = rules.OnHot{Coalesce: true, Cache: time.Hour}
