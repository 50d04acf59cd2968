package rls

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/hotparam/hotparam/middleware/rpc"
	"github.com/hotparam/hotparam/rules"
)

// passed is the shared response to the most common call: one descriptor, to which no limit
// applies.
var passed = &ratelimit.RateLimitResponse{
	OverallCode: ratelimit.RateLimitResponse_OK,
	Statuses:    []*ratelimit.RateLimitResponse_DescriptorStatus{{Code: ratelimit.RateLimitResponse_OK}},
}

// answer returns the response to a call of n descriptors. decisions holds those of the first
// len(decisions) descriptors; the rest pass.
func answer(asks []ask, decisions []rules.Decision, n int) *ratelimit.RateLimitResponse {
	if n == 1 && decisions[0].Allowed && decisions[0].From == nil && decisions[0].Limit == 0 {
		return passed
	}
	r := &ratelimit.RateLimitResponse{
		OverallCode: ratelimit.RateLimitResponse_OK,
		Statuses:    make([]*ratelimit.RateLimitResponse_DescriptorStatus, n),
	}
	decider := -1
	for i := range r.Statuses {
		if i >= len(decisions) {
			r.Statuses[i] = passed.Statuses[0]
			continue
		}
		r.Statuses[i] = statusOf(&decisions[i])
		if decider < 0 || isWorse(&decisions[i], &decisions[decider]) {
			decider = i
		}
	}
	d := &decisions[decider]
	a := d.Answer()
	if d.Allowed {
		r.ResponseHeadersToAdd = headers(a.Header)
		return r
	}
	r.OverallCode = ratelimit.RateLimitResponse_OVER_LIMIT
	r.DynamicMetadata = metadataOf(d, a.Status)
	if isGRPC(asks) {
		refusal := rpc.NewRefusal(context.Background(), *d, a, nil)
		r.RawBody = []byte(refusal.Message) // which becomes grpc-message
		r.ResponseHeadersToAdd = headers(refusal.Header)
	} else {
		r.RawBody = a.Body
		r.ResponseHeadersToAdd = headers(a.Header)
	}
	return r
}

// isWorse reports whether d takes precedence over than. A refusal precedes a pass. Among
// refusals, one that no retry helps comes first, then the longest RetryAfter. Among passes, the
// least Remaining comes first.
func isWorse(d, than *rules.Decision) bool {
	switch {
	case d.Allowed != than.Allowed:
		return than.Allowed
	case !d.Allowed:
		if final, other := d.RetryAfter == 0, than.RetryAfter == 0; final != other {
			return final
		}
		return d.RetryAfter > than.RetryAfter
	case d.Limit == 0 || than.Limit == 0:
		return d.Limit > 0 && than.Limit == 0
	}
	return d.Remaining < than.Remaining
}

// statusOf returns the status of one descriptor, from which Envoy makes its X-RateLimit headers
// (enable_x_ratelimit_headers). The limit has no unit: it is the size of a bucket, and ResetAfter
// is the time until the bucket is full.
func statusOf(d *rules.Decision) *ratelimit.RateLimitResponse_DescriptorStatus {
	s := &ratelimit.RateLimitResponse_DescriptorStatus{Code: ratelimit.RateLimitResponse_OK}
	if !d.Allowed {
		s.Code = ratelimit.RateLimitResponse_OVER_LIMIT
	}
	if d.Limit > 0 {
		s.CurrentLimit = &ratelimit.RateLimitResponse_RateLimit{Name: d.Rule, RequestsPerUnit: toUint32(d.Limit)}
		s.LimitRemaining = toUint32(d.Remaining)
		s.DurationUntilReset = durationpb.New(d.ResetAfter)
	}
	return s
}

func toUint32(n int64) uint32 { return uint32(max(0, min(n, 1<<32-1))) }

// metadataOf returns the metadata of a refusal, for Envoy's access log and for a
// local_reply_config that sets the status of the response: the filter itself has one status for
// all refusals.
func metadataOf(d *rules.Decision, status int) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"reason": structpb.NewStringValue(d.Reason.String()),
		"rule":   structpb.NewStringValue(d.Rule),
		"status": structpb.NewStringValue(strconv.Itoa(status)),
	}}
}

// headers returns the headers for Envoy to add, sorted by name.
func headers(h map[string][]string) []*core.HeaderValue {
	if len(h) == 0 {
		return nil
	}
	list := make([]*core.HeaderValue, 0, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		for _, value := range h[name] {
			list = append(list, &core.HeaderValue{Key: name, Value: value})
		}
	}
	return list
}

// isGRPC reports whether any descriptor is a gRPC request.
func isGRPC(asks []ask) bool {
	for i := range asks {
		if list := asks[i].call.Header["Content-Type"]; len(list) > 0 && strings.HasPrefix(list[0], "application/grpc") {
			return true
		}
	}
	return false
}
