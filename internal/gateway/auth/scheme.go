package auth

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/hotparam/hotparam/internal/gateway"
)

// Scheme is how a gateway describes the request that it asks about, and how it is answered.
type Scheme uint8

// Schemes.
const (
	// Forwarded is that of Caddy's forward_auth and Traefik's ForwardAuth: X-Forwarded-Method,
	// -Uri and -Host, and the client's address at the end of X-Forwarded-For.
	Forwarded Scheme = iota + 1
	// Original is that of scripts: X-Original-Method, X-Original-URI, X-Real-IP and Host.
	Original
	// Envoy is that of ext_authz over HTTP: the request has the method, the host and, behind
	// the endpoint's path or that and "?", the path and query. The client's address is at
	// the end of X-Forwarded-For, if the gateway passes that.
	Envoy
	// Nginx is Original for nginx's auth_request, which knows only two answers: 204, and 403
	// with the status and the body of the refusal in headers.
	Nginx
)

var schemeNames = [...]string{Forwarded: "forwarded", Original: "original", Envoy: "envoy", Nginx: "nginx"}

// String returns the scheme's name in files.
func (s Scheme) String() string {
	if s > 0 && int(s) < len(schemeNames) {
		return schemeNames[s]
	}
	return fmt.Sprintf("Scheme(%d)", s)
}

// ParseScheme returns the scheme of this name.
func ParseScheme(name string) (Scheme, error) {
	for s := Forwarded; int(s) < len(schemeNames); s++ {
		if schemeNames[s] == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("unknown scheme %q: want forwarded, original, envoy or nginx", name)
}

// success returns the status that lets a request pass.
func (s Scheme) success() int {
	if s == Nginx {
		return http.StatusNoContent
	}
	return http.StatusOK // Envoy takes nothing else for a success
}

// tokenHeader is where a gateway sends the door's token. It is not Authorization, in which
// the client's own credentials travel.
const tokenHeader = "X-Hotparam-Token"

// The headers of schemes, as net/http writes their names.
const (
	forwardedMethod = "X-Forwarded-Method"
	forwardedURI    = "X-Forwarded-Uri"
	forwardedHost   = "X-Forwarded-Host"
	forwardedFor    = "X-Forwarded-For"
	originalMethod  = "X-Original-Method"
	originalURI     = "X-Original-Uri"
	realIP          = "X-Real-Ip"
)

// notOfClient are headers of the gateway's own call.
var notOfClient = [...]string{
	"Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", tokenHeader,
}

// read returns the request that the gateway asks about. missing is the header without which
// the request is not known, ambiguous one that came several times. read takes its headers
// out of r's.
func (s Scheme) read(r *http.Request, below string) (c *gateway.Call, missing, ambiguous string) {
	h := headers{Header: r.Header}
	c = &gateway.Call{Method: r.Method, Target: below, Header: r.Header}
	host := r.Host
	switch s {
	case Forwarded:
		c.Method, c.Target = h.take(forwardedMethod, true), h.take(forwardedURI, true)
		if given := h.take(forwardedHost, false); given != "" {
			host = given
		}
		c.Addr = h.takeLastHop()
	case Original, Nginx:
		c.Method, c.Target, c.Addr = h.take(originalMethod, true), h.take(originalURI, true), h.take(realIP, false)
	case Envoy:
		c.Addr = h.takeLastHop()
	}
	if c.Method == "" {
		c.Method = r.Method
	}
	for _, name := range notOfClient {
		delete(h.Header, name)
	}
	if host != "" {
		h.Header["Host"] = []string{host}
	}
	return c, h.missing, h.ambiguous
}

// headers are those of the gateway's call while a scheme takes its own out.
type headers struct {
	http.Header
	missing, ambiguous string
}

// take takes a header out and returns its value. Of several it returns the last one: a gateway
// that adds instead of replacing writes behind what the client has sent.
func (h *headers) take(name string, needed bool) string {
	values := h.Header[name]
	delete(h.Header, name)
	n := len(values)
	switch {
	case n > 1 && h.ambiguous == "":
		h.ambiguous = name
	case (n == 0 || values[n-1] == "") && needed && h.missing == "":
		h.missing = name
	}
	if n == 0 {
		return ""
	}
	return values[n-1]
}

// takeLastHop takes the last address out of X-Forwarded-For, the one that the gateway has
// seen itself. The header keeps what was there before, as if it were at the gateway's place.
func (h *headers) takeLastHop() string {
	lines := h.Header[forwardedFor]
	if len(lines) == 0 {
		return ""
	}
	before, last := "", lines[len(lines)-1]
	comma := strings.LastIndexByte(last, ',')
	if comma >= 0 {
		before, last = last[:comma], last[comma+1:]
	}
	switch lines = lines[:len(lines)-1]; {
	case comma >= 0:
		h.Header[forwardedFor] = append(lines, before)
	case len(lines) > 0:
		h.Header[forwardedFor] = lines
	default:
		delete(h.Header, forwardedFor)
	}
	return strings.Trim(last, " \t")
}
