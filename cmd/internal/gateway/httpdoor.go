package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"

	"github.com/hotparam/hotparam/cmd/internal/httpserve"
)

// HTTPDoor is the common part of the doors that speak HTTP: its server, its token and its
// counters. The doors differ in the handler.
type HTTPDoor struct {
	DoorConfig
	*Tally
	token  token
	server *httpserve.Server
}

// NewHTTPDoor returns a door. It starts nothing. maxHeaderBytes is the maximum size of a
// request's first line and headers; a larger request gets 431. Zero means the default of
// [httpserve.Config].
func NewHTTPDoor(c DoorConfig, maxHeaderBytes int, handler http.Handler, faults ...Reason) HTTPDoor {
	return HTTPDoor{
		DoorConfig: c, Tally: NewTally(c.Log, append(faults, Unauthorized, TooLarge, Unreadable), []Reason{Slow}), token: newToken(c.Token),
		server: httpserve.New(httpserve.Config{
			Handler: handler, MaxConnections: c.MaxConnections, MaxHeaderBytes: maxHeaderBytes, Allow: c.Allow, TLS: c.TLS, Log: c.Log,
		}),
	}
}

// Accepts reports whether a peer that sent this token may make calls.
func (d *HTTPDoor) Accepts(sent string) bool { return d.token.accepts(sent) }

// Serve implements [Door]. In-flight requests have a second to end.
func (d *HTTPDoor) Serve(ctx context.Context, l net.Listener) error { return d.server.Serve(ctx, l) }

// Figures implements [Door].
func (d *HTTPDoor) Figures() Figures {
	s := d.server.Stats()
	f := d.Tally.Figures(s.Stats)
	f.Faults[TooLarge] += s.TooLarge
	f.Faults[Unreadable] += s.Unreadable
	f.Closed[Slow] += s.Slow
	return f
}

// token is the secret that a door's peers must send. The zero value accepts every peer.
type token struct {
	sum    [sha256.Size]byte
	needed bool
}

// newToken returns the token with the given text. If text is empty, it accepts every peer.
func newToken(text string) token {
	return token{sum: sha256.Sum256([]byte(text)), needed: text != ""}
}

// accepts reports whether sent is the token. It takes the same time wherever the two differ.
func (t *token) accepts(sent string) bool {
	if !t.needed {
		return true
	}
	sum := sha256.Sum256([]byte(sent))
	return subtle.ConstantTimeCompare(sum[:], t.sum[:]) == 1
}
