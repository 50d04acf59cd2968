package rls

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

const searchRule = `{id: search, match: {route: "GET /search"}, by: [q], limit: {rate: 2/1h, burst: 2}}`

// A request is limited by the keys that it would have in a Go program, and a refusal is answered
// in full.
func TestRequests(t *testing.T) {
	f := open(t, []string{searchRule})
	first := f.ask(Domain, request("/search?q=phone"))
	if first.GetOverallCode() != ok || headersOf(first)["Ratelimit-Policy"] == "" {
		t.Errorf("%v, want it to pass with a header that states the limit", first)
	}
	if s := first.GetStatuses()[0]; s.GetCurrentLimit().GetRequestsPerUnit() != 2 || s.GetLimitRemaining() != 1 || s.GetDurationUntilReset().AsDuration() <= 0 {
		t.Errorf("status %v, want 1 of 2 left", s)
	}
	f.passes(Domain, request("//search?q=%70hone#x"))
	r := f.ask(Domain, request("/a/../search;v=1?q=phone&page=2"))
	if r.GetOverallCode() != over {
		t.Fatalf("%v, want the third request to be over the limit", r)
	}
	var problem struct {
		Status int
		Detail string
	}
	if err := json.Unmarshal(r.GetRawBody(), &problem); err != nil || problem.Status != 429 {
		t.Errorf("body %q: %v", r.GetRawBody(), err)
	}
	got := headersOf(r)
	if got["Content-Type"] != "application/problem+json" || got["Retry-After"] == "" || got["Ratelimit"] == "" || got["Cache-Control"] != "no-store" {
		t.Errorf("headers %v", got)
	}
	if m := r.GetDynamicMetadata().AsMap(); m["status"] != "429" || m["reason"] != "limited" || m["rule"] != "search" {
		t.Errorf("metadata %v", m)
	}
	if !f.passes(Domain, request("/search?q=boat")) || !f.passes(Domain, request("/other?q=phone")) {
		t.Error("another key is refused")
	}
	if s := f.Figures(); s.Passed != 4 || s.Refused != 1 {
		t.Errorf("%+v", s)
	}
}

// Entries other than the query: headers, the caller's address, the gateway's metadata.
func TestEntriesOfARequest(t *testing.T) {
	f := open(t, []string{
		`{id: key, match: {route: "GET /key"}, by: ["header:x-api-key"], limit: {rate: 1/1h, burst: 1}}`,
		`{id: addr, match: {route: "GET /addr"}, by: ["addr:ip"], limit: {rate: 1/1h, burst: 1}}`,
		`{id: tenant, match: {route: "GET /ctx"}, by: ["ctx:tenant"], limit: {rate: 1/1h, burst: 1}}`})
	for path, entry := range map[string]string{"/key": "header:X-Api-Key=", "/addr": "remote_address=10.0.0.", "/ctx": "ctx:tenant="} {
		for i, want := range []bool{true, false} {
			if got := f.passes(Domain, request(path, entry+"1")); got != want {
				t.Errorf("%s: request %d passes: %v", path, i, got)
			}
		}
		if !f.passes(Domain, request(path, entry+"2")) {
			t.Errorf("%s: another value is refused", path)
		}
	}
	f.passes(Domain, request("/key", "x-api-key=1"))
	if n := f.Faults(gateway.UnknownEntry); n != 1 || !strings.Contains(f.Log.String(), "x-api-key") {
		t.Errorf("%d unknown entries\n%s", n, f.Log)
	}
}

// A gRPC client gets a plain sentence, which Envoy sends as grpc-message.
func TestGRPCGetsASentence(t *testing.T) {
	f := open(t, []string{`{id: find, match: {route: "POST /shop.Search/Find"}, by: ["header:x-tenant"], limit: {rate: 1/1m, burst: 1}}`})
	call := descriptor("method=POST", "path=/shop.Search/Find", "header:content-type=application/grpc+proto", "header:x-tenant=a")
	f.passes(Domain, call)
	r := f.ask(Domain, call)
	got := string(r.GetRawBody())
	if r.GetOverallCode() != over || !strings.HasPrefix(got, "too many requests for these parameters; retry in ") {
		t.Errorf("%v, %q", r.GetOverallCode(), got)
	}
	if h := headersOf(r); h["Content-Type"] != "" || h["Retry-After"] == "" {
		t.Errorf("headers %v", h)
	}
}

