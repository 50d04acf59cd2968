package gateways

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/hotparam/hotparam/checks/bench/load"
	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// variant is one way of sending requests through a gateway.
type variant struct {
	name     string
	kind     requestKind
	addr     string
	requests []load.Request // requests to send, by their paths; empty means GETs of the kind
	status   int            // expected status; 0 means the kind's
	gateway  int            // id of its process; 0 means none
	service  *service       // nil means none
	decides  int            // decisions of the service for each request; 0 means 1
}

// catalogued is a gateway of the catalogue.
type catalogued struct {
	name string
	// start starts the gateway and returns its variants. The first one is the gateway alone.
	// It sets g.Lacks if a variant is not available.
	start func(tb testing.TB, s *site, g *Gateway) []variant
	// version is the arguments that make the program print its version.
	version []string
}

var catalogue = []catalogued{
	{"Envoy", startEnvoys, []string{"--version"}},
	{"nginx", startNginxes, []string{"-v"}},
	{"njs in nginx", startNJS, []string{"-v"}},
	{"HAProxy", startHAProxies, []string{"-v"}},
	{"Caddy", startCaddies, []string{"version"}},
	{"Traefik", startTraefiks, []string{"version"}},
	{"any program", startPrograms, nil},
}

// through returns the variants of a gateway with the guard: one for each kind of request.
func (s *site) through(name string, g *real.Gateway, kinds ...requestKind) (all []variant) {
	for _, k := range kinds {
		all = append(all, variant{name: name, kind: k, addr: g.Addr, gateway: g.PID(), service: s.guard})
	}
	return all
}

// without returns the variant of a gateway that asks no service.
func without(name string, g *real.Gateway) variant {
	return variant{name: name, kind: cold, addr: g.Addr, gateway: g.PID()}
}

const (
	alone    = "alone"
	rlsName  = "`rls`"
	peerName = "envoyproxy/ratelimit, a call to Redis for each request"
)

const (
	envoyRouter = "- name: envoy.filters.http.router\n"

	envoyLocal = `- name: envoy.filters.http.local_ratelimit
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
                      stat_prefix: local
                      filter_enabled: {default_value: {numerator: 100}}
                      filter_enforced: {default_value: {numerator: 100}}
                      token_bucket: &bucket {max_tokens: 1000000, tokens_per_fill: 1000000, fill_interval: 1s}
                      always_consume_default_token_bucket: false
                      max_dynamic_descriptors: 10000
                      descriptors: [{entries: [{key: path}], token_bucket: *bucket}]
                      rate_limits: [{actions: [{request_headers: {header_name: ":path", descriptor_key: path}}]}]
                  `
	// One descriptor, so that it makes one counter.
	envoyOneDescriptor = `rate_limits: [{actions: [{request_headers: {header_name: ":path", descriptor_key: path}}]}]
                  `

	rateLimitConfiguration = `
domain: hotparam
descriptors:
  - key: path
    rate_limit: {unit: second, requests_per_unit: 1000000}
`
)

func startEnvoys(tb testing.TB, s *site, g *Gateway) []variant {
	start := func(name, door string, edits map[string]string) *real.Gateway {
		values := map[string]string{real.EnvoyAddress("127.0.0.1:8080"): real.EnvoyAddress(s.app)}
		if name == "envoy" {
			values[real.EnvoyAddress("127.0.0.1:9131")] = real.EnvoyAddress(door)
		} else {
			values[real.EnvoyAddress("127.0.0.1:9132")] = real.EnvoyAddress(door)
		}
		maps.Copy(values, edits)
		return real.Envoy(tb, name, values)
	}
	authz := deployedBetween(tb, "envoy-extauthz/envoy.yaml", "- name: envoy.filters.http.ext_authz\n", envoyRouter)
	ends := deployedBetween(tb, "envoy/envoy.yaml", "\n                        # The end of a request", "\n                  "+envoyRouter)
	limits := deployedBetween(tb, "envoy/envoy.yaml", "rate_limits:", envoyRouter)

	all := []variant{
		without(alone, start("envoy-extauthz", s.doors["auth"], map[string]string{authz: ""})),
		without("its own `local_ratelimit`, a bucket a path", start("envoy-extauthz", s.doors["auth"], map[string]string{authz: envoyLocal})),
	}
	all = append(all, s.through(rlsName, start("envoy", s.doors["rls"], map[string]string{ends: ""}), cold, hot, refused)...)
	all = append(all, s.through("`rls`, and told of the end of each request", start("envoy", s.doors["rls"], nil), cold)...)
	all = append(all, s.through("ext_authz, by `auth`", start("envoy-extauthz", s.doors["auth"], nil), cold, hot, refused)...)

	err := testenv.Outside(tb.Context(), tb.TempDir(), func(tb testing.TB) { real.RateLimitPath(tb) })
	switch {
	case errors.Is(err, testenv.ErrSkipped):
		g.Lacks, g.LacksWhy = "envoyproxy/ratelimit", err.Error()
		return all
	case err != nil:
		tb.Fatal(err)
	}
	store := testenv.Redis(tb)
	ratelimit := real.RateLimit(tb, store, rateLimitConfiguration)
	peer := without(peerName, start("envoy", ratelimit.Addr, map[string]string{limits: envoyOneDescriptor}))
	peer.service = &service{
		processes: []int{ratelimit.PID()},
		stores:    []int{store.PID()},
		decided:   func(ctx context.Context) (int, error) { return calls(ctx, store.Addr(), "incrby") },
	}
	return append(all, peer)
}

