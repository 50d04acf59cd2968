package page

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const testToken = "0123456789abcdef0123456789abcdef"

var (
	loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9125}
	anywhere = &net.TCPAddr{IP: net.IPv6unspecified, Port: 9125}
)

// ask sends a request to a guard, its login, or a handler that it protects.
func ask(g *AccessGuard, r *http.Request) *http.Response {
	mux := http.NewServeMux()
	mux.Handle("/", g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("inside")) })))
	mux.Handle("/login", g.Login())
	mux.Handle("/logout", g.Login())
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w.Result()
}

func request(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:9125"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func bodyOf(t *testing.T, r *http.Response) string {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
	return body
}

// A session ends with its token, and others continue.
func TestSetTokens(t *testing.T) {
	g := NewGuard(GuardConfig{Tokens: people, Listener: loopback})
	status := func(token string) int {
		return ask(g, request(http.MethodGet, "/api/v1/hot", "", "Cookie", sessionOf(operatorCookie, token))).StatusCode
	}
	for _, p := range people {
		if got := status(p.Token); got != http.StatusOK {
			t.Errorf("%s: %d", p.Name, got)
		}
	}
	g.SetTokens(people[1:])
	if gone, stays := status(people[0].Token), status(people[1].Token); gone != http.StatusUnauthorized || stays != http.StatusOK {
		t.Errorf("the one that is gone gets %d, and the other %d", gone, stays)
	}
}

func TestGuardByListener(t *testing.T) {
	for name, test := range map[string]struct {
		listener net.Addr
		token    string
		status   int
	}{
		"loopback":          {loopback, "", http.StatusOK},
		"loopback of IPv6":  {&net.TCPAddr{IP: net.IPv6loopback, Port: 1}, "", http.StatusOK},
		"all addresses":     {anywhere, "", http.StatusForbidden},
		"another address":   {&net.TCPAddr{IP: net.IPv4(10, 0, 0, 5), Port: 1}, "", http.StatusForbidden},
		"unknown":           {nil, "", http.StatusForbidden},
		"loopback, a token": {loopback, testToken, http.StatusUnauthorized},
		"all, a token":      {anywhere, testToken, http.StatusUnauthorized},
	} {
		g := NewGuard(GuardConfig{Token: test.token, Listener: test.listener})
		for _, path := range []string{"/", "/api/v1/hot"} {
			resp := ask(g, request(http.MethodGet, path, ""))
			if resp.StatusCode != test.status {
				t.Errorf("%s: %s: %d, want %d", name, path, resp.StatusCode, test.status)
			}
			body := bodyOf(t, resp)
			if test.status == http.StatusForbidden && !strings.Contains(body, "aggregator.page_token_file") {
				t.Errorf("%s: %q, want what to set", name, body)
			}
			if strings.HasPrefix(path, "/api/") && test.status != http.StatusOK && !strings.HasPrefix(body, `{"error":"`) {
				t.Errorf("%s: %s: %q, want JSON", name, path, body)
			}
		}
	}
}

func TestGuardChecksTheName(t *testing.T) {
	g := NewGuard(GuardConfig{Listener: loopback, Hosts: []string{"", "hotparam.example", "Agg-1."}})
	for host, right := range map[string]bool{
		"localhost": true, "localhost:9125": true, "LOCALHOST.": true, "agg.localhost:1": true, "127.0.0.1": true, "[::1]:9125": true, "10.0.0.5:9125": true,
		"hotparam.example": true, "HOTPARAM.example:443": true, "agg-1": true,
		"": false, "evil.example": false, "evil.example:9125": false, "localhost.evil.example": false, "127.0.0.1.evil.example": false, "hotparam.example.evil": false, "[": false,
	} {
		for _, path := range []string{"/", "/login", "/api/v1/hot"} {
			r := request(http.MethodGet, path, "")
			r.Host = host
			resp := ask(g, r)
			if got := resp.StatusCode != http.StatusMisdirectedRequest; got != right {
				t.Errorf("%q %s: %d", host, path, resp.StatusCode)
			}
			if body := bodyOf(t, resp); !right && !strings.Contains(body, "aggregator.page_hosts") {
				t.Errorf("%q: %q, want what to set", host, body)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	for _, g := range []*AccessGuard{NewGuard(GuardConfig{Listener: loopback}), NewGuard(GuardConfig{Listener: anywhere}), NewGuard(GuardConfig{Listener: anywhere, Token: testToken})} {
		for _, path := range []string{"/", "/login", "/api/v1/hot"} {
			h := ask(g, request(http.MethodGet, path, "")).Header
			policy := h.Get("Content-Security-Policy")
			if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "trusted-types 'none'") ||
				h.Get("X-Frame-Options") != "DENY" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: %v", path, h)
			}
		}
	}
}

func TestBearer(t *testing.T) {
	g := NewGuard(GuardConfig{Token: testToken, Listener: anywhere})
	for header, status := range map[string]int{
		"Bearer " + testToken: http.StatusOK, "bearer  " + testToken: http.StatusOK, "Bearer " + testToken[1:]: http.StatusUnauthorized, "Bearer ": http.StatusUnauthorized, //nolint:gocritic // there is nothing behind the space
		"Basic " + testToken: http.StatusUnauthorized, testToken: http.StatusUnauthorized,
	} {
		resp := ask(g, request(http.MethodGet, "/api/v1/hot", "", "Authorization", header))
		if resp.StatusCode != status {
			t.Errorf("%q: %d, want %d", header, resp.StatusCode, status)
		}
		if status == http.StatusUnauthorized && !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%q: no WWW-Authenticate", header)
		}
	}
	if resp := ask(g, request(http.MethodGet, "/api/v1/hot?token="+testToken+"&access_token="+testToken, "")); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a token in the URL: %d", resp.StatusCode)
	}
}

func TestLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(GuardConfig{Token: testToken, Listener: anywhere})
		if resp := ask(g, request(http.MethodGet, "/", "", "Accept", "text/html")); resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/login" {
			t.Fatalf("a browser without a session: %d %q", resp.StatusCode, resp.Header.Get("Location"))
		}
		form := func(token string, headers ...string) *http.Response {
			return ask(g, request(http.MethodPost, "/login", url.Values{"token": {token}}.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...))
		}
		if resp := form("wrong"); resp.StatusCode != http.StatusUnauthorized || len(resp.Cookies()) != 0 || !strings.Contains(bodyOf(t, resp), "The token is wrong.") {
			t.Errorf("a wrong token: %d, %v", resp.StatusCode, resp.Cookies())
		}
		if resp := ask(g, request(http.MethodPost, "/login?token="+testToken, "", "Content-Type", "application/x-www-form-urlencoded")); resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("a token in the URL: %d", resp.StatusCode)
		}
		if resp := form(testToken, "Sec-Fetch-Site", "cross-site"); resp.StatusCode != http.StatusForbidden {
			t.Errorf("a form of another site: %d", resp.StatusCode)
		}
		if resp := form(strings.Repeat("x", 2*maxForm)); resp.StatusCode != http.StatusBadRequest {
			t.Errorf("a huge form: %d", resp.StatusCode)
		}
		resp := form(testToken)
		if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/" || len(resp.Cookies()) != 1 {
			t.Fatalf("the token: %d %q %v", resp.StatusCode, resp.Header.Get("Location"), resp.Cookies())
		}
		cookie := resp.Cookies()[0]
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Secure || strings.Contains(cookie.Value, testToken) || cookie.Path != "/" {
			t.Errorf("cookie: %v", cookie)
		}
		if c := form(testToken, "X-Forwarded-Proto", "https").Cookies()[0]; !c.Secure {
			t.Errorf("behind TLS: %v", c)
		}
		with := func(value string) int {
			return ask(g, request(http.MethodGet, "/api/v1/hot", "", "Cookie", sessionCookie+"="+value)).StatusCode
		}
		if with(cookie.Value) != http.StatusOK {
			t.Error("the session does not open")
		}
		end, mac, _ := strings.Cut(cookie.Value, ".")
		for _, forged := range []string{"", end, end + ".", "9" + end + "." + mac, end + "." + mac[1:] + "0", "." + mac, testToken} {
			if with(forged) != http.StatusUnauthorized {
				t.Errorf("%q opens", forged)
			}
		}
		if other := NewGuard(GuardConfig{Token: testToken + "2", Listener: anywhere}); ask(other, request(http.MethodGet, "/api/v1/hot", "", "Cookie", sessionCookie+"="+cookie.Value)).StatusCode != http.StatusUnauthorized {
			t.Error("the session outlives its token")
		}
		if replica := NewGuard(GuardConfig{Token: testToken, Listener: anywhere}); ask(replica, request(http.MethodGet, "/api/v1/hot", "", "Cookie", sessionCookie+"="+cookie.Value)).StatusCode != http.StatusOK {
			t.Error("a replica does not know the session")
		}
		time.Sleep(sessionLife + time.Second)
		if with(cookie.Value) != http.StatusUnauthorized {
			t.Error("the session does not end")
		}
		if resp := ask(g, request(http.MethodPost, "/logout", "")); resp.StatusCode != http.StatusSeeOther || resp.Cookies()[0].MaxAge >= 0 {
			t.Errorf("logout: %d %v", resp.StatusCode, resp.Cookies())
		}
	})
}

func TestWrongTokensAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGuard(GuardConfig{Token: testToken, Listener: anywhere})
		try := func(from, token string) int {
			r := request(http.MethodGet, "/api/v1/hot", "", "Authorization", "Bearer "+token)
			r.RemoteAddr = from
			return ask(g, r).StatusCode
		}
		for range attemptBurst {
			if got := try("192.0.2.7:1234", "wrong"); got != http.StatusUnauthorized {
				t.Fatal(got)
			}
		}
		if got := try("192.0.2.7:9999", testToken); got != http.StatusTooManyRequests {
			t.Errorf("after %d wrong tokens: %d", attemptBurst, got)
		}
		if got := try("192.0.2.8:1", testToken); got != http.StatusOK {
			t.Errorf("another address: %d", got)
		}
		time.Sleep(attemptEvery)
		if got := try("192.0.2.7:1", "wrong"); got != http.StatusUnauthorized {
			t.Errorf("later: %d", got)
		}
		if got := try("192.0.2.7:1", testToken); got != http.StatusTooManyRequests {
			t.Errorf("at once again: %d", got)
		}
		for range attemptBurst { // one client of IPv6 has many addresses
			try("[2001:db8::1]:1", "wrong")
		}
		if got := try("[2001:db8::2]:1", testToken); got != http.StatusTooManyRequests {
			t.Errorf("a neighbour in the /64: %d", got)
		}
		for i := range 3 * maxAddresses {
			try(net.JoinHostPort(net.IPv4(10, 0, byte(i>>8), byte(i)).String(), "1"), "wrong")
		}
		if n := len(g.attempts.free); n > maxAddresses+1 {
			t.Errorf("%d addresses are remembered", n)
		}
	})
}
