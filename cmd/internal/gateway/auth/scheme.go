package auth

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// Scheme is a format of subrequests and of the responses to them.
type Scheme uint8

// Schemes.
const (
	// Forwarded is the scheme of Caddy's forward_auth and Traefik's ForwardAuth. It uses
	// X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host. The client's address is the
	// last one in X-Forwarded-For.
	Forwarded Scheme = iota + 1
	// Original is the scheme of scripts. It uses X-Original-Method, X-Original-URI, X-Real-IP
	// and Host.
	Original
	// Envoy is the scheme of ext_authz over HTTP. The subrequest has the method and the host
	// of the request. Its target is the endpoint's path, an optional "?", and the request's
	// path and query. The client's address is the last one in X-Forwarded-For, if the gateway
	// sends that.
	Envoy
	// Nginx is Original for nginx's auth_request, which knows two responses: 204 to pass, and
	// 403 with the status and the body of the refusal in headers.
	Nginx
)

var schemeNames = [...]string{Forwarded: "forwarded", Original: "original", Envoy: "envoy", Nginx: "nginx"}

// String returns the scheme's name in the configuration.
func (s Scheme) String() string {
	if s > 0 && int(s) < len(schemeNames) {
		return schemeNames[s]
	}
	return fmt.Sprintf("Scheme(%d)", s)
}

// ParseScheme returns the scheme with the name.
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
	return http.StatusOK // Envoy accepts no other success status
}

// tokenHeader is the header for the door's token. It is not Authorization, because that holds the
// client's own credentials.
const tokenHeader = "X-Hotparam-Token"

// Headers of the schemes, in net/http's spelling.
const (
	forwardedMethod = "X-Forwarded-Method"
	forwardedURI    = "X-Forwarded-Uri"
	forwardedHost   = "X-Forwarded-Host"
	forwardedFor    = "X-Forwarded-For"
	originalMethod  = "X-Original-Method"
	originalURI     = "X-Original-Uri"
	realIP          = "X-Real-Ip"
)

// notOfClient are headers of the subrequest that are not the client's.
var notOfClient = [...]string{
	"Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", tokenHeader,
}

// read returns the request that a subrequest describes. missing names a required header that is
// absent, and ambiguous a repeated one; both can be empty. read removes the headers of the scheme
// from r.Header.
func (s Scheme) read(r *http.Request, below string) (c *gateway.Call, missing, ambiguous string) {
	h := headers{Header: r.Header}
	c = &gateway.Call{Method: r.Method, Target: below, Header: r.Header}
	host := r.Host
	switch s {
	case Forwarded:
		c.Method, c.Target = h.popValue(forwardedMethod, true), h.popValue(forwardedURI, true)
		if given := h.popValue(forwardedHost, false); given != "" {
			host = given
		}
		c.Addr = h.takeLastHop()
	case Original, Nginx:
		c.Method, c.Target, c.Addr = h.popValue(originalMethod, true), h.popValue(originalURI, true), h.popValue(realIP, false)
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

// headers are the headers of a subrequest, from which a scheme removes its own.
type headers struct {
	http.Header
	missing, ambiguous string
}

// popValue removes a header and returns its value. A header that is repeated is ambiguous.
func (h *headers) popValue(name string, needed bool) string {
	values := h.Header[name]
	delete(h.Header, name)
	switch {
	case len(values) > 1 && h.ambiguous == "":
		h.ambiguous = name
	case (len(values) == 0 || values[0] == "") && needed && h.missing == "":
		h.missing = name
	}
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// takeLastHop removes and returns the last address of X-Forwarded-For, which the gateway added.
// The rest of the header is the one that the gateway received.
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
