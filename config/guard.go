package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Guard holds the settings of the guard as a service, section "guard:" of the file. What the
// file does not say is zero; [Guard.WithDefaults] fills it in.
type Guard struct {
	// HTTP is the address for health and metrics.
	HTTP string
	// Pprof serves profiles of the process at /debug/pprof/, if HTTP is a loopback address.
	Pprof bool
	// RLS, Check and SPOE are the doors of Envoy's rate limit service, of programs and of
	// HAProxy. One without an address is closed.
	RLS, Check, SPOE Door
	// Auth are the endpoints of the door for gateways that ask over HTTP.
	Auth []AuthEndpoint
	// Paths says how rules see paths: [PathsClean] or [PathsRaw].
	Paths string
	// TrustCaller takes the caller of a request from what a gateway says.
	TrustCaller bool
	// TicketAge is how long a request may go on whose end another call tells.
	TicketAge time.Duration
	// MaxTickets is how many such requests there may be, for each door.
	MaxTickets int
}

// Door is a place where the guard is asked, and who may ask.
type Door struct {
	Listen string // "host:port" or "unix:PATH"
	// Cert and Key are files with the door's certificate. ClientCA is the file with the
	// authorities of which each client has to have a certificate.
	Cert, Key, ClientCA string
	// TokenFile or TokenEnv is where the token is that each request has to have. RLS and SPOE
	// have none.
	TokenFile, TokenEnv string
	// Allow are the networks that may connect. If it is empty, all may.
	Allow []netip.Prefix
	// Insecure lets whoever can connect ask.
	Insecure bool
}

// AuthEndpoint is a path of the door for gateways that ask over HTTP. Endpoints with the same
// Listen are of one server, and have the same settings.
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

// authSchemes are the words for [AuthEndpoint].Scheme: in which headers a gateway passes a
// request, and how it is answered.
var authSchemes = []string{"forwarded", "original", "nginx", "envoy"}

// minToken is the length that a door's token has at least, in bytes.
const minToken = 16

// maxTickets bounds guard.max_tickets: a ticket takes some 200 bytes.
const maxTickets = 10_000_000

// WithDefaults returns the settings with the default for each that is zero.
func (g Guard) WithDefaults() Guard {
	g.HTTP = cmp.Or(g.HTTP, "127.0.0.1:9126")
	g.Paths = cmp.Or(g.Paths, PathsClean)
	g.TicketAge = cmp.Or(g.TicketAge, time.Minute)
	g.MaxTickets = cmp.Or(g.MaxTickets, 100_000)
	g.Auth = slices.Clone(g.Auth)
	for i := range g.Auth {
		if e := &g.Auth[i]; e.Scheme != "" && e.Path == "" {
			e.Path = "/" + e.Scheme
		}
	}
	return g
}

// Token reads the token that requests have to have. It returns "" if the file names none.
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

var (
	guardSection = section{
		name: "guard", prefix: "guard.",
		fields:  []string{"http", "pprof", "rls", "auth", "check", "spoe", "paths", "trust_caller", "ticket_age", "max_tickets"},
		example: `for example guard: {rls: {listen: "127.0.0.1:9131"}}`,
	}
	peerFields  = []string{"listen", "cert", "key", "client_ca", "allow", "insecure"}
	tokenFields = append(slices.Clone(peerFields), "token_file", "token_env")

	rlsSection   = section{name: "guard.rls", prefix: "guard.rls.", fields: peerFields, example: `for example rls: {listen: "127.0.0.1:9131"}`}
	spoeSection  = section{name: "guard.spoe", prefix: "guard.spoe.", fields: peerFields, example: `for example spoe: {listen: "127.0.0.1:9134"}`}
	checkSection = section{name: "guard.check", prefix: "guard.check.", fields: tokenFields, example: `for example check: {listen: "127.0.0.1:9133"}`}
	authSection  = section{
		name: "guard.auth", prefix: "guard.auth.", fields: append(slices.Clone(tokenFields), "path", "scheme"),
		example: `for example auth: [{listen: "127.0.0.1:9132", path: /auth, scheme: forwarded}]`,
	}
)