// The domain is a resource, and all descriptors of a call pass or none.
func TestDescriptorsAreParametersOfAResource(t *testing.T) {
	f := open(t, []string{`{id: login, match: {route: "login"}, by: each, limit: {rate: 2/1h, burst: 2}}`})
	ann, bob := descriptor("user=ann"), descriptor("user=bob")
	f.passes("login", ann)
	f.passes("login", ann)
	for range 3 {
		if got := codesOf(f.ask("login", bob, ann)); !slices.Equal(got, []ratelimit.RateLimitResponse_Code{ok, over}) {
			t.Fatalf("%v, want the second alone over its limit", got)
		}
	}
	first, second, third := f.passes("login", bob), f.passes("login", bob), f.passes("login", bob)
	if !first || !second || third {
		t.Error("bob does not have the 2 requests of his limit: what was refused with another has taken something")
	}
	if !f.passes("logout", ann) {
		t.Error("a resource without a rule is limited")
	}
}

func TestHits(t *testing.T) {
	f := open(t, []string{
		`{id: calls, match: {route: "calls"}, by: [q], limit: {rate: 5/1h, burst: 5}}`,
		`{id: units, match: {route: "units"}, by: [q], count: units, limit: {rate: 5/1h, burst: 5}}`})
	a := func(hits uint64) bool { return f.passes("calls", withHits(descriptor("q=a"), hits)) }
	if !a(3) || a(3) || !a(2) || a(1) || a(0) {
		t.Error("want 3 and then 2 of 5 to pass, 3 not, and nothing after that")
	}
	if f.passes("calls", withHits(descriptor("q=b"), 6)) || !f.passes("calls", withHits(descriptor("q=b"), 0)) || !f.passes("calls", withHits(descriptor("q=b"), 5)) {
		t.Error("want a look, and then 5, to pass; and 6 not")
	}
	if !f.passes("units", withHits(descriptor("q=a"), 100)) || f.passes("units", descriptor("q=a")) {
		t.Error("want the units to be charged after they are known")
	}
	negative := withHits(descriptor("q=a"), 5)
	negative.IsNegativeHits = true
	if !f.passes("calls", negative) || a(1) {
		t.Error("want negative hits to be left out")
	}
	f.passes("calls", withHits(descriptor("q=c"), 1<<40))
	if s := f.Figures(); s.Faults[gateway.Unsupported] != 1 || s.Faults[gateway.TooMany] != 1 {
		t.Errorf("%+v", s)
	}
}

// The end of a request releases its permit and charges its cost, and never counts as a request.
func TestEnds(t *testing.T) {
	f := open(t, []string{
		`{id: slots, match: {route: "GET /slow"}, by: [q], limit: {concurrency: 2}}`,
		`{id: bytes, match: {route: "GET /file"}, by: [q], count: bytes, limit: {rate: 1000/1h, burst: 1000}}`,
		`{id: requests, match: {route: "GET /slow"}, limit: {rate: 100/1h, burst: 100}}`})
	done := func(id, unit string, hits ...uint64) {
		t.Helper()
		d := request("/slow?q=a", "id="+id, "done="+unit)
		if len(hits) > 0 {
			withHits(d, hits[0])
		}
		if !f.passes(Domain, d) {
			t.Error("an end is refused")
		}
	}
	slow := func(id string) bool { return f.passes(Domain, request("/slow?q=a", "id="+id)) }
	if !slow("1") || !slow("2") || slow("3") {
		t.Fatal("want 2 of 3 to pass at a time")
	}
	done("3", "end") // refused: nothing to end
	if slow("4") {
		t.Error("the end of a refused request released a permit")
	}
	done("1", "ms", 120)
	done("1", "ms", 120)
	if !slow("5") || slow("6") {
		t.Error("want one permit to be released by an end, and none by its repetition")
	}
	if s := f.Tickets.Stats(); s.Ended != 1 || s.Repeated != 1 || s.Unknown != 1 || s.Held != 2 {
		t.Errorf("%+v", s)
	}
	// Two requests have one id, and one request reports its cost in several descriptors.
	get := func(id string) bool { return f.passes(Domain, request("/file?q=a", "id="+id)) }
	if first, second := get("x"), get("x"); !first || !second {
		t.Fatal("want both to pass")
	}
	f.passes(Domain, withHits(descriptor("id=x", "done=bytes"), 400), withHits(descriptor("id=x", "done=bytes"), 500), descriptor("id=x", "done=end"))
	if !get("y") {
		t.Error("900 of 1,000 bytes are charged: want more to pass")
	}
	f.passes(Domain, withHits(descriptor("id=x", "done=bytes"), 400))
	if get("z") {
		t.Error("1,300 of 1,000 bytes are charged: want no more to pass")
	}
	if s := f.Tickets.Stats(); s.Ended != 3 || s.Repeated != 1 || s.Unknown != 1 {
		t.Errorf("%+v, want 3 ends, and 2 of nothing", s)
	}
}

