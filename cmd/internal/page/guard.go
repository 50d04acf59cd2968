package page

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// GuardConfig configures a [AccessGuard].
type GuardConfig struct {
	// Token is the secret that readers must know. If it is empty, the guard is open to everyone
	// who reaches a loopback address, and closed on any other address.
	Token string
	// Tokens are secrets of people, each with a name, and Certificates reports whether the server
	// accepts only clients with a certificate. Either makes the guard one of a page that acts.
	Tokens       []NamedToken
	Certificates bool
	// Listener is the address that the server listens on.
	Listener net.Addr
	// Hosts are names, without ports, under which clients may address the server, besides
	// localhost and IP addresses.
	Hosts []string
	// Log receives a line when attempts are refused, at most one a minute. A nil Log disables
	// it.
	Log *slog.Logger
}

// AccessGuard decides who may read the page, the API and the other private handlers of their
// server, and who acts. It is safe for concurrent use.
type AccessGuard struct {
	tokens       atomic.Pointer[[]accessToken]
	cookie       string // name of the cookie
	certificates bool   // clients have certificates
	isClosed     bool
	hosts        map[string]bool
	attempts     *attempts
	sameSite     *http.CrossOriginProtection

	hostSetting, tokenHelp string // for messages
}

// accessToken is a secret with its sessions.
type accessToken struct {
	name string            // name of the person, or empty
	sum  [sha256.Size]byte // hashed, so that the comparison takes the same time for every length
	sessions
}

// NewGuard returns a guard. It starts nothing.
func NewGuard(c GuardConfig) *AccessGuard {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &AccessGuard{
		certificates: c.Certificates, hosts: hostSet(c.Hosts), attempts: newAttempts(log), sameSite: http.NewCrossOriginProtection(),
		cookie: sessionCookie, hostSetting: "aggregator.page_hosts", tokenHelp: pageTokenHelp,
	}
	if len(c.Tokens) > 0 || c.Certificates {
		// Browsers send cookies to all ports of a host, so pages that act have another one.
		g.cookie, g.hostSetting, g.tokenHelp = operatorCookie, "--hosts", operatorTokenHelp
	}
	if c.Token != "" {
		c.Tokens = append(c.Tokens, NamedToken{Token: c.Token})
	}
	g.SetTokens(c.Tokens)
	g.isClosed = len(c.Tokens) == 0 && !g.certificates && !IsLoopback(c.Listener)
	return g
}

// SetTokens replaces the tokens, and ends the sessions of those that are gone. A guard that has
// tokens must not lose all of them.
func (g *AccessGuard) SetTokens(named []NamedToken) {
	tokens := make([]accessToken, len(named))
	for i, t := range named {
		tokens[i] = accessToken{t.Name, sha256.Sum256([]byte(t.Token)), newSessions(g.cookie, t.Token)}
	}
	g.tokens.Store(&tokens)
}

// Closed is the answer of a guard that has no token and whose server is not on a loopback
// address.
const Closed = "closed: aggregator.http is not a loopback address, and there is no token. " +
	"Name a file that holds one in aggregator.page_token_file, or a variable in aggregator.page_token_env; " +
	"make one by openssl rand -hex 32. Or set aggregator.http to 127.0.0.1:9125"

// IsClosed reports whether no one may read because a token is missing.
func (g *AccessGuard) IsClosed() bool { return g.isClosed }

// HasToken reports whether readers must know a token.
func (g *AccessGuard) HasToken() bool { return len(*g.tokens.Load()) > 0 }

// Protect returns a handler that passes requests to next if they name this server as the host
// and come from a client that may read. Browsers without the token are redirected to /login;
// other clients get 401. Forms and scripts of other sites get 403.
func (g *AccessGuard) Protect(next http.Handler) http.Handler {
	return g.checkHost(g.sameSite.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		author := ""
		if g.certificates {
			author = subjectOf(r)
		}
		if g.HasToken() {
			token := g.authenticate(w, r)
			if token == nil {
				return
			}
			author = cmp.Or(author, token.name)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), authorKey{}, author)))
	})))
}

