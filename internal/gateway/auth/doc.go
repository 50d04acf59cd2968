// Package auth is the HTTP door of a guard: a gateway asks it about each request, and lets the
// request pass or sends the door's answer to the client. Caddy's forward_auth, Traefik's
// ForwardAuth, Envoy's ext_authz, scripts (nginx's njs, HAProxy's Lua) and nginx's
// auth_request ask so.
//
//	gateway ─► door.go which endpoint ─► scheme.go what is asked ─► gateway.Decider
//	   ▲                                                               │
//	   └───────────────────── answer.go what to say ◄──────────────────┘
//
// An endpoint is a path and one scheme of headers. It never looks for whichever headers are
// there: gateways pass a client's headers on, so a client could choose what is decided on.
package auth
