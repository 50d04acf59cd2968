package hpconnect

import (
	"errors"
	"maps"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hotparam/hotparam/middleware/rpc"
)

// errorOf returns the error of a refusal with its details and metadata.
func errorOf(r *rpc.Refusal) *connect.Error {
	e := connect.NewError(connect.Code(r.Code), errors.New(r.Message))
	details := []proto.Message{&errdetails.ErrorInfo{Reason: r.Reason(), Domain: rpc.Domain, Metadata: map[string]string{"rule": r.Decision.Rule}}}
	if r.Wait > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(r.Wait)})
	}
	if r.OverQuota() {
		details = append(details, &errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{
			Subject: "rule:" + r.Decision.Rule, Description: "the limit of this rule", QuotaId: r.Decision.Rule,
		}}})
	}
	for _, message := range details {
		if detail, err := connect.NewErrorDetail(message); err == nil {
			e.AddDetail(detail)
		}
	}
	maps.Copy(e.Meta(), r.Header)
	return e
}
