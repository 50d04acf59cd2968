//go:build real

package auth

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// cachingGateways are the gateways that answer requests of hot keys from a cache. Each starts with
// some texts of its files replaced.
var cachingGateways = map[string]func(tb testing.TB, texts map[string]string) *real.Gateway{
	"nginx": func(tb testing.TB, texts map[string]string) *real.Gateway {
		return startNginxCache(tb, real.Nginx, texts)
	},
	"varnish": startVarnish,
	"latest nginx": func(tb testing.TB, texts map[string]string) *real.Gateway {
		return startNginxCache(tb, real.NginxLatest, texts)
	},
}

func startNginxCache(tb testing.TB, start func(testing.TB, string, map[string]string) *real.Gateway, texts map[string]string) *real.Gateway {
	texts["/var/cache/nginx/hotparam"] = tb.TempDir()
	for _, addr := range []string{"127.0.0.1:8001", "127.0.0.1:8002"} {
		texts[addr] = testenv.Loopback(testenv.FreePort(tb))
	}
	texts["50ms"] = "20s" // requests do not pass because the machine is slow
	return start(tb, "nginx-cache", texts)
}

func startVarnish(tb testing.TB, texts map[string]string) *real.Gateway {
	ports := make(map[string]string)
	for _, addr := range []string{application0, door0} {
		_, port, _ := net.SplitHostPort(addr)
		_, ports[port], _ = net.SplitHostPort(texts[addr])
		delete(texts, addr)
	}
	texts["50ms"] = "20s"
	return real.Varnish(tb, "varnish", texts, ports)
}

// shop is an application whose answers say which request they answer, and by which run.
type shop struct {
	*gatewaytest.Fixture
	gateway *real.Gateway
	client  *http.Client
	runs    atomic.Int64
}

// seen is what one run of the application saw, which it answers with.
type seen struct {
	Run          int64
	Method, Host string
	URI          string
	Header       http.Header
	Body         string
}

// shopAnswers are the headers of the application's answers by the parameter kind, and whether these
// answers may be shared.
var shopAnswers = map[string]struct {
	status  int
	headers []string // name, value
	shared  bool
	// mayBeShared is set for answers that Varnish shares for a shorter time, while nginx does not.
	mayBeShared bool
}{
	"plain":   {headers: []string{}, shared: true},
	"lasting": {headers: []string{"Cache-Control", "public, max-age=3600", "Expires", "Mon, 01 Jan 2035 00:00:00 GMT", "Etag", `"v"`, "Content-Disposition", "inline", "Content-Language", "en", "Link", "</>", "X-Page", "p"}, shared: true},
	"gzip":    {headers: []string{"Vary", "Accept-Encoding"}, shared: true},
	"session": {headers: []string{
		"Set-Cookie", "session=RUN", "Content-Disposition", "inline", "Content-Language", "en", "Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT",
		"Link", "</RUN>", "Location", "/RUN", "Refresh", "RUN", "X-Session", "RUN", "Etag", `"RUN"`,
	}},
	"private":  {headers: []string{"Cache-Control", "max-age=60, private"}},
	"no-store": {headers: []string{"Cache-Control", "no-store"}},
	"no-cache": {headers: []string{"Cache-Control", `no-cache="set-cookie"`}},
	"instant":  {headers: []string{"Cache-Control", "public, max-age=0"}},
	"shorter":  {headers: []string{"Cache-Control", "s-maxage=1, max-age=60"}, mayBeShared: true},
	"strict":   {headers: []string{"Cache-Control", "max-age=60, must-revalidate"}, mayBeShared: true},
	"expires":  {headers: []string{"Expires", "0"}},
	"pragma":   {headers: []string{"Pragma", "no-cache"}},
	"tenant":   {headers: []string{"Vary", "Accept-Encoding, X-Tenant"}},
	"any":      {headers: []string{"Vary", "*"}},
	"part":     {status: http.StatusPartialContent, headers: []string{"Content-Range", "bytes 0-LAST/999999"}},
	"missing":  {status: http.StatusNotFound},
	"denied":   {status: http.StatusUnauthorized},
	"broken":   {status: http.StatusInternalServerError},
	"file":     {headers: []string{"X-Accel-Redirect", "/elsewhere"}},
	"stream":   {headers: []string{"Content-Type", "text/event-stream"}},
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	run := s.runs.Add(1)
	if run%4 == 0 {
		time.Sleep(3 * time.Millisecond) // others ask meanwhile
	}
	body, _ := io.ReadAll(r.Body)
	if r.URL.Query().Get("kind") == "cut" {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("a part"))
		panic(http.ErrAbortHandler)
	}
	text, _ := json.Marshal(seen{run, r.Method, r.Host, r.RequestURI, r.Header, string(body[:min(len(body), 99)])})
	answer := shopAnswers[r.URL.Query().Get("kind")]
	for i := 0; i < len(answer.headers); i += 2 {
		w.Header().Set(answer.headers[i], strings.NewReplacer("RUN", fmt.Sprint(run), "LAST", fmt.Sprint(len(text)-1)).Replace(answer.headers[i+1]))
	}
	w.Header().Set("X-Seen", string(text))
	if answer.status != 0 {
		w.WriteHeader(answer.status)
	}
	_, _ = w.Write(text)
}

