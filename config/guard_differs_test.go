package config

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"
)

// Each field of the section is compared, and named as in a file.
func TestGuardDiffers(t *testing.T) {
	all := reflect.TypeFor[Guard]().NumField()
	if want := 10; all != want {
		t.Errorf("Guard has %d fields, Differs compares %d", all, want)
	}
	if n := reflect.TypeFor[Door]().NumField(); n != 8 {
		t.Errorf("Door has %d fields, Differs compares 8", n)
	}
	if n := reflect.TypeFor[AuthEndpoint]().NumField(); n != 3 {
		t.Errorf("AuthEndpoint has %d fields, Differs compares 3", n)
	}
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
