package config

import (
	"reflect"
	"slices"
)

// Differs returns the names of the fields that differ between g and other, such as "rls.listen",
// as the section guard of a file has them. Entries of auth are compared as one.
func (g Guard) Differs(other Guard) (fields []string) {
	add := func(name string, isSame bool) {
		if !isSame {
			fields = append(fields, name)
		}
	}
	add("http", g.HTTP == other.HTTP)
	add("pprof", g.Pprof == other.Pprof)
	for _, d := range []struct {
		name    string
		is, was Door
	}{{"rls", g.RLS, other.RLS}, {"check", g.Check, other.Check}, {"spoe", g.SPOE, other.SPOE}} {
		is, was := d.is.withoutAllow(), d.was.withoutAllow()
		for i, field := range [...]string{"listen", "cert", "key", "client_ca", "token_file", "token_env", "insecure"} {
			add(d.name+"."+field, is[i] == was[i])
		}
		add(d.name+".allow", slices.Equal(d.is.Allow, d.was.Allow))
	}
	add("auth", len(g.Auth) == 0 && len(other.Auth) == 0 || reflect.DeepEqual(g.Auth, other.Auth))
	add("paths", g.Paths == other.Paths)
	add("trust_caller", g.TrustCaller == other.TrustCaller)
	add("ticket_age", g.TicketAge == other.TicketAge)
	add("max_tickets", g.MaxTickets == other.MaxTickets)
	return fields
}
