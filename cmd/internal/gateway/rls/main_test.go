package rls

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	ok   = ratelimit.RateLimitResponse_OK
	over = ratelimit.RateLimitResponse_OVER_LIMIT
)

// fixture is a served door with a client.
type fixture struct {
	*gatewaytest.Fixture
	t      *testing.T
	door   *Door
	conn   *grpc.ClientConn
	client ratelimit.RateLimitServiceClient
}

// open serves a door of these rules, each written as {…}.
func open(t *testing.T, rules []string, change ...func(*gateway.DoorConfig)) *fixture {
	t.Helper()
	return openBounded(t, rules, func(*Door) {}, change...)
}

// openBounded is like open, with other bounds of the door.
func openBounded(t *testing.T, rules []string, bound func(*Door), change ...func(*gateway.DoorConfig)) *fixture {
	t.Helper()
	around := gatewaytest.New(t, gatewaytest.Rules(rules...), gateway.Config{TrustCaller: true})
	c := gateway.DoorConfig{Decider: around.Decider, Tickets: around.Tickets, Log: around.Logger}
	for _, f := range change {
		f(&c)
	}
	door, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	bound(door)
	around.Serve(door)
	conn := dial(t, around.Addr)
	return &fixture{around, t, door, conn, ratelimit.NewRateLimitServiceClient(conn)}
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// descriptor returns a descriptor of entries "key=value".
func descriptor(entries ...string) *common.RateLimitDescriptor {
	d := new(common.RateLimitDescriptor)
	for _, e := range entries {
		key, value, _ := strings.Cut(e, "=")
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: key, Value: value})
	}
	return d
}

func withHits(d *common.RateLimitDescriptor, hits uint64) *common.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(hits)
	return d
}

// request returns the descriptor of a GET.
func request(path string, entries ...string) *common.RateLimitDescriptor {
	return descriptor(append([]string{"method=GET", "path=" + path}, entries...)...)
}

// ask calls the door with a timeout of a second.
func (f *fixture) ask(domain string, descriptors ...*common.RateLimitDescriptor) *ratelimit.RateLimitResponse {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
	defer cancel()
	r, err := f.client.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: domain, Descriptors: descriptors})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(r.GetStatuses()) != len(descriptors) {
		f.t.Fatalf("%d statuses for %d descriptors", len(r.GetStatuses()), len(descriptors))
	}
	return r
}

// passes reports whether the descriptors pass.
func (f *fixture) passes(domain string, descriptors ...*common.RateLimitDescriptor) bool {
	f.t.Helper()
	return f.ask(domain, descriptors...).GetOverallCode() == ok
}

// codesOf returns the codes of the statuses.
func codesOf(r *ratelimit.RateLimitResponse) (codes []ratelimit.RateLimitResponse_Code) {
	for _, s := range r.GetStatuses() {
		codes = append(codes, s.GetCode())
	}
	return codes
}

// headersOf returns the headers that are added to the response.
func headersOf(r *ratelimit.RateLimitResponse) map[string]string {
	all := make(map[string]string)
	for _, h := range r.GetResponseHeadersToAdd() {
		all[h.GetKey()] = h.GetValue()
	}
	return all
}

// raw is an encoded message.
type raw string

// rawCodec sends raw messages.
type rawCodec struct{ codec }

func (c rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	if text, ok := v.(raw); ok {
		return mem.BufferSlice{mem.SliceBuffer(text)}, nil
	}
	return c.codec.Marshal(v)
}

func rawCall() grpc.CallOption { return grpc.ForceCodecV2(rawCodec{newCodec()}) }