// shopRules has a rule whose keys are hot when the test says so.
const shopRules = `
  - {id: q, match: {route: "/search"}, by: [q], hot: 1000000/s, on_hot: {cache: 1s}}
  - {id: total, match: {route: "/search"}, limit: {rate: 1/1h, burst: BURST}}
`

// openShop starts a gateway with the texts replaced in front of a shop, with a limit of so many
// requests.
func openShop(t testing.TB, name string, burst int, texts map[string]string) *shop {
	t.Helper()
	around := gatewaytest.New(t, strings.ReplaceAll(shopRules, "BURST", fmt.Sprint(burst)), gateway.Config{})
	s := &shop{Fixture: around, client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
	t.Cleanup(s.client.CloseIdleConnections)
	l := gatewaytest.Listen(t, "127.0.0.1:0")
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: s}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-done })
	serveFixture(t, gatewaytest.Listen(t, "127.0.0.1:0"), around, gateway.DoorConfig{})
	all := map[string]string{application0: l.Addr().String(), door0: s.Addr}
	maps.Copy(all, texts)
	s.gateway = cachingGateways[name](t, all)
	return s
}

func (s *shop) heat(value string) {
	var hot []published.Hot
	for _, method := range []string{"GET", "HEAD", "POST"} {
		hot = append(hot, published.Hot{Key: rules.Key{Rule: "q", Text: method + " /search?q=" + value}, Until: time.Now().Add(time.Hour)})
	}
	s.Guard.Guard().HotSet().Update(value, published.Change{Hot: hot})
}

// get sends a request with these headers (name, value), and returns what the application saw. The body
// of a POST is the first value.
func (s *shop) get(method, target string, headers ...string) (r reply, saw seen) {
	var content io.Reader
	if method == http.MethodPost {
		content = strings.NewReader(headers[1])
	}
	in, err := http.NewRequest(method, "http://"+s.gateway.Addr+target, content)
	if err != nil {
		return reply{body: err.Error()}, saw
	}
	in.Header["Accept-Encoding"] = []string{"identity"}
	for i := 0; i < len(headers); i += 2 {
		if in.Header.Add(headers[i], headers[i+1]); headers[i] == "Host" {
			in.Host = headers[i+1]
		}
	}
	out, err := s.client.Do(in)
	if err != nil {
		return reply{body: err.Error()}, saw
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return reply{body: err.Error()}, saw
	}
	_ = json.Unmarshal([]byte(out.Header.Get("X-Seen")), &saw)
	return reply{out.StatusCode, out.Header, string(body)}, saw
}

// violations collects what is wrong.
type violations struct {
	mu   sync.Mutex
	list []string
}

func (v *violations) add(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.list = append(v.list, fmt.Sprintf(format, args...))
}

