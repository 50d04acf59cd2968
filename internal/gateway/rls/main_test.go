package rls

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hotparam/hotparam/attach"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const (
	ok   = ratelimit.RateLimitResponse_OK
	over = ratelimit.RateLimitResponse_OVER_LIMIT
)

// fixture is a door to rules, and a client of it.
type fixture struct {
	t       *testing.T
	door    *Door
	guard   *attach.Hotparam
	tickets *gateway.Tickets
	log     *testenv.Log
	addr    string
	conn    *grpc.ClientConn
	client  ratelimit.RateLimitServiceClient
}

// file is a configuration with these rules, whose Redis and aggregator are away.
func file(t *testing.T, rules ...string) string {
	nowhere := func() string { return fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)) }
	return fmt.Sprintf("namespace: shop\naggregator: {redis: %q}\nstatsd: {addresses: [%q]}\nrules:\n  - %s\n",
		"redis://"+nowhere(), nowhere(), strings.Join(rules, "\n  - "))
}

// openFile opens a file with this text, until the test ends.
func openFile(t *testing.T, log *testenv.Log, text string) *attach.Hotparam {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := attach.Open(t.Context(), path, attach.WithLogger(slog.New(slog.NewTextHandler(log, nil))), gateway.WithContext(),
		attach.WithMiddleware(middleware.WithHeaders()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

func open(t *testing.T, text string, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, log: new(testenv.Log)}
	f.guard = openFile(t, f.log, text)
	log := slog.New(slog.NewTextHandler(f.log, nil))
	decider, err := gateway.New(gateway.Config{Hotparam: f.guard, TrustCaller: true, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	f.tickets = gateway.NewTickets(gateway.TicketsConfig{Log: log})
	testenv.Running(t, f.tickets.Run)
	c := Config{Decider: decider, Tickets: f.tickets, Log: log}
	for _, f := range change {
		f(&c)
	}
	if f.door, err = New(c); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	testenv.Running(t, func(ctx context.Context) error { return f.door.Serve(ctx, l) })
	f.conn = dial(t, f.addr)
	f.client = ratelimit.NewRateLimitServiceClient(f.conn)
	return f
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

// descriptor returns one of entries "key=value".
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

// ask asks within a second.
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

// codes returns the codes of the statuses.
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

// await waits until ready reports true.
func (f *fixture) await(what string, ready func() bool) {
	f.t.Helper()
	for end := time.Now().Add(10 * time.Second); !ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("no %s; %+v\n%s", what, f.door.Stats(), f.log)
		}
	}
}

// raw is a message that is encoded already.
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
