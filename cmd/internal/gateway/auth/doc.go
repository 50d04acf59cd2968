// Package auth implements a guard's door for gateways that authorize requests over HTTP. A
// gateway makes a subrequest for each request, then forwards the request or sends the door's
// response to the client. Caddy's forward_auth, Traefik's ForwardAuth, Envoy's ext_authz, nginx's
// auth_request and scripts (njs in nginx, Lua in HAProxy) do so.
//
//	gateway ─► serve.go endpoint ─► scheme.go request ─► gateway.Decider
//	   ▲                                                      │
//	   └───────────────── answer.go response ◄────────────────┘
//
// An endpoint (door.go) is a path with one scheme of headers. The paths below it are for gateways that
// ask in front of their cache and behind it. The scheme is never detected from
// the headers that are present: gateways forward the headers of clients, so a client could
// choose the request that is decided.
package auth
