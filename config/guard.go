package config

import (
	"slices"
	"strings"
	"time"
)

// Guard holds the settings of the guard as a service, section "guard:" of the file. Settings
// that the file lacks are zero; [Guard.WithDefaults] fills them in.
type Guard struct {
	// HTTP is the address for health and metrics.
	HTTP string
	// Pprof serves profiles of the process at /debug/pprof/, if HTTP is a loopback address.
	Pprof bool
	// RLS, Check and SPOE are the doors of Envoy's rate limit service, of programs and of
	// HAProxy. A door without an address is closed.
	RLS, Check, SPOE Door
	// Auth are the endpoints of the door for gateways that ask over HTTP.
	Auth []AuthEndpoint
	// Paths selects how rules see paths: [PathsClean] or [PathsRaw].
	Paths string
	// TrustCaller takes the caller of a request from the gateway.
	TrustCaller bool
	// TicketAge is the longest time that a request may last whose end another call reports.
	TicketAge time.Duration
	// MaxTickets is the maximum number of such requests, for each door.
	MaxTickets int
}

// AuthEndpoint is a path of the door for gateways that ask over HTTP. Endpoints with the same
// Listen belong to one server, and have the same settings.
type AuthEndpoint struct {
	Door
	// Path and Scheme are both empty if the server has all schemes, each at its own path.
	Path, Scheme string
}

// How rules see paths, the words for [Guard.Paths].
const (
	PathsClean = "clean" // as most applications do
	PathsRaw   = "raw"   // as the gateway passes them
)

// authSchemes are the words for [AuthEndpoint].Scheme, which determines the headers in which a
// gateway passes a request, and the form of the answer.
var authSchemes = []string{"forwarded", "original", "nginx", "envoy"}

// maxTickets bounds guard.max_tickets. A ticket takes some 200 bytes.
const maxTickets = 10_000_000

// settings returns the fields of the section.
func (g *Guard) settings() settings {
	auth := schemaList(new(AuthEndpoint).settings().form())
	return settings{
		{"http", address(&g.HTTP, "127.0.0.1:9126"), "127.0.0.1:9126", "Address for health and metrics"},
		{"pprof", isWord(&g.Pprof, "on", "on", "off"), "off", "Serves profiles at /debug/pprof/ on a loopback address"},
		{"rls", within(&g.RLS, g.RLS.settings(), `for example rls: {listen: "127.0.0.1:9131"}`), "", "Envoy's rate limit service"},
		{"auth", fieldBinding{to: &g.Auth, form: auth, read: g.readAuth, items: g.authSettings}, "", "Gateways that ask over HTTP: nginx, Caddy, Traefik, Envoy, HAProxy"},
		{"check", within(&g.Check, g.Check.tokenSettings(), `for example check: {listen: "127.0.0.1:9133"}`), "", "Programs in any language: POST /v1/check"},
		{"spoe", within(&g.SPOE, g.SPOE.settings(), `for example spoe: {listen: "127.0.0.1:9134"}`), "", "HAProxy's SPOE"},
		{"paths", choice(&g.Paths, PathsClean, PathsRaw), PathsClean, "How rules see paths"},
		{"trust_caller", flag(&g.TrustCaller), "", "Whether the caller is the one that a gateway names"},
		{"ticket_age", span(&g.TicketAge, "1m", time.Second, 24*time.Hour), "1m", "Longest time of a request whose end another call reports"},
		{"max_tickets", number(&g.MaxTickets, "for example 100000", "", maxTickets), "100000", "Most requests whose end another call reports"},
	}
}

func (e *AuthEndpoint) settings() settings {
	return append(e.tokenSettings(), settings{
		{"path", word(&e.Path).shownAs(schemaForm(`^/`)), "", "Path that gateways with the scheme ask at. Default: / and the scheme"},
		{"scheme", choice(&e.Scheme, authSchemes...), "", "Headers in which a gateway passes a request, and the form of the answer"},
	}...)
}

// authSettings returns the settings of each endpoint.
func (g *Guard) authSettings() (all []settings) {
	for i := range g.Auth {
		all = append(all, g.Auth[i].settings())
	}
	return all
}

// WithDefaults returns the settings with defaults in place of zeros.
func (g Guard) WithDefaults() Guard {
	g.settings().setDefaults()
	g.Auth = slices.Clone(g.Auth)
	for i := range g.Auth {
		if e := &g.Auth[i]; e.Scheme != "" && e.Path == "" {
			e.Path = "/" + e.Scheme
		}
	}
	return g
}

// Differs returns the names of the settings that differ between g and other, in the form of the
// section guard of a file: "ticket_age", "rls.listen", "auth[0].path". If the numbers of
// endpoints of auth differ, the name is "auth" alone.
func (g Guard) Differs(other Guard) []string { return g.settings().differ(other.settings(), "") }

func (g *Guard) check(d *decoder, n *fileNode, _ values) {
	if err := g.Agree(); err != nil && len(d.problems) == 0 {
		d.report(n.pos, "see docs/GATEWAYS.md", "%v", err)
	}
}

func (g *Guard) readAuth(d *decoder, n *fileNode, what string) {
	for _, item := range d.list(n, what) {
		var e AuthEndpoint
		v := d.settings(item, what, `for example auth: [{listen: "127.0.0.1:9132", path: /auth, scheme: forwarded}]`, e.settings())
		switch {
		case e.Path != "" && !v.has("scheme"):
			d.reject(item, "one of "+strings.Join(authSchemes, ", "), "guard.auth: path %s has no scheme", quote(e.Path))
		case e.Path != "" && (e.Path[0] != '/' || strings.ContainsAny(e.Path, "?# ")):
			d.reject(v.get("path"), "for example /auth", "guard.auth.path %s: want a path that begins with /", quote(e.Path))
		}
		g.Auth = append(g.Auth, e)
	}
}