// many reports whether there are enough to stop.
func (v *violations) many() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.list) >= 20
}

// Two users ask for the same pages of a hot key at the same time, with headers, methods and pages
// that may not be shared. An answer that is for others was made from a request with nothing of a
// user. Each other answer was made for the request that it answers.
func checkUsers(t testing.TB, name string, texts map[string]string) []string {
	s := openShop(t, name, 100_000, texts)
	s.heat("hot")
	seed := rand.Uint64()
	var v violations
	var users sync.WaitGroup
	var shared atomic.Int64
	runs := new(sync.Map) // the request by the run that was made for it alone
	for i, user := range []string{"ann", "bob", "ann", "bob"} {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		users.Go(func() {
			for n := range 150 {
				if v.many() {
					return
				}
				if s.ask(rnd, user, fmt.Sprintf("%s-%d-%d", user, i, n), runs, &v) {
					shared.Add(1)
				}
			}
		})
	}
	users.Wait()
	for range 2 { // an answer that is cut off is not kept
		before := s.runs.Load()
		if r, _ := s.get(http.MethodGet, "/search?q=hot&kind=cut"); s.runs.Load() == before {
			v.add("a part of an answer was kept: %+v", r)
		}
	}
	if shared.Load() < 30 {
		v.add("only %d of 600 answers were shared", shared.Load())
	}
	if len(v.list) > 0 {
		v.add("seed %d", seed)
	}
	return v.list
}

// ask sends one generated request of a user and judges the answer. It reports whether it was shared.
func (s *shop) ask(rnd *rand.Rand, user, id string, runs *sync.Map, v *violations) (shared bool) {
	kinds := slices.Sorted(maps.Keys(shopAnswers))
	kind := kinds[rnd.IntN(len(kinds))]
	if rnd.IntN(2) == 0 || kind == "file" {
		kind = "plain"
	}
	target := fmt.Sprintf("/search?q=hot&kind=%s&page=%d", kind, rnd.IntN(2))
	host := []string{"shop.example", user + ".example"}[rnd.IntN(2)]
	headers := []string{"X-Id", id, "Host", host}
	method := []string{"GET", "GET", "GET", "GET", "GET", "GET", "HEAD", "POST"}[rnd.IntN(8)]
	mayNot := method == http.MethodPost // because of the request
	for _, h := range []struct {
		name, value string
		alone       bool
	}{
		{"Cookie", "session=" + id, true},
		{"Authorization", "Bearer " + id, true},
		{"Proxy-Authorization", "Basic " + id, true},
		{"Range", "bytes=0-99999", true},
		{"If-Match", `"` + id + `"`, true},
		{"If-Unmodified-Since", "Mon, 01 Jan 2024 00:00:00 GMT", true},
		{"Cache-Control", "no-cache", true},
		{"Pragma", "no-cache", true},
		{"X-Api-Key", id, false},
		{"X-Tenant", id, false},
		{"X-Forwarded-Host", id + ".example", false},
		{"X-Forwarded-For", "192.0.2.1", false},
		{"X-Original-Url", "/" + id, false},
		{"User-Agent", id, false},
		{"Accept-Language", id, false},
		{"If-None-Match", `"` + id + `"`, false},
		{"X-Hotparam-Hot", "1", false},
		{"X-Accel-Expires", "3600", false},
	} {
		if h.name == "Range" && method == http.MethodHead {
			continue // Varnish answers 416: an answer without a body has no such part
		}
		if rnd.IntN(12) == 0 {
			headers = append(headers, h.name, h.value)
			mayNot = mayNot || h.alone
		}
	}
	r, saw := s.get(method, target, headers...)
	if kind == "part" && r.status == http.StatusServiceUnavailable {
		return false // Varnish refuses a part that no one asked for
	}
	where := fmt.Sprintf("%s %s %q", method, target, headers)
	other := map[string]string{"ann": "bob-", "bob": "ann-"}[user]
	if text := fmt.Sprint(r); strings.Contains(text, other) {
		v.add("%s: something of the other user: %s", where, text)
	}
	status := shopAnswers[kind].status
	if status == 0 {
		status = http.StatusOK
	}
	if r.status == http.StatusPartialContent && slices.Contains(headers, "Range") {
		status = r.status // which may be the gateway's own doing
	}
	if r.status != status || saw.URI != target || saw.Host != host || method == http.MethodGet && r.body != r.header.Get("X-Seen") {
		v.add("%s: the answer is %+v", where, r)
		return false
	}
	want := http.Header{}
	for i := 0; i < len(shopAnswers[kind].headers); i += 2 {
		want.Set(shopAnswers[kind].headers[i], strings.ReplaceAll(shopAnswers[kind].headers[i+1], "RUN", fmt.Sprint(saw.Run)))
	}
	if delete(want, "Content-Range"); kind == "pragma" {
		want.Set("Cache-Control", "no-cache") // by Go's client
	}
	for name := range want {
		if !slices.Equal(r.header[name], want[name]) {
			v.add("%s: %s: %q, want %q", where, name, r.header[name], want[name])
		}
	}
	if method == http.MethodPost && saw.Body != id {
		v.add("%s: the application saw the body %q", where, saw.Body)
	}
	answer := shopAnswers[kind]
	if !mayNot && (answer.shared || answer.mayBeShared && len(saw.Header) == 0) {
		if len(saw.Header) != 0 {
			v.add("%s: an answer for others was made from a request with %v", where, saw.Header)
		}
		return true
	}
	if earlier, loaded := runs.LoadOrStore(saw.Run, where); saw.Header.Get("X-Id") != id || loaded {
		v.add("%s: its answer was made for another: %+v, as for %v", where, saw, earlier)
	}
	for i := 0; i < len(headers); i += 2 {
		if name := headers[i]; name != "Host" && name != "X-Hotparam-Hot" && !strings.Contains(saw.Header.Get(name), headers[i+1]) && !strings.HasPrefix(name, "Proxy-") {
			v.add("%s: the application did not see %s", where, name)
		}
	}
	return false
}