func (d *decoder) guard(n *node) Guard {
	v := d.section(n, guardSection)
	var g Guard
	g.HTTP = d.address(v.get("http"), "guard.http", "127.0.0.1:9126")
	pprof, _ := d.choice(v.get("pprof"), "guard.pprof", "on", "off")
	g.Pprof = pprof == "on"
	g.RLS = d.door(v.get("rls"), rlsSection)
	g.Check = d.door(v.get("check"), checkSection)
	g.SPOE = d.door(v.get("spoe"), spoeSection)
	for _, item := range d.list(v.get("auth"), "guard.auth") {
		g.Auth = append(g.Auth, d.authEndpoint(item))
	}
	g.Paths, _ = d.choice(v.get("paths"), "guard.paths", PathsClean, PathsRaw)
	g.TrustCaller = d.flag(v.get("trust_caller"), "guard.trust_caller")
	g.TicketAge = d.span(v.get("ticket_age"), "guard.ticket_age", "1m", time.Second, 24*time.Hour)
	g.MaxTickets = d.tickets(v.get("max_tickets"))
	if err := g.Agree(); n != nil && err != nil && len(d.problems) == 0 {
		d.report(n.at, "see docs/GATEWAYS.md", "%v", err)
	}
	return g
}

func (d *decoder) tickets(n *node) int {
	s, ok := d.scalar(n, "guard.max_tickets")
	if !ok {
		return 0
	}
	number, err := strconv.Atoi(strings.ReplaceAll(s, "_", ""))
	if err != nil || number < 1 || number > maxTickets {
		d.reject(n, "for example 100000", "guard.max_tickets %s: want 1 to %d", quote(s), maxTickets)
	}
	return number
}

func (d *decoder) authEndpoint(n *node) AuthEndpoint {
	v := d.section(n, authSection)
	e := AuthEndpoint{Door: d.doorFields(v, authSection)}
	e.Path = d.word(v.get("path"), "guard.auth.path")
	e.Scheme, _ = d.choice(v.get("scheme"), "guard.auth.scheme", authSchemes...)
	switch {
	case e.Path != "" && !v.has("scheme"):
		d.reject(n, "one of "+strings.Join(authSchemes, ", "), "guard.auth: path %s has no scheme", quote(e.Path))
	case e.Path != "" && (e.Path[0] != '/' || strings.ContainsAny(e.Path, "?# ")):
		d.reject(v.get("path"), "for example /auth", "guard.auth.path %s: want a path that begins with /", quote(e.Path))
	}
	return e
}

func (d *decoder) door(n *node, s section) Door { return d.doorFields(d.section(n, s), s) }

func (d *decoder) doorFields(v values, s section) Door {
	t := Door{
		Listen:   d.doorAddress(v.get("listen"), s.prefix+"listen"),
		Cert:     d.word(v.get("cert"), s.prefix+"cert"),
		Key:      d.word(v.get("key"), s.prefix+"key"),
		ClientCA: d.word(v.get("client_ca"), s.prefix+"client_ca"),
		Allow:    d.prefixes(v.get("allow"), s.prefix+"allow"),
		Insecure: d.flag(v.get("insecure"), s.prefix+"insecure"),
	}
	if slices.Contains(s.fields, "token_file") {
		t.TokenFile, t.TokenEnv = d.password(v, s.prefix, "token")
	}
	return t
}

func (d *decoder) doorAddress(n *node, what string) string {
	s, ok := d.scalar(n, what)
	if ok && CheckDoorAddress(s) != nil {
		d.reject(n, "for example 127.0.0.1:9131 or unix:/run/hotparam/guard.sock", "%s %s: want host:port or unix:PATH", what, quote(s))
	}
	return s
}

// CheckDoorAddress reports an error of the address of a door.
func CheckDoorAddress(s string) error {
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		if path == "" {
			return errors.New("unix: wants a path behind it")
		}
		return nil
	}
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("want host:port or unix:PATH")
	}
	return nil
}

// isLocal reports whether only this machine reaches the address.
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

// Agree reports settings that contradict each other, and doors that are open to everybody. A
// file that was read without problems has none; flags and variables may bring some in.
func (g Guard) Agree() error {
	g = g.WithDefaults()
	at := make(map[string]string) // by address: the door that has it
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
	return slices.Equal(d.Allow, other.Allow) && d.withoutAllow() == other.withoutAllow()
}

// withoutAllow returns the door's settings that can be compared.
func (d Door) withoutAllow() [7]string {
	return [...]string{d.Listen, d.Cert, d.Key, d.ClientCA, d.TokenFile, d.TokenEnv, strconv.FormatBool(d.Insecure)}
}

// agree reports an error of one door.
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
