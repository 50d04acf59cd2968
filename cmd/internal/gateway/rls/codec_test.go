package rls

import (
	"strings"
	"testing"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
)

func seeds() []*ratelimit.RateLimitRequest {
	negative := withHits(request("/x?q=a", "id=7"), 300)
	negative.IsNegativeHits = true
	return []*ratelimit.RateLimitRequest{
		{}, {Domain: Domain, HitsAddend: 7, Descriptors: asList(request("/"), descriptor(), negative, withHits(descriptor("a="), 0))},
	}
}

// The codec's own reader reads a message as package proto does.
func FuzzReadRequest(f *testing.F) {
	for _, seed := range seeds() {
		b, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("\x12\x08\x0a\x06\x0a\x01k\x12\x01\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, want := new(ratelimit.RateLimitRequest), new(ratelimit.RateLimitRequest)
		ok := readRequest(b, got)
		if err := proto.Unmarshal(b, want); err != nil {
			return
		}
		if !ok {
			t.Fatalf("%x is not read", b)
		}
		for i, d := range want.GetDescriptors() {
			d.Limit, d.HitsAddend, got.GetDescriptors()[i].HitsAddend = nil, nil, nil // whose parts are not merged
		}
		if !proto.Equal(plain(got), plain(want)) {
			t.Errorf("%x:\n got %v\nwant %v", b, got, want)
		}
	})
}

// plain removes the fields that the reader does not know.
func plain(r *ratelimit.RateLimitRequest) *ratelimit.RateLimitRequest {
	r.ProtoReflect().SetUnknown(nil)
	for _, d := range r.GetDescriptors() {
		d.ProtoReflect().SetUnknown(nil)
		for _, e := range d.GetEntries() {
			e.ProtoReflect().SetUnknown(nil)
		}
	}
	return r
}

func TestReadRequest(t *testing.T) {
	for _, want := range seeds() {
		b, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := new(ratelimit.RateLimitRequest)
		if !readRequest(b, got) || !proto.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	for _, bad := range []string{"\x12\xff", "\x12\x02\x0a\x09", "\xff"} {
		if readRequest([]byte(bad), new(ratelimit.RateLimitRequest)) {
			t.Errorf("%q is read", bad)
		}
	}
}

// A header that is not UTF-8 evades no limit.
func TestTextsThatAreNotUTF8(t *testing.T) {
	f := open(t, []string{`{id: key, match: {route: "GET /"}, by: ["header:x-api-key"], limit: {rate: 1/1h, burst: 1}}`})
	for i, want := range []bool{true, false} {
		req := &ratelimit.RateLimitRequest{Domain: Domain, Descriptors: []*common.RateLimitDescriptor{request("/", "header:x-api-key=#")}}
		b, err := proto.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		var r ratelimit.RateLimitResponse
		if err := f.conn.Invoke(t.Context(), ratelimit.RateLimitService_ShouldRateLimit_FullMethodName,
			raw(strings.Replace(string(b), "#", "\xff", 1)), &r, rawCall()); err != nil {
			t.Fatal(err)
		}
		if got := r.GetOverallCode() == ok; got != want {
			t.Errorf("request %d passes: %v", i, got)
		}
	}
}