// A hot key's requests take tokens only where the application runs, and are counted once each.
func checkLimit(t testing.TB, name string, texts map[string]string) []string {
	const burst = 3
	s := openShop(t, name, burst, texts)
	s.heat("hot")
	var v violations
	sent := int64(0)
	want := func(what string, status int, target string, headers ...string) {
		sent++
		if r, _ := s.get(http.MethodGet, target, headers...); r.status != status {
			v.add("%s: %+v, want %d", what, r, status)
		}
	}
	for n := range burst - 1 {
		want("a page's first request", http.StatusOK, fmt.Sprintf("/search?q=hot&kind=plain&page=%d", n))
	}
	s.Await("the page is refreshed", func() bool {
		want("a page in the cache, or its refresh", http.StatusOK, "/search?q=hot&kind=plain&page=0")
		return s.runs.Load() == burst || len(v.list) > 0
	})
	if sent < 3*burst {
		v.add("the application ran %d times for %d requests", s.runs.Load(), sent)
	}
	for range 5 {
		s.get(http.MethodGet, "/search?q=hot&kind=session", "X-A", "b")
		sent++
	}
	runs := s.runs.Load()
	want("a page beyond the limit", http.StatusTooManyRequests, "/search?q=hot&kind=plain&page=other")
	want("a user's own page beyond the limit", http.StatusTooManyRequests, "/search?q=hot&kind=plain&page=0", "Cookie", "a=b")
	if runs > burst || s.runs.Load() != runs {
		v.add("the application ran %d times, the limit is %d", s.runs.Load(), burst)
	}
	if counted := s.Guard.Counted(t); counted[hotKeyText] != sent {
		v.add("counted %v, sent %d", counted[hotKeyText], sent)
	}
	return v.list
}

// hotKeyText is the hot key as it is counted.
const hotKeyText = "GET%20/search?q=hot"

