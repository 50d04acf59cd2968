package config

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawGuard draws a guard section without conflicts.
func drawGuard(t *rapid.T) (g Guard) {
	if !rapid.Bool().Draw(t, "guard") {
		return g
	}
	g.HTTP = rapid.SampledFrom([]string{"", "127.0.0.1:9126", ":9126"}).Draw(t, "guard http")
	g.Paths = rapid.SampledFrom([]string{"", PathsClean, PathsRaw}).Draw(t, "paths")
	g.TrustCaller = rapid.Bool().Draw(t, "caller")
	g.TicketAge = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "age")
	g.MaxTickets = rapid.SampledFrom([]int{0, 1, 5000}).Draw(t, "tickets")
	g.RLS = Door{Listen: "unix:/run/rls.sock"}
	if rapid.Bool().Draw(t, "open") {
		g.RLS = Door{Listen: ":1", Cert: "c.pem", Key: "k.pem", ClientCA: "ca.pem"}
		g.SPOE = Door{Listen: "0.0.0.0:2", Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
		g.Check = Door{Listen: "[::]:3", TokenEnv: "TOKEN"}
		g.Auth = []AuthEndpoint{{Door: Door{Listen: ":4", Insecure: true}, Path: "/a", Scheme: "original"}, {Door: Door{Listen: ":5", TokenFile: "t"}}}
	}
	return g
}

// guard writes the guard section.
func (w writer) guard(g Guard) string {
	if reflect.DeepEqual(g, Guard{}) {
		return ""
	}
	var b strings.Builder
	add := func(indent, name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s%s: %s\n", indent, name, value)
		}
	}
	quoted := func(s string) string {
		if s == "" {
			return ""
		}
		return fmt.Sprintf("%q", s)
	}
	door := func(indent string, d Door) {
		for _, p := range [][2]string{{"listen", d.Listen}, {"cert", d.Cert}, {"key", d.Key}, {"client_ca", d.ClientCA}, {"token_file", d.TokenFile}, {"token_env", d.TokenEnv}} {
			add(indent, p[0], quoted(p[1]))
		}
		for _, p := range d.Allow {
			add(indent, "allow", fmt.Sprintf("[%q]", p))
		}
		if d.Insecure {
			add(indent, "insecure", "true")
		}
	}
	b.WriteString("guard:\n")
	add("  ", "http", quoted(g.HTTP))
	add("  ", "paths", g.Paths)
	add("  ", "trust_caller", fmt.Sprint(g.TrustCaller))
	if g.TicketAge > 0 {
		add("  ", "ticket_age", g.TicketAge.String())
	}
	if g.MaxTickets > 0 {
		add("  ", "max_tickets", fmt.Sprint(g.MaxTickets))
	}
	for name, d := range map[string]Door{"rls": g.RLS, "check": g.Check, "spoe": g.SPOE} {
		if d.Listen != "" {
			fmt.Fprintf(&b, "  %s:\n", name)
			door("    ", d)
		}
	}
	if len(g.Auth) > 0 {
		b.WriteString("  auth:\n")
	}
	for _, e := range g.Auth {
		b.WriteString("    - insecure: " + fmt.Sprint(e.Insecure) + "\n")
		e.Insecure = false
		door("      ", e.Door)
		add("      ", "path", e.Path)
		add("      ", "scheme", e.Scheme)
	}
	return b.String()
}

func TestGuardRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{rls: {listen: ":8081"}}`:                                                                       "anybody may ask",
		`{spoe: {listen: "10.0.0.1:8081"}}`:                                                              "anybody may ask",
		`{check: {listen: ":8081"}}`:                                                                     "guard.check: listen :8081 is not a loopback",
		`{auth: [{listen: ":8081", path: /a, scheme: envoy}]}`:                                           "anybody may ask",
		`{rls: {listen: 8081}}`:                                                                          "host:port or unix:PATH",
		`{rls: {listen: "unix:"}}`:                                                                       "host:port or unix:PATH",
		`{rls: {listen: "127.0.0.1:1", token_file: t}}`:                                                  "unknown field",
		`{check: {listen: "127.0.0.1:1", token: geheim}}`:                                                "a token does not belong in this file",
		`{rls: {listen: "127.0.0.1:1", client_ca: c}}`:                                                   "client_ca needs cert and key",
		`{rls: {listen: "127.0.0.1:1", cert: c}}`:                                                        "one is missing",
		`{rls: {listen: "127.0.0.1:1"}, spoe: {listen: "127.0.0.1:1"}}`:                                  "both listen on",
		`{rls: {listen: "127.0.0.1:9126"}}`:                                                              "guard.http and guard.rls both listen",
		`{auth: [{listen: "127.0.0.1:1", path: /a}]}`:                                                    "has no scheme",
		`{auth: [{listen: "127.0.0.1:1", path: a, scheme: envoy}]}`:                                      "begins with /",
		`{auth: [{listen: "127.0.0.1:1", path: /a, scheme: apache}]}`:                                    "guard.auth.scheme",
		`{auth: [{listen: "unix:/a"}, {listen: "unix:/a", scheme: envoy}]}`:                              "is there twice",
		`{auth: [{listen: "unix:/a", scheme: nginx, token_env: T}, {listen: "unix:/a", scheme: envoy}]}`: "differ in who may ask",
		`{paths: pretty}`:              "want clean or raw",
		`{ticket_age: 1ms}`:            "guard.ticket_age",
		`{max_tickets: 0}`:             "guard.max_tickets",
		`{http: ":9126", pprof: "on"}`: "loopback",
		`{rsl: {}}`:                    `did you mean "rls"`,
	} {
		_, err := Parse("f", []byte("guard: "+text+"\n"+webhookRules))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", text, err, want)
		}
	}
}

func TestGuardDefaults(t *testing.T) {
	f, err := Parse("f", []byte(`guard: {auth: [{listen: "localhost:1", scheme: nginx}, {listen: "localhost:2"}]}`+"\n"+webhookRules))
	if err != nil {
		t.Fatal(err)
	}
	g := f.Guard.WithDefaults()
	if g.HTTP != "127.0.0.1:9126" || g.TicketAge != time.Minute || g.MaxTickets != 100_000 || g.Paths != PathsClean || g.Auth[0].Path != "/nginx" || g.Auth[1].Path != "" {
		t.Errorf("%+v", g)
	}
}

func TestDoorToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	for content, want := range map[string]string{"short\n": "", "0123456789abcdef\n": "0123456789abcdef"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Door{TokenFile: path}.Token()
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "short") {
			t.Errorf("%q: %q, %v", content, got, err)
		}
	}
}

func TestGuardDoors(t *testing.T) {
	at := func(listen string) Door { return Door{Listen: listen} }
	g := Guard{
		RLS: at("a:1"), SPOE: at("b:2"),
		Auth: []AuthEndpoint{{Door: at("c:3"), Path: "/x"}, {Door: at("d:4")}, {Door: at("c:3"), Path: "/y"}, {}},
	}
	var got []string
	for name, d := range g.Doors() {
		got = append(got, name+" "+d.Listen)
	}
	if want := []string{"rls a:1", "auth c:3", "auth d:4", "spoe b:2"}; !slices.Equal(got, want) {
		t.Errorf("doors %q, want %q", got, want)
	}
	for name := range g.Doors() {
		if name == "auth" {
			break // an iterator that goes on after this panics
		}
	}
}

// Differences are named like the fields of a file.
func TestGuardDiffers(t *testing.T) {
	prefix := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for want, change := range map[string]func(*Guard){
		"http": func(g *Guard) { g.HTTP = ":1" }, "pprof": func(g *Guard) { g.Pprof = true },
		"rls.listen": func(g *Guard) { g.RLS.Listen = ":1" }, "check.token_file": func(g *Guard) { g.Check.TokenFile = "t" },
		"spoe.client_ca": func(g *Guard) { g.SPOE.ClientCA = "ca" }, "check.insecure": func(g *Guard) { g.Check.Insecure = true },
		"spoe.allow": func(g *Guard) { g.SPOE.Allow = prefix },
		"auth":       func(g *Guard) { g.Auth = nil }, "auth[0].allow": func(g *Guard) { g.Auth[0].Allow = prefix },
		"auth[0].path": func(g *Guard) { g.Auth[0].Path = "/a" }, "auth[0].scheme": func(g *Guard) { g.Auth[0].Scheme = "nginx" },
		"paths": func(g *Guard) { g.Paths = PathsRaw }, "trust_caller": func(g *Guard) { g.TrustCaller = true },
		"ticket_age": func(g *Guard) { g.TicketAge = time.Second }, "max_tickets": func(g *Guard) { g.MaxTickets = 1 },
	} {
		one := []AuthEndpoint{{}}
		is, was := Guard{Auth: one}.WithDefaults(), Guard{Auth: one}.WithDefaults()
		if got := is.Differs(was); len(got) > 0 {
			t.Fatalf("the same differ in %q", got)
		}
		change(&is)
		if got := is.Differs(was); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %s", got, want)
		}
	}
}