// An incomplete or unknown descriptor limits nothing, is counted, and is logged.
func TestUnusableDescriptors(t *testing.T) {
	f := open(t, []string{`{id: slots, match: {route: "*"}, limit: {concurrency: 9}}`})
	for fault, d := range map[string][]string{"incomplete": {"path=/x"}, "no_id": {"method=GET", "path=/x"}, "unknown_entry": {"method=GET", "path=/x", "id=1", "tenant=a"}} {
		if !f.passes(Domain, descriptor(d...)) {
			t.Errorf("%s: refused", fault)
		}
		if n := f.Faults(gateway.Reason(fault)); n != 1 {
			t.Errorf("%s: counted %d times", fault, n)
		}
	}
	f.passes(Domain, request("/x", "id=1", "done=end"))
	f.passes(Domain, descriptor("done=end"))
	many := make([]string, 10_000)
	for i := range many {
		many[i] = "k=v"
	}
	f.passes("other", descriptor(many...))
	if s := f.Figures(); s.Faults[gateway.Incomplete] != 2 || s.Faults[gateway.TooMany] != 1 {
		t.Errorf("%+v", s)
	}
	for _, line := range []string{"needs both method and path", "no entry id", "an unknown key", "too many entries"} {
		if !strings.Contains(f.Log.String(), line) {
			t.Errorf("no line %q in the log:\n%s", line, f.Log)
		}
	}
}

// If a rule makes requests wait, one that cannot be answered in time is refused at once.
func TestWaitsFitTheDeadline(t *testing.T) {
	f := open(t, []string{`{id: wait, match: {route: "GET /w"}, by: [q], limit: {rate: 10/1s, burst: 1, wait: 10s}}`})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	begin := time.Now()
	for range 2 { // the second waits
		if r, err := f.client.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/w?q=a"))}); err != nil || r.GetOverallCode() != ok {
			t.Fatalf("%v, %v", r, err)
		}
	}
	if d := time.Since(begin); d < 90*time.Millisecond {
		t.Errorf("2 requests passed within %v, at 10/s", d)
	}
	slow := []string{`{id: wait, match: {route: "GET /w"}, by: [q], limit: {rate: 1/1m, burst: 1, wait: 10m}}`}
	f = open(t, slow)
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for i, want := range []ratelimit.RateLimitResponse_Code{ok, over} {
		begin := time.Now()
		r, err := f.client.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/w?q=a"))})
		if err != nil || r.GetOverallCode() != want || time.Since(begin) > 5*time.Second {
			t.Errorf("%d: %v, %v after %v", i, r, err, time.Since(begin))
		}
	}
}

func TestHealthAndReflection(t *testing.T) {
	f := open(t, []string{searchRule})
	service := ratelimit.RateLimitService_ServiceDesc.ServiceName
	for _, name := range []string{"", service} {
		r, err := healthpb.NewHealthClient(f.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: name})
		if err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: %v, %v", name, r, err)
		}
	}
	stream, err := reflectionpb.NewServerReflectionClient(f.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	r, err := stream.Recv()
	if err != nil || !strings.Contains(r.String(), service) {
		t.Errorf("%v, %v", r, err)
	}
}

func TestBadCalls(t *testing.T) {
	f := openBounded(t, []string{searchRule}, func(d *Door) { d.maxMessage = 1 << 20 })
	for want, req := range map[codes.Code]*ratelimit.RateLimitRequest{
		codes.InvalidArgument:   {Domain: Domain},
		codes.ResourceExhausted: {Domain: Domain, Descriptors: asList(request("/" + strings.Repeat("x", 1<<20)))},
	} {
		if _, err := f.client.ShouldRateLimit(t.Context(), req); status.Code(err) != want {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if r, err := f.client.ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Descriptors: asList(request("/"))}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("%v, %v", r, err)
	}
	f.Await("counted failures", func() bool { return f.Faults(gateway.Unreadable) == 3 })
	if !f.passes(Domain, request("/search?q="+strings.Repeat("x", 900<<10))) {
		t.Error("a long path is refused")
	}
}

