package config

import (
	"fmt"
	"slices"
)

// Differs returns the names of the fields that differ between g and other, as the section guard
// of a file has them: "ticket_age", "rls.listen", "auth[0].path". If there are more or fewer
// endpoints of auth, it is "auth" alone.
func (g Guard) Differs(other Guard) (fields []string) {
	add := func(name string, isSame bool) {
		if !isSame {
			fields = append(fields, name)
		}
	}
	add("http", g.HTTP == other.HTTP)
	add("pprof", g.Pprof == other.Pprof)
	door := func(name string, d, o Door) {
		is, was := d.withoutAllow(), o.withoutAllow()
		for i, field := range [...]string{"listen", "cert", "key", "client_ca", "token_file", "token_env", "insecure"} {
			add(name+"."+field, is[i] == was[i])
		}
		add(name+".allow", slices.Equal(d.Allow, o.Allow))
	}
	door("rls", g.RLS, other.RLS)
	door("check", g.Check, other.Check)
	door("spoe", g.SPOE, other.SPOE)
	if add("auth", len(g.Auth) == len(other.Auth)); len(g.Auth) == len(other.Auth) {
		for i, e := range g.Auth {
			name, was := fmt.Sprintf("auth[%d]", i), other.Auth[i]
			door(name, e.Door, was.Door)
			add(name+".path", e.Path == was.Path)
			add(name+".scheme", e.Scheme == was.Scheme)
		}
	}
	add("paths", g.Paths == other.Paths)
	add("trust_caller", g.TrustCaller == other.TrustCaller)
	add("ticket_age", g.TicketAge == other.TicketAge)
	add("max_tickets", g.MaxTickets == other.MaxTickets)
	return fields
}