// authenticate returns the token that a request has, or whose session it has. Otherwise it answers
// the request and returns nil.
func (g *AccessGuard) authenticate(w http.ResponseWriter, r *http.Request) *accessToken {
	if bearer, found := bearerOf(r); found {
		return g.try(w, r, bearer)
	}
	if token := g.session(r, time.Now()); token != nil {
		return token
	}
	if wantsHTML(r) {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	} else {
		unauthorized(w, r, "a token is needed: send it as Authorization: Bearer TOKEN, or log in at /login")
	}
	return nil
}

// checkHost returns a handler with the checks that precede all others, including the login.
func (g *AccessGuard) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secureHeaders(w.Header())
		switch {
		case g.isClosed:
			fail(w, r, http.StatusForbidden, Closed)
		case !g.allowsHost(r.Host):
			fail(w, r, http.StatusMisdirectedRequest, fmt.Sprintf(
				"%.100q is no name of this server: add it to %s if it should be", hostOf(r.Host), g.hostSetting))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// try returns the token that a client sent. If it is wrong, or too many wrong ones were sent, it
// answers the request and returns nil.
func (g *AccessGuard) try(w http.ResponseWriter, r *http.Request, sent string) *accessToken {
	wait, token := g.attempt(r, sent)
	switch {
	case wait > 0:
		tooMany(w, wait)
		fail(w, r, http.StatusTooManyRequests, tooManyWords(wait))
	case token == nil:
		unauthorized(w, r, "the token is wrong")
	}
	return token
}

// attempt returns the token that was sent, or nil if it is wrong. If the sender has sent too many
// wrong ones, it returns how long the sender has to wait instead.
func (g *AccessGuard) attempt(r *http.Request, sent string) (wait time.Duration, token *accessToken) {
	now := time.Now()
	if wait := g.attempts.wait(r.RemoteAddr, now); wait > 0 {
		return wait, nil
	}
	sum := sha256.Sum256([]byte(sent))
	tokens := *g.tokens.Load()
	for i := range tokens { // all of them, so that the time does not depend on which is right
		if subtle.ConstantTimeCompare(sum[:], tokens[i].sum[:]) == 1 {
			token = &tokens[i]
		}
	}
	if token == nil {
		g.attempts.recordFailure(r.RemoteAddr, now)
	}
	return 0, token
}

func tooMany(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", fmt.Sprint(int(wait/time.Second)+1))
}

func tooManyWords(wait time.Duration) string {
	return fmt.Sprintf("Too many wrong tokens from this address: try again in %d s.", int(wait/time.Second)+1)
}

func unauthorized(w http.ResponseWriter, r *http.Request, words string) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="hotparam"`)
	fail(w, r, http.StatusUnauthorized, words)
}

// bearerOf returns the token of the Authorization header.
func bearerOf(r *http.Request) (token string, found bool) {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), found && strings.EqualFold(scheme, "Bearer")
}

func wantsHTML(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && !isAPI(r) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// fail answers with an error: JSON for the API, a line of text elsewhere.
func fail(w http.ResponseWriter, r *http.Request, status int, words string) {
	if !isAPI(r) {
		http.Error(w, words, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": words}) // the client has gone
}

// secureHeaders sets the headers of every answer. With trusted types a browser refuses to turn
// any text into HTML, whatever mistakes a script has.
func secureHeaders(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// allowsHost reports whether a client may address the server by this name. A web site can point
// its own name here, and a browser would then let its scripts read answers (DNS rebinding). So
// names must be known. An IP address cannot be such a name.
func (g *AccessGuard) allowsHost(hostport string) bool {
	host := strings.ToLower(strings.TrimSuffix(hostOf(hostport), "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil || g.hosts[host]
}

// hostOf returns a Host header without its port and brackets.
func hostOf(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.Trim(host, "[]")
}

func hostSet(names []string) map[string]bool {
	hosts := make(map[string]bool, len(names))
	for _, name := range names {
		hosts[strings.ToLower(strings.TrimSuffix(name, "."))] = true
	}
	delete(hosts, "") // from an address without a host
	return hosts
}

// IsLoopback reports whether an address can only be reached from this machine.
func IsLoopback(a net.Addr) bool {
	if a == nil {
		return false
	}
	if strings.HasPrefix(a.Network(), "unix") {
		return true // the permissions of its directory decide who may connect
	}
	ip := net.ParseIP(cmp.Or(hostOf(a.String()), "0.0.0.0"))
	return ip != nil && ip.IsLoopback()
}