// A peer that sends nothing, or a message byte by byte, loses its own call and blocks no others.
func TestSlowCallsEnd(t *testing.T) {
	f := openBounded(t, []string{searchRule}, func(d *Door) { d.callTimeout, d.maxCalls = 50*time.Millisecond, 1 })
	method := "/" + ratelimit.RateLimitService_ServiceDesc.ServiceName + "/ShouldRateLimit"
	stream, err := f.conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	f.Await("call", func() bool { return f.door.calls.Load() == 1 || f.Faults(gateway.Unreadable) > 0 })
	if err := stream.RecvMsg(new(ratelimit.RateLimitResponse)); err == nil {
		t.Error("a call without a message was answered")
	}
	f.Await("end of the call", func() bool { return f.door.calls.Load() == 0 })
	if !f.passes(Domain, request("/search?q=a")) {
		t.Error("refused")
	}
	f.Await("count", func() bool { return f.Faults(gateway.Slow) == 1 })
	c, err := net.Dial("tcp", f.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("PRI * HTTP/2.0\r\n")); err != nil {
		t.Fatal(err)
	}
	f.Await("end of a connection that does not begin", func() bool { return f.Closed(gateway.Slow) == 1 })
}

// Streams that stay open, as those of health checks may, take no place of calls, and their number
// is bounded.
func TestStreamsAtATimeAreBounded(t *testing.T) {
	f := open(t, []string{searchRule})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range maxOthers[ofStream] {
		s, err := healthpb.NewHealthClient(f.conn).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := healthpb.NewHealthClient(f.conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); status.Code(err) != codes.ResourceExhausted || f.Faults(gateway.Busy) != 1 {
		t.Errorf("%v, %+v", err, f.Figures())
	}
	if !f.passes(Domain, request("/")) {
		t.Error("refused")
	}
	if _, err := healthpb.NewHealthClient(f.conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	cancel()
	f.Await("room", func() bool { return f.door.others[ofStream].Load() == 0 })
}

func TestCallsAtATimeAreBounded(t *testing.T) {
	f := openBounded(t, []string{searchRule}, func(d *Door) { d.maxCalls = 1 })
	f.passes(Domain, request("/"))
	f.door.calls.Add(1)
	_, err := f.client.ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/"))})
	if status.Code(err) != codes.ResourceExhausted || f.Faults(gateway.Busy) != 1 {
		t.Errorf("%v, %+v", err, f.Figures())
	}
	if _, err := healthpb.NewHealthClient(f.conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
	f.door.calls.Add(-1)
	if !f.passes(Domain, request("/")) {
		t.Error("refused")
	}
}

// Connections beyond the bound, or from other networks, are closed.
func TestConnectionsAreBounded(t *testing.T) {
	f := open(t, []string{searchRule}, func(c *gateway.DoorConfig) { c.MaxConnections = 3 })
	f.passes(Domain, request("/"))
	for range 50 {
		c, err := net.Dial("tcp", f.Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	f.Await("48 that give way", func() bool { return f.Closed("idle") == 48 })
	if s := f.Figures(); s.Connections != 3 || !f.passes(Domain, request("/")) {
		t.Errorf("%+v", s)
	}
	// A peer that sends calls gets a place held by a silent one, and keeps it. When all peers
	// send calls, no place is left.
	for range 2 {
		if _, err := ratelimit.NewRateLimitServiceClient(dial(t, f.Addr)).ShouldRateLimit(t.Context(), &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/"))}); err != nil {
			t.Error(err)
		}
	}
	c, err := net.Dial("tcp", f.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f.Await("one without room", func() bool { return f.Closed("full") == 1 })
	if s := f.Figures(); s.Connections != 3 || s.Closed["idle"] != 50 {
		t.Errorf("%+v", s)
	}
}

func TestStrangersAreClosed(t *testing.T) {
	for prefix, want := range map[string]bool{"127.0.0.0/8": true, "10.0.0.0/8": false} {
		f := open(t, []string{searchRule}, func(c *gateway.DoorConfig) { c.Allow = []netip.Prefix{netip.MustParsePrefix(prefix)} })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := f.client.ShouldRateLimit(ctx, &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/"))})
		if (err == nil) != want || (f.Closed("not_allowed") == 0) != want {
			t.Errorf("%s: %v, %+v", prefix, err, f.Figures())
		}
	}
}

func asList(d ...*common.RateLimitDescriptor) []*common.RateLimitDescriptor { return d }

// If a request's client disconnects while Envoy asks, Envoy reports no end of the request, so the
// door holds nothing for it.
func TestCancelledCallsHoldNothing(t *testing.T) {
	f := open(t, []string{`{id: slots, match: {route: "*"}, limit: {concurrency: 1}}`})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.door.ShouldRateLimit(gone, &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: asList(request("/", "id=1"))}); err != nil {
		t.Fatal(err)
	}
	if s := f.Tickets.Stats(); s.Held != 0 {
		t.Errorf("%+v, want nothing to be held", s)
	}
	if !f.passes(Domain, request("/", "id=2")) {
		t.Error("the permit was not given back")
	}
}