// The directives by which nginx's configuration asks hotparam.
const (
	nginxServer = "include hotparam-server.conf;"
	nginxAsks   = "include hotparam-location.conf;"

	nginxLocalName = "its own `limit_req`, a bucket a value"
)

func startNginxes(tb testing.TB, s *site, _ *Gateway) []variant {
	start := func(edits map[string]string) *real.Gateway {
		values := map[string]string{"127.0.0.1:8080": s.app, "127.0.0.1:9132": s.doors["auth"]}
		maps.Copy(values, edits)
		return real.Nginx(tb, "nginx", values)
	}
	all := []variant{
		without(alone, start(map[string]string{nginxServer: "", nginxAsks: ""})),
		without(nginxLocalName, start(map[string]string{
			"merge_slashes on;": "limit_req_zone $arg_q zone=values:10m rate=1000000r/s;",
			nginxServer:         "",
			nginxAsks:           "limit_req zone=values burst=1000000 nodelay;",
		})),
	}
	return append(all, s.through("`auth_request`, by `auth`", start(nil), cold, hot, refused)...)
}

func startNJS(tb testing.TB, s *site, _ *Gateway) []variant {
	app := map[string]string{"127.0.0.1:8080": s.app}
	plain := maps.Clone(app)
	plain["js_access hotparam.access;"] = ""
	all := []variant{without(alone, real.NginxNJS(tb, "nginx-njs", plain))}
	app["127.0.0.1:9132"] = s.doors["auth"]
	return append(all, s.through("`js_access`, by `auth`", real.NginxNJS(tb, "nginx-njs", app), cold, hot, refused)...)
}

const haproxyLocal = `  stick-table type string len 64 size 100k expire 10s store http_req_rate(1s)
  http-request track-sc0 url_param(q)
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 1000000 }
  default_backend app
`

func startHAProxies(tb testing.TB, s *site, _ *Gateway) []variant {
	file := real.ReadDeployed(tb, "gateways/haproxy/spoe/haproxy.cfg")
	plain := withoutLines(file, "backend hotparam", "filter spoe", "http-request", "http-response")
	program := real.HAProxy28(tb) // Lua needs it
	start := func(file string, environment ...string) *real.Gateway {
		return program.Start(tb, file, append(environment, "APP="+s.app)...)
	}
	all := []variant{
		without(alone, start(writeConfig(tb, plain))),
		without("its own stick table, an entry a value", start(writeConfig(tb, replaceOnce(tb, plain, "  default_backend app\n", haproxyLocal)))),
	}
	all = append(all, s.through("`spoe`", start("gateways/haproxy/spoe/haproxy.cfg", "HOTPARAM_SPOE="+s.doors["spoe"]), cold, hot, refused)...)
	return append(all, s.through("Lua, by `auth`", start("gateways/haproxy/lua/haproxy.cfg", "HOTPARAM_AUTH="+s.doors["auth"]), cold, hot, refused)...)
}

func startCaddies(tb testing.TB, s *site, _ *Gateway) []variant {
	const asks = "import guarded 127.0.0.1:9132 127.0.0.1:8080"
	all := []variant{without(alone, real.Caddy(tb, "caddy", map[string]string{asks: "reverse_proxy " + s.app}))}
	with := real.Caddy(tb, "caddy", map[string]string{"127.0.0.1:9132": s.doors["auth"], "127.0.0.1:8080": s.app})
	return append(all, s.through("`forward_auth`, by `auth`", with, cold, hot, refused)...)
}

func startTraefiks(tb testing.TB, s *site, _ *Gateway) []variant {
	app := map[string]string{"127.0.0.1:8080": s.app, "127.0.0.1:9132": s.doors["auth"]}
	plain := maps.Clone(app)
	plain["      middlewares: [hotparam]\n      service: app\n"] = "      service: app\n"
	all := []variant{without(alone, real.Traefik(tb, "traefik", plain))}
	return append(all, s.through("ForwardAuth, by `auth`", real.Traefik(tb, "traefik", app), cold, hot, refused)...)
}
