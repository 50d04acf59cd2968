package hpgrpc

import (
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hotparam/hotparam/middleware/rpc"
)

// MaxPushback is the longest wait after which a client is made to retry automatically. For a
// longer wait the application decides. RetryInfo has the length of the wait.
const MaxPushback = time.Minute

// statusOf returns the status of a refusal with its details.
func statusOf(r *rpc.Refusal) *status.Status {
	s := status.New(codes.Code(r.Code), r.Message)
	details := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: r.Reason(), Domain: rpc.Domain, Metadata: map[string]string{"rule": r.Decision.Rule}}}
	if r.Wait > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.Wait)})
	}
	if r.OverQuota() {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject: "rule:" + r.Decision.Rule, Description: "the limit of this rule", QuotaId: r.Decision.Rule,
		}}})
	}
	if with, err := s.WithDetails(details...); err == nil {
		return with
	}
	return s
}

// trailer returns the metadata of a refusal. None of it is a header, since clients retry only
// calls whose answer has no headers.
func trailer(r *rpc.Refusal) metadata.MD {
	md := metadataOf(r.Header)
	switch {
	case r.Code == rpc.Canceled || r.Code == rpc.DeadlineExceeded:
		// The call's own deadline or cancellation ended it, so no retry is asked for or forbidden.
	case r.Wait <= 0 || r.Wait > MaxPushback:
		md.Set("grpc-retry-pushback-ms", "-1")
	default:
		ms := (r.Wait + time.Millisecond - 1) / time.Millisecond
		md.Set("grpc-retry-pushback-ms", strconv.FormatInt(int64(ms), 10))
	}
	return md
}
