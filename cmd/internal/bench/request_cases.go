package bench

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Names of the cases with goals.
const (
	CaseCold     = "cold"
	CasePassed   = "hot_passed"
	CaseRefused  = "hot_refused"
	CaseAnswered = "hot_429"
)

var goalCases = []string{CaseCold, CasePassed, CaseRefused, CaseAnswered}

var (
	// tight is a limit that refuses all but the first request.
	tight = rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 1}, Mode: rules.ModeLimit}
	// wide is a limit that refuses none.
	wide = rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: rules.MaxRate, Per: time.Second}, Burst: rules.MaxRate}, Mode: rules.ModeLimit}
)

// hotQuery and hotKey are the query and the key of a request whose key is hot, or blocked.
const hotQuery = "q=hot&b=2"

var hotQueries = []string{hotQuery}

var hotKey = rules.Key{Rule: ruleTerms, Text: route + "?b=2&q=hot"}

// benchRules returns a single rule, which counts and limits each request of the route.
func benchRules(limit rules.Limit, params ...rules.Param) *rules.Rules {
	ruleset := searchRules("shop", rules.NewThreshold(unreachable), &limit)
	if len(params) > 0 {
		ruleset.Rules[0].By = rules.By{Kind: rules.ByNames, Names: params}
	}
	return ruleset
}

// addCases adds the guards and the cases.
func (l *requestLoad) addCases(ctx context.Context) error {
	l.w.header = make(http.Header)
	for _, add := range []func(context.Context) error{
		l.addCold, l.addPassed, l.addRefused, l.addBlocked, l.addStopped, l.addQueries, l.addSources, l.addForm,
	} {
		if err := add(ctx); err != nil {
			return err
		}
	}
	return nil
}

// addCheck adds a case of the requests that nth returns. The guard must allow them, or refuse
// them.
func (l *requestLoad) addCheck(g *benchGuard, name, what string, allowed bool, nth func(i int) middleware.Request) func(i int) {
	wrong := 0
	return l.addStep(g, name, what, &wrong, func(i int) {
		if g.Check(nth(i)).Allowed != allowed {
			wrong++
		}
	})
}

// addStep adds a case whose step counts unexpected outcomes in wrong.
func (l *requestLoad) addStep(g *benchGuard, name, what string, wrong *int, step func(i int)) func(i int) {
	l.cases = append(l.cases, requestCase{name: name, what: what, step: step, counting: g.counting, wrong: func() int { return *wrong }})
	return step
}

// addQuery is addCheck for queries that are used in turn. Their number must be a power of two.
func (l *requestLoad) addQuery(g *benchGuard, name, what string, allowed bool, queries []string) func(i int) {
	wrong, last := 0, len(queries)-1
	return l.addStep(g, name, what, &wrong, func(i int) {
		if g.Check(request(queries[i&last])).Allowed != allowed {
			wrong++
		}
	})
}

func (l *requestLoad) addCold(ctx context.Context) error {
	g, err := l.newGuard(benchRules(tight))
	if err == nil {
		g.warm(ctx, len(l.queries), l.addQuery(g, CaseCold, "not hot", true, l.queries))
	}
	return err
}

func (l *requestLoad) addPassed(context.Context) error {
	g, err := l.newGuard(benchRules(wide))
	if err == nil {
		g.heat(hotKey)
		l.addQuery(g, CasePassed, "hot, within its limit", true, hotQueries)
	}
	return err
}

// addRefused adds the decision alone, and the decision with its answer by net/http.
func (l *requestLoad) addRefused(context.Context) error {
	g, err := l.newGuard(benchRules(tight))
	if err != nil {
		return err
	}
	g.heat(hotKey)
	g.Check(request(hotQuery)) // the only one that passes
	l.addQuery(g, CaseRefused, "hot, over its limit", false, hotQueries)
	l.addHandler(g, CaseAnswered, "the same, and its 429 written", http.StatusTooManyRequests)
	return nil
}

// addHandler adds a case of hot requests to a handler, which answers with this status.
func (l *requestLoad) addHandler(g *benchGuard, name, what string, status int) {
	h := g.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	in := httpRequest("GET", "/search?"+hotQuery, nil)
	wrong := 0
	l.cases = append(l.cases, requestCase{name: name, what: what, counting: g.counting, wrong: func() int { return wrong }, step: func(int) {
		w := &l.w
		w.reset()
		h.ServeHTTP(w, in)
		if w.status != status {
			wrong++
		}
	}})
}

// httpRequest returns a request as a mux with the route passes it to a handler.
func httpRequest(method, target string, body io.Reader) *http.Request {
	in, err := http.NewRequestWithContext(context.Background(), method, target, body)
	if err != nil {
		panic(err) // a constant
	}
	in.Pattern = method + " /search"
	return in
}

func (l *requestLoad) addBlocked(context.Context) error {
	ruleset := benchRules(tight)
	ruleset.Rules[0].Except = []rules.Exception{{Values: []rules.QueryMatch{{Name: "q", Value: "hot"}}, Action: rules.Block}}
	g, err := l.newGuard(ruleset)
	if err == nil {
		l.addQuery(g, "blocked_by_rule", "blocked by an exception of the rule", false, hotQueries)
	}
	return err
}

