package config

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

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

// minToken is the minimum length of a door's token, in bytes.
const minToken = 16

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

// Token reads the token that requests must have. It returns "" if the file names none.
func (d Door) Token() (string, error) { return readToken(d.TokenFile, d.TokenEnv) }

// readToken reads a token from a file or a variable. It returns "" if both are empty.
func readToken(file, env string) (string, error) {
	token, err := base.ReadSecret(file, env)
	if err != nil {
		return "", err
	}
	if token != "" && len(token) < minToken {
		return "", fmt.Errorf("%s has %d bytes, want %d at least; make a token by openssl rand -hex 32", cmp.Or(file, env), len(token), minToken)
	}
	return token, nil
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

// Doors returns the doors that have an address, with their names: "rls", "auth", "check" and
// "spoe". Endpoints of Auth with the same address are one door.
func (g Guard) Doors() iter.Seq2[string, Door] {
	return func(yield func(string, Door) bool) {
		g.allDoors(func(name string, d Door) bool { return d.Listen == "" || yield(name, d) })
	}
}

// allDoors calls yield for each door, with or without an address, until it returns false.
func (g *Guard) allDoors(yield func(string, Door) bool) {
	if !yield("rls", g.RLS) {
		return
	}
	for i, e := range g.Auth {
		same := func(other AuthEndpoint) bool { return other.Listen == e.Listen }
		if !slices.ContainsFunc(g.Auth[:i], same) && !yield("auth", e.Door) {
			return
		}
	}
	_ = yield("check", g.Check) && yield("spoe", g.SPOE)
}

// Agree returns an error if settings contradict each other, or if a door is open to everyone. A
// file that was read without problems has no such settings; flags and variables may add some.
func (g Guard) Agree() error {
	g = g.WithDefaults()
	if err := g.agreeAuth(); err != nil {
		return err
	}
	doors := map[string]string{g.HTTP: "guard.http"} // names of doors, by address
	for name, d := range g.allDoors {
		name = "guard." + name
		if err := d.agree(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if d.Listen == "" || strings.HasSuffix(d.Listen, ":0") {
			continue
		}
		if other, taken := doors[d.Listen]; taken {
			return fmt.Errorf("%s and %s both listen on %s", other, name, d.Listen)
		}
		doors[d.Listen] = name
	}
	if g.Pprof && !isLocal(g.HTTP) {
		return errors.New("guard.pprof: profiles are served on a loopback address only, and guard.http is not one")
	}
	return nil
}

// agreeAuth returns an error if endpoints of one address have the same path, or differ in who may
// ask.
func (g *Guard) agreeAuth() error {
	servers := make(map[string]Door)
	endpoints := make(map[string]bool)
	for _, e := range g.Auth {
		if first, found := servers[e.Listen]; !found {
			servers[e.Listen] = e.Door
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
