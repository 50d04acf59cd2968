package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/base"
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

// Door is an address at which the guard is asked, with the clients that may ask.
type Door struct {
	Listen string // "host:port" or "unix:PATH"
	// Cert and Key are files with the door's certificate. ClientCA is the file with the
	// authorities that must have signed each client's certificate.
	Cert, Key, ClientCA string
	// TokenFile or TokenEnv names the place of the token that each request must have. RLS
	// and SPOE have none.
	TokenFile, TokenEnv string
	// Allow are the networks that may connect. If it is empty, all may.
	Allow []netip.Prefix
	// Insecure lets every client ask that can connect.
	Insecure bool
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

// minToken is the minimum length of a door's token, in bytes.
const minToken = 16

// maxTickets bounds guard.max_tickets. A ticket takes some 200 bytes.
const maxTickets = 10_000_000

// settings returns the fields of the section.
func (g *Guard) settings() settings {
	auth := schemaList(new(AuthEndpoint).settings().schema())
	return settings{
		{"http", address(&g.HTTP, "127.0.0.1:9126"), "127.0.0.1:9126", "Address for health and metrics"},
		{"pprof", onOff(&g.Pprof), "off", "Serves profiles at /debug/pprof/ on a loopback address"},
		{"rls", within(&g.RLS, g.RLS.settings(), `for example rls: {listen: "127.0.0.1:9131"}`), "", "Envoy's rate limit service"},
		{"auth", value{to: &g.Auth, schema: auth, read: g.readAuth, items: g.authSettings}, "", "Gateways that ask over HTTP: nginx, Caddy, Traefik, Envoy, HAProxy"},
		{"check", within(&g.Check, g.Check.tokenSettings(), `for example check: {listen: "127.0.0.1:9133"}`), "", "Programs in any language: POST /v1/check"},
		{"spoe", within(&g.SPOE, g.SPOE.settings(), `for example spoe: {listen: "127.0.0.1:9134"}`), "", "HAProxy's SPOE"},
		{"paths", choice(&g.Paths, PathsClean, PathsRaw), PathsClean, "How rules see paths"},
		{"trust_caller", flag(&g.TrustCaller), "", "The caller is who a gateway says"},
		{"ticket_age", span(&g.TicketAge, "1m", time.Second, 24*time.Hour), "1m", "How long a request may take whose end another call reports"},
		{"max_tickets", number(&g.MaxTickets, "for example 100000", "", maxTickets), "100000", "How many such requests there may be"},
	}
}

func (d *Door) settings() settings {
	return settings{
		{"listen", written(&d.Listen, `:[0-9]+$|^unix:`, "for example 127.0.0.1:9131 or unix:/run/hotparam/guard.sock", "host:port or unix:PATH", func(s string) bool { return CheckDoorAddress(s) == nil }), "", "host:port or unix:PATH"},
		{"cert", word(&d.Cert), "", "File of the door's certificate, PEM"},
		{"key", word(&d.Key), "", "File of its key, PEM"},
		{"client_ca", word(&d.ClientCA), "", "File of the authorities of clients' certificates, PEM"},
		{"allow", networks(&d.Allow), "", "Networks that may connect"},
		{"insecure", flag(&d.Insecure), "", "Whoever can connect may ask"},
	}
}

// tokenSettings returns the settings of a door whose requests may have a token.
func (d *Door) tokenSettings() settings {
	return append(d.settings(), settings{
		{"token_file", word(&d.TokenFile), "", "File with the token that each request has to have"},
		{"token_env", variable(&d.TokenEnv), "", "Variable with the token"},
	}...)
}

func (e *AuthEndpoint) settings() settings {
	return append(e.tokenSettings(), settings{
		{"path", word(&e.Path).shownAs(schemaForm(`^/`)), "", "Where gateways with the scheme ask. Default: / and the scheme"},
		{"scheme", choice(&e.Scheme, authSchemes...), "", "In which headers a gateway passes a request, and how it is answered"},
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

// Token reads the token that requests must have. It returns "" if the file names none.
func (d Door) Token() (string, error) {
	token, err := base.ReadSecret(d.TokenFile, d.TokenEnv)
	if err != nil {
		return "", err
	}
	if token != "" && len(token) < minToken {
		return "", fmt.Errorf("%s has %d bytes, want %d at least; make a token by openssl rand -hex 32", cmp.Or(d.TokenFile, d.TokenEnv), len(token), minToken)
	}
	return token, nil
}

func (d *decoder) guard(n *node) (g Guard) {
	d.settings(n, "guard", `for example guard: {rls: {listen: "127.0.0.1:9131"}}`, g.settings())
	if err := g.Agree(); n != nil && err != nil && len(d.problems) == 0 {
		d.report(n.pos, "see docs/GATEWAYS.md", "%v", err)
	}
	return g
}

func (g *Guard) readAuth(d *decoder, n *node, what string) {
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

// CheckDoorAddress returns an error if s cannot be the address of a door.
func CheckDoorAddress(s string) error {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return errors.New("unix: wants a path behind it")
		}
		return nil
	}
	if !isHostPort(s) {
		return errors.New("want host:port or unix:PATH")
	}
	return nil
}

// isLocal reports whether the address can be reached from this machine only.
func isLocal(address string) bool {
	if strings.HasPrefix(address, "unix:") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}

// Agree returns an error if settings contradict each other, or if a door is open to everyone. A
// file that was read without problems has no such settings; flags and variables may add some.
func (g Guard) Agree() error {
	g = g.WithDefaults()
	at := make(map[string]string) // names of doors, by address
	at[g.HTTP] = "guard.http"
	doors := []struct {
		name string
		Door
	}{{"guard.rls", g.RLS}, {"guard.check", g.Check}, {"guard.spoe", g.SPOE}}
	servers := make(map[string]Door)
	endpoints := make(map[string]bool)
	for _, e := range g.Auth {
		if first, found := servers[e.Listen]; !found {
			servers[e.Listen] = e.Door
			doors = append(doors, struct {
				name string
				Door
			}{"guard.auth", e.Door})
		} else if !first.equal(e.Door) {
			return fmt.Errorf("guard.auth: two endpoints share %s and differ in who may ask", e.Listen)
		}
		paths := []string{e.Path}
		if e.Scheme == "" {
			paths = nil
			for _, scheme := range authSchemes {
				paths = append(paths, "/"+scheme)
			}
		}
		for _, path := range paths {
			endpoint := e.Listen + path
			if endpoints[endpoint] {
				return fmt.Errorf("guard.auth: path %s is there twice on %s: each has one scheme", path, cmp.Or(e.Listen, "one address"))
			}
			endpoints[endpoint] = true
		}
	}
	for _, d := range doors {
		if err := d.agree(); err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		if d.Listen == "" || strings.HasSuffix(d.Listen, ":0") {
			continue
		}
		if other, taken := at[d.Listen]; taken {
			return fmt.Errorf("%s and %s both listen on %s", other, d.name, d.Listen)
		}
		at[d.Listen] = d.name
	}
	if g.Pprof && !isLocal(g.HTTP) {
		return errors.New("guard.pprof: profiles are served on a loopback address only, and guard.http is none")
	}
	return nil
}

func (d Door) equal(other Door) bool {
	return len(d.tokenSettings().differ(other.tokenSettings(), "")) == 0
}

// agree returns an error if one door's settings contradict each other or leave it open.
func (d Door) agree() error {
	switch {
	case (d.Cert == "") != (d.Key == ""):
		return errors.New("a certificate is two PEM files, cert and key: one is missing")
	case d.ClientCA != "" && d.Cert == "":
		return errors.New("client_ca needs cert and key: without TLS no client shows a certificate")
	case d.Listen == "" || isLocal(d.Listen) || d.Insecure:
		return nil
	case d.ClientCA == "" && d.TokenFile == "" && d.TokenEnv == "" && len(d.Allow) == 0:
		return fmt.Errorf("listen %s is not a loopback address, and anybody may ask: say who by allow, client_ca or a token, or insecure: true", d.Listen)
	}
	return nil
}
