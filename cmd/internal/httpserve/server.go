// Package httpserve serves HTTP with a bound on everything that a client can hold: time, header
// bytes, and with package connlimit connections and file descriptors. At the bound, connections
// without a request make room, the one that has been idle longest first. A path for health
// checks is still served.
//
//	server.go    the server, its time-outs and the log of net/http, at a bounded rate
//	conn.go      counters of a connection that net/http does not report
package httpserve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/loglimit"
)

// Bounds for one client.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 2 * time.Minute // two scrapes
	maxHeaderBytes = 16 << 10
)

// Config configures a [Server]. Handler is required.
type Config struct {
	Handler http.Handler
	// MaxConnections is the maximum number of connections. Zero means 128. If the process may
	// open few files, the maximum is a quarter of these.
	MaxConnections int
	// MaxHeaderBytes bounds the size of a request's first line and headers. Zero means 16 KiB.
	// The server reads 4 KiB more before it refuses a request.
	MaxHeaderBytes int
	// Health is a path that is served even beyond MaxConnections. Empty means none.
	Health string
	// Allow are the networks from which peers may connect; see [connlimit.Config].
	Allow []netip.Prefix
	TLS   *tls.Config // nil means plain HTTP
	// Grace is how long requests may continue when the server ends. Zero means one second.
	Grace time.Duration
	// Log receives errors, at most one line in ten seconds. A nil Log disables it.
	Log *slog.Logger
}

// defaultConnections is the default of Config.MaxConnections.
const defaultConnections = 128

// reserved is the number of connections beyond MaxConnections, for health checks.
const reserved = 16

// Stats are a server's counters.
type Stats struct {
	connlimit.Stats       // a connection is in use while it has a request
	Slow            int64 // connections closed because a request, or its first byte, did not come in time
	TooLarge        int64 // requests refused for the size of their headers (431)
	Unreadable      int64 // requests that are not HTTP (400, 501, 505)
}

// Server serves listeners. Its methods are safe for concurrent use.
type Server struct {
	cfg   Config
	conns *connlimit.Limiter

	slow, tooLarge, unreadable atomic.Int64 // counters, as in Stats

	headerWithin, readWithin, idleWithin time.Duration
}

// New returns a server. It starts nothing.
func New(c Config) *Server {
	c.Grace = cmp.Or(c.Grace, time.Second)
	c.MaxHeaderBytes = cmp.Or(c.MaxHeaderBytes, maxHeaderBytes)
	c.MaxConnections = min(cmp.Or(c.MaxConnections, defaultConnections), max(reserved, base.OpenFileLimit()/4))
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{
		cfg: c, conns: connlimit.New(connlimit.Config{Max: c.MaxConnections, Reserve: reserved, Allow: c.Allow, TLS: c.TLS, Log: c.Log}),
		headerWithin: headerTimeout, readWithin: readTimeout, idleWithin: idleTimeout,
	}
}

// Stats returns the counters.
func (s *Server) Stats() Stats {
	return Stats{s.conns.Stats(), s.slow.Load(), s.tooLarge.Load(), s.unreadable.Load()}
}

// Serve serves until ctx ends, and closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           http.HandlerFunc(s.handle),
		ReadHeaderTimeout: s.headerWithin,
		ReadTimeout:       s.readWithin,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       s.idleWithin,
		MaxHeaderBytes:    s.cfg.MaxHeaderBytes,
		ErrorLog:          log.New(&errorLog{log: s.cfg.Log}, "", 0),
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			if c, ok := c.(*conn); ok && state == http.StateIdle {
				c.setServing(false)
			}
		},
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
		defer cancel()
		if server.Shutdown(limit) != nil {
			_ = server.Close() // do not wait for a request that hangs
		}
	})
	err := server.Serve(&listener{s.conns.Listener(l), s})
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

type connKey struct{}

// handle serves a request. A reserved connection is served one health check.
func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(connKey{}).(*conn)
	if ok {
		c.setServing(true)
		if secure, ok := c.Conn.Conn.(*tls.Conn); ok { // http.Server does not see it below the others
			state := secure.ConnectionState()
			r.TLS = &state
		}
	}
	if ok && c.Reserved {
		w.Header().Set("Connection", "close")
		if s.cfg.Health == "" || r.URL.Path != s.cfg.Health {
			http.Error(w, "too many connections", http.StatusServiceUnavailable)
			return
		}
	}
	s.cfg.Handler.ServeHTTP(w, r)
}

// errorLog receives the log lines of http.Server, which has one for each accept that fails, and
// passes them on at errorRate.
type errorLog struct {
	log   *slog.Logger
	lines loglimit.Limit
}

var errorRate = loglimit.LineRate{Burst: 1, Every: 10 * time.Second}

// Write implements io.Writer.
func (l *errorLog) Write(line []byte) (int, error) {
	if unlogged, ok := l.lines.Allow(errorRate, time.Now()); ok {
		l.log.Warn("HTTP server", "err", string(bytes.TrimSpace(line)), "more_before", unlogged)
	}
	return len(line), nil
}