// Requests of a key that is not hot are as without a cache, whatever headers a client sends.
func checkCold(t testing.TB, name string, texts map[string]string) []string {
	const burst = 20
	s := openShop(t, name, burst, texts)
	s.heat("hot")
	var v violations
	for n := range burst + 5 {
		r, saw := s.get(http.MethodGet, "/search?q=cold&kind=lasting", "X-Hotparam-Hot", "1", "X-Hotparam-Step", "count", "X-Hotparam-Way", "cache", "X-Id", fmt.Sprint(n))
		switch {
		case n >= burst && r.status != http.StatusTooManyRequests:
			v.add("request %d: %+v, want 429", n, r)
		case n < burst && (r.status != http.StatusOK || saw.Header.Get("X-Id") != fmt.Sprint(n)):
			v.add("request %d: %+v, want its own answer", n, r)
		case n < burst && (saw.Header.Get("X-Hotparam-Hot") != "" || r.header.Get("RateLimit") == "" || r.header.Get("Cache-Status") != ""):
			v.add("request %d: %+v", n, r)
		}
	}
	return v.list
}

// Without hotparam requests pass, and nothing is cached.
func checkAway(t testing.TB, name string, texts map[string]string) []string {
	s := openShop(t, name, 1, texts)
	s.heat("hot")
	s.Stop()
	var v violations
	for n := range 5 {
		method := []string{http.MethodGet, http.MethodPost}[n%2]
		if r, saw := s.get(method, "/search?q=hot&kind=lasting", "X-Id", fmt.Sprint(n)); r.status != http.StatusOK || saw.Header.Get("X-Id") != fmt.Sprint(n) {
			v.add("request %d: %+v, want its own answer", n, r)
		}
	}
	return v.list
}

// The application's X-Accel-Redirect means a location of the client's server, hot or not. Where it
// leads has been decided for one user.
func checkRedirects(t testing.TB, name string, texts map[string]string) []string {
	if name == "varnish" {
		return nil // the header is not for Varnish
	}
	s := openShop(t, name, 1000, texts)
	s.heat("hot")
	var v violations
	for n, headers := range [][]string{nil, {"Cookie", "a=b"}, {"X-Api-Key", "c"}} {
		for _, value := range []string{"hot", "cold", "hot"} {
			id := fmt.Sprint(n, value)
			r, saw := s.get(http.MethodGet, "/search?kind=file&q="+value, append(headers, "X-Id", id)...)
			if saw.URI != "/elsewhere" || saw.Header.Get("X-Id") != id {
				v.add("%q, %s: %+v", headers, value, r)
			}
		}
	}
	return v.list
}

