package rls

import (
	"context"
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

	"github.com/hotparam/hotparam/cmd/internal/connlimit"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

const (
	defaultMaxConnections = 1024
	defaultMaxCalls       = 8192
	defaultMaxMessage     = 2 << 20
	defaultCallTimeout    = 5 * time.Second
	defaultGrace          = 5 * time.Second
)

// maxStreams is the maximum number of in-flight calls of one connection.
const maxStreams = 4096

// maxIdle is the time after which a connection without calls is closed. Envoy's health checks are
// far more frequent.
const maxIdle = 10 * time.Minute

// Door serves Envoy's rate limit service, health and reflection. A call brings its own deadline, so
// the Timeout of its configuration is not used.
type Door struct {
	gateway.DoorConfig
	*gateway.Tally
	conns  *connlimit.Limiter
	calls  atomic.Int64               // calls in flight
	others [otherMethods]atomic.Int64 // health and reflection calls in flight

	maxCalls    int64         // in-flight calls
	maxMessage  int           // bytes of a call
	callTimeout time.Duration // deadline of a call that has no earlier one
	grace       time.Duration // time for in-flight calls to end when Serve's ctx ends

	ratelimit.UnimplementedRateLimitServiceServer
}

// New returns a door. Tickets are required. New starts nothing.
func New(c gateway.DoorConfig) (*Door, error) {
	if err := c.SetDefaults(0, defaultMaxConnections, true); err != nil {
		return nil, err
	}
	return &Door{
		DoorConfig: c, conns: c.Limiter(false),
		Tally: gateway.NewTally(c.Log, []gateway.Reason{
			gateway.Incomplete, gateway.NoID, gateway.UnknownEntry, gateway.TooMany, gateway.Unsupported, gateway.Busy, gateway.Unreadable, gateway.Slow,
		}, []gateway.Reason{gateway.Slow, gateway.Invalid}),
		maxCalls: defaultMaxCalls, maxMessage: defaultMaxMessage, callTimeout: defaultCallTimeout, grace: defaultGrace,
	}, nil
}

// Figures implements [gateway.Door].
func (d *Door) Figures() gateway.Figures { return d.Tally.Figures(d.conns.Stats()) }

// Serve implements [gateway.Door].
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
		kill := time.AfterFunc(d.grace, server.Stop)
		defer kill.Stop()
		server.GracefulStop()
	})
	err := server.Serve(settlingListener{d.conns.Listener(l), d})
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
		grpc.MaxRecvMsgSize(d.maxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.ConnectionTimeout(d.callTimeout), // of handshakes
		grpc.InTapHandle(d.tap),
		grpc.StatsHandler(callStats{d}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 500 * time.Millisecond, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: time.Minute, Timeout: 10 * time.Second}),
	}
	if d.TLS != nil {
		options = append(options, grpc.Creds(countedTLS{credentials.NewTLS(d.TLS), d.conns}))
	}
	return options
}

// countedTLS counts failed TLS handshakes.
type countedTLS struct {
	credentials.TransportCredentials
	conns *connlimit.Limiter
}

// ServerHandshake implements [credentials.TransportCredentials].
func (c countedTLS) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		c.conns.HandshakeFailed(conn.RemoteAddr(), err)
	}
	return secure, info, err
}

// Clone implements [credentials.TransportCredentials].
func (c countedTLS) Clone() credentials.TransportCredentials {
	return countedTLS{c.TransportCredentials.Clone(), c.conns}
}
