package rls

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/hotparam/hotparam/internal/countset"
	"github.com/hotparam/hotparam/internal/gateway"
)

// Defaults of a [Config].
const (
	DefaultMaxConnections = 1024
	DefaultMaxCalls       = 8192
	DefaultMaxMessage     = 2 << 20
	DefaultCallTimeout    = 5 * time.Second
	DefaultGrace          = 5 * time.Second
)

// maxStreams is the maximum number of in-flight calls of one connection.
const maxStreams = 4096

// maxIdle is the time after which a connection without calls is closed. Envoy's health checks are
// far more frequent.
const maxIdle = 10 * time.Minute

// Config configures a [Door]. Decider and Tickets are required; the rest has defaults.
type Config struct {
	Decider *gateway.Decider
	// Tickets holds requests until their end is reported. Doors may share it.
	Tickets *gateway.Tickets
	// TLS, if not nil, makes the door accept only TLS. Its ClientAuth sets whether peers need
	// a certificate.
	TLS *tls.Config
	// Allow are the networks from which TCP peers may connect. Empty means all.
	Allow gateway.Peers

	MaxConnections int           // open connections; Envoy has one for each of its threads
	MaxCalls       int           // in-flight calls
	MaxMessage     int           // bytes of a call
	CallTimeout    time.Duration // deadline of a call that has no earlier one
	Grace          time.Duration // time for in-flight calls to end when Serve's ctx ends
	Log            *slog.Logger  // nil disables logging
}

// Door serves Envoy's rate limit service, health and reflection. It is safe for concurrent use.
type Door struct {
	config    Config
	stats     counters
	calls     atomic.Int64               // in flight
	others    [otherMethods]atomic.Int64 // health and reflection calls in flight
	complain  complaints
	admission gateway.Admission

	ratelimit.UnimplementedRateLimitServiceServer
}

// New returns a door. It starts nothing.
func New(c Config) (*Door, error) {
	if c.Decider == nil || c.Tickets == nil {
		return nil, errors.New("rls: New needs a Decider and Tickets")
	}
	c.MaxConnections = cmp.Or(c.MaxConnections, DefaultMaxConnections)
	c.MaxCalls = cmp.Or(c.MaxCalls, DefaultMaxCalls)
	c.MaxMessage = cmp.Or(c.MaxMessage, DefaultMaxMessage)
	c.CallTimeout = cmp.Or(c.CallTimeout, DefaultCallTimeout)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	d := &Door{config: c, complain: complaints{log: c.Log}}
	d.admission = gateway.Admission{Peers: c.Allow, Max: c.MaxConnections, Counters: &d.stats.ConnCounters, Log: c.Log}
	return d, nil
}

// Stats returns the counters.
func (d *Door) Stats() Stats { return countset.Load[Stats](&d.stats) }

// Serve serves the listener until ctx is done, and closes it. In-flight calls then have
// Config.Grace to end. Serve may be called for several listeners.
func (d *Door) Serve(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer(d.options()...)
	ratelimit.RegisterRateLimitServiceServer(server, d)
	state := health.NewServer()
	healthpb.RegisterHealthServer(server, state)
	state.SetServingStatus(ratelimit.RateLimitService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	reflection.Register(server)

	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		state.Shutdown() // Envoys with health checks switch to another guard
		kill := time.AfterFunc(d.config.Grace, server.Stop)
		defer kill.Stop()
		server.GracefulStop()
	})
	err := server.Serve(settlingListener{d.admission.Listener(l), d})
	if !stop() {
		<-ended
		return nil
	}
	server.Stop()
	return err
}

func (d *Door) options() []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(d.config.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(d.config.CallTimeout), // of handshakes
		grpc.InTapHandle(d.tap),
		grpc.StatsHandler(callStats{d}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 500 * time.Millisecond, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: time.Minute, Timeout: 10 * time.Second}),
	}
	if d.config.TLS != nil {
		options = append(options, grpc.Creds(countedTLS{credentials.NewTLS(d.config.TLS), &d.admission}))
	}
	return options
}

// countedTLS counts failed TLS handshakes.
type countedTLS struct {
	credentials.TransportCredentials
	admission *gateway.Admission
}

// ServerHandshake implements [credentials.TransportCredentials].
func (c countedTLS) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		c.admission.Disagreed(conn.RemoteAddr(), err)
	}
	return secure, info, err
}

// Clone implements [credentials.TransportCredentials].
func (c countedTLS) Clone() credentials.TransportCredentials {
	return countedTLS{c.TransportCredentials.Clone(), c.admission}
}