// cacheFaults are configurations with a fault, by the check that finds it.
var cacheFaults = []struct {
	what, gateway, old, with string
	check                    func(testing.TB, string, map[string]string) []string
}{
	{"cookies are shared", "nginx", " $http_cookie$http_authorization", " $http_authorization", checkUsers},
	{"authorized requests are shared", "nginx", "$http_cookie$http_authorization", "$http_cookie", checkUsers},
	{"parts are shared", "nginx", "$http_range$http_upgrade", "$http_upgrade", checkUsers},
	{"a client's no-cache is ignored", "nginx", "$http_cache_control$http_pragma", "$http_pragma", checkUsers},
	{"the application sees a user's headers", "nginx", "proxy_pass_request_headers off;", "", checkUsers},
	{"sessions are shared", "nginx", "$upstream_http_set_cookie", "", checkUsers},
	{"private answers are shared", "nginx", "$hotparam_private$hotparam_varies", "$hotparam_varies", checkUsers},
	{"answers that vary are shared", "nginx", "$hotparam_private$hotparam_varies", "$hotparam_private", checkUsers},
	{"failures are shared", "nginx", `"$upstream_status $upstream_http_set`, `"200 $upstream_http_set`, checkUsers},
	{"the key lacks the host", "nginx", `$scheme $http_host $request_uri`, `$scheme $request_uri`, checkUsers},
	{"the key lacks the query", "nginx", `$request_uri $uri$is_args$args`, `$uri`, checkUsers},
	{"the session of the shared answer stays", "nginx", "proxy_hide_header Set-Cookie;", "", checkUsers},
	{"requests are counted again behind the cache", "nginx", "/nginx/limit", "/nginx", checkLimit},
	{"tokens are taken in front of the cache", "nginx", "/nginx/count", "/nginx", checkLimit},
	{"no tokens are taken behind the cache", "nginx", "/nginx/limit", "/nginx/count", checkLimit},
	{"what is not shared evades the limit", "nginx", `"~^1 "  hotparam_limited;`, `"~^1 "  app;`, checkLimit},
	{"a client says what is hot", "nginx", `"$hotparam_hot $hotparam_sharable`, `"$http_x_hotparam_hot $hotparam_sharable`, checkCold},
	{"what is not hot is cached", "nginx", `"$hotparam_hot $hotparam_sharable`, `"1 $hotparam_sharable`, checkCold},
	{"what follows a user's answer is shared", "nginx", "set $hotparam_alone 1;", `set $hotparam_alone "";`, checkRedirects},
	{"hotparam is needed", "nginx", "return 204;", "return 500;", checkAway},

	{"cookies are shared", "varnish", "&& !req.http.Cookie ", "", checkUsers},
	{"a client's no-cache is ignored", "varnish", "&& !req.http.Cache-Control ", "", checkUsers},
	{"the application sees a user's headers", "varnish", "(?!host:)", "(?!host:|x-)", checkUsers},
	{"sessions are shared", "varnish", "|| beresp.http.Set-Cookie ", "", checkUsers},
	{"private answers are shared", "varnish", "no-store|no-cache|private", "no-store|no-cache", checkUsers},
	{"answers that vary are shared", "varnish", "accept-encoding", "accept-encoding.*", checkUsers},
	{"failures are shared", "varnish", "beresp.status != 200", "beresp.status == 206", checkUsers},
	{"the key lacks the host", "varnish", "hash_data(req.http.Host);", "", checkUsers},
	{"the body of a request is lost", "varnish", "cache_req_body(10MB)", "cache_req_body(4B)", checkUsers},
	{"no step is asked", "varnish", `"/original/" + bereq.http.X-Hotparam-Step`, `"/original"`, checkLimit},
	{"what is not shared evades the limit", "varnish", "} else {\n      set req.http.X-Hotparam-Step = \"limit\";", "} else {\n      unset req.http.X-Hotparam-Step;", checkLimit},
	{"hotparam is needed", "varnish", "(bereq.http.X-Hotparam-Step) {   # unavailable", "(bereq.http.X-None) { # unavailable", checkAway},
	{"a client chooses the cache", "varnish", "unset req.http.X-Hotparam-Way;\n    unset req.http.X-Hotparam-Hot;", "", checkCold},
	{"what is not hot is cached", "varnish", `(resp.http.X-Hotparam-Hot != "1")`, "(resp.status != 200)", checkCold},
}

func TestRealCacheOfHotKeys(t *testing.T) {
	for name := range cachingGateways {
		t.Run(name, func(t *testing.T) {
			for what, check := range map[string]func(testing.TB, string, map[string]string) []string{"users": checkUsers, "limit": checkLimit, "cold": checkCold, "away": checkAway, "redirects": checkRedirects} {
				t.Run(what, func(t *testing.T) {
					t.Parallel()
					if bad := check(t, name, nil); len(bad) > 0 {
						t.Errorf("%d violations:\n%s", len(bad), strings.Join(bad[:min(len(bad), 10)], "\n"))
					}
				})
			}
		})
	}
}

// The checks find the faults of configurations.
func TestRealCacheFaults(t *testing.T) {
	for _, fault := range cacheFaults {
		t.Run(fault.gateway+"/"+fault.what, func(t *testing.T) {
			t.Parallel()
			bad := fault.check(t, fault.gateway, map[string]string{fault.old: fault.with})
			if len(bad) == 0 {
				t.Error("not found")
			}
			t.Logf("%d violations", len(bad))
		})
	}
}