func (l *requestLoad) addStopped(context.Context) error {
	g, err := l.newGuard(benchRules(tight))
	if err == nil {
		g.SetControls([]published.Control{{Key: hotKey, Action: published.ControlBlock, Until: time.Now().Add(24 * time.Hour)}})
		l.addQuery(g, "blocked_by_operator", "blocked by hotparam block", false, hotQueries)
	}
	return err
}

// addQueries adds queries that cost more to parse than two plain parameters.
func (l *requestLoad) addQueries(ctx context.Context) error {
	for _, c := range []struct{ name, what, before, after string }{
		{"escaped", "not hot, q=caf%C3%A9+…&b=%32", "q=caf%C3%A9+", "&b=%32"},
		{"six", "not hot, six parameters", "q=", "&b=2&a=1&sort=up&page=7&lang=en"},
	} {
		g, err := l.newGuard(benchRules(tight))
		if err != nil {
			return err
		}
		queries := make([]string, len(l.values))
		for i, v := range l.values {
			queries[i] = c.before + v + c.after
		}
		g.warm(ctx, len(l.queries), l.addQuery(g, c.name, c.what, true, queries))
	}
	return nil
}

// userContext is a context with a value that changes from request to request.
type userContext struct {
	context.Context
	user *string
}

func (c userContext) Value(key any) any {
	if key == (userKey{}) {
		return c.user
	}
	return c.Context.Value(key)
}

type userKey struct{}

func userOf(ctx context.Context) string { return *ctx.Value(userKey{}).(*string) }

// addSources adds keys from a header, a cookie and the program's context.
func (l *requestLoad) addSources(ctx context.Context) error {
	in := httpRequest("GET", "/search?q=1&b=2", nil)
	in.Header = http.Header{"X-Plan": {""}, "Cookie": {""}, "Accept": {"*/*"}, "User-Agent": {"bench"}}
	var user string
	in = in.WithContext(userContext{ctx, &user})
	cookies := make([]string, len(l.values))
	for i, v := range l.values {
		cookies[i] = "theme=dark; cart=" + v
	}
	for _, c := range []struct {
		name, what string
		param      rules.Param
		set        func(i int)
	}{
		{"header", "not hot, by header:x-plan", rules.Param{Source: rules.Header, Name: "x-plan"}, func(i int) { in.Header["X-Plan"][0] = l.values[i] }},
		{"cookie", "not hot, by cookie:cart, the second of two", rules.Param{Source: rules.Cookie, Name: "cart"}, func(i int) { in.Header["Cookie"][0] = cookies[i] }},
		{"ctx", "not hot, by ctx:user", rules.Param{Source: rules.Ctx, Name: "user"}, func(i int) { user = l.values[i] }},
	} {
		g, err := l.newGuard(benchRules(tight, c.param), middleware.WithParam("user", userOf))
		if err != nil {
			return err
		}
		g.warm(ctx, len(l.queries), l.addCheck(g, c.name, c.what, true, func(i int) middleware.Request {
			c.set(l.queryIndex(i))
			r := request("q=1&b=2")
			r.Context, r.HTTP = in.Context(), in
			return r
		}))
	}
	return nil
}

// formBody is a reusable request body.
type formBody struct{ strings.Reader }

func (*formBody) Close() error { return nil }

// addForm adds a field of a form. The guard reads and buffers the body, and the handler reads it
// again and parses it. The same handler without a guard is measured for comparison.
func (l *requestLoad) addForm(ctx context.Context) error {
	ruleset := benchRules(tight, rules.Param{Source: rules.Form, Name: "q"})
	var err error
	if ruleset.Rules[0].Match.Route, err = rules.ParseRoute("POST /search"); err != nil {
		return err
	}
	g, err := l.newGuard(ruleset)
	if err != nil {
		return err
	}
	wrong := 0
	parse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ParseForm() != nil || len(r.PostForm) != 2 {
			wrong++
		}
		w.WriteHeader(http.StatusNoContent)
	})
	in := httpRequest("POST", "/search", nil).WithContext(ctx)
	in.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body := &formBody{}
	through := func(h http.Handler) func(i int) {
		return func(i int) {
			form := l.queries[l.queryIndex(i)]
			body.Reset(form)
			in.Body, in.ContentLength = body, int64(len(form))
			in.Form, in.PostForm = nil, nil
			w := &l.w
			w.reset()
			if h.ServeHTTP(w, in); w.status != http.StatusNoContent {
				wrong++
			}
		}
	}
	guarded := through(g.Handler(parse))
	l.cases = append(l.cases,
		requestCase{name: "form", what: "not hot, by form:q, through Handler, and ParseForm behind it", step: guarded, counting: g.counting, wrong: func() int { return wrong }},
		requestCase{name: "parse_form", what: "ParseForm of the same body, without a guard", step: through(parse), wrong: func() int { return wrong }},
	)
	g.warm(ctx, len(l.queries), guarded)
	return nil
}
