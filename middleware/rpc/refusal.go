package rpc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hotparam/hotparam/rules"
)

// Code is a status code of gRPC, and of Connect.
type Code uint32

// Codes of refusals.
const (
	Canceled           Code = 1
	InvalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	NotFound           Code = 5
	PermissionDenied   Code = 7
	ResourceExhausted  Code = 8
	FailedPrecondition Code = 9
	Aborted            Code = 10
	Unimplemented      Code = 12
	Internal           Code = 13
	Unavailable        Code = 14
	Unauthenticated    Code = 16
)

// Domain is that of the ErrorInfo of refusals.
const Domain = "github.com/hotparam/hotparam"

// Refusal is the answer to a call that is refused.
type Refusal struct {
	Code     Code
	Message  string
	Decision rules.Decision
	Request  any         // the message by which the guard has decided, or nil
	Header   http.Header // metadata to send, with the names of net/http; it may be nil
	// Wait is how long the client should wait before it retries, or zero if a retry cannot
	// pass.
	Wait time.Duration
}

// Reason returns the reason as an ErrorInfo has it, such as "LIMITED".
func (r *Refusal) Reason() string { return strings.ToUpper(r.Decision.Reason.String()) }

// OverQuota reports whether the client has exceeded a limit, in which case a QuotaFailure
// belongs to the answer.
func (r *Refusal) OverQuota() bool {
	switch r.Decision.Reason {
	case rules.ReasonLimited, rules.ReasonLocked, rules.ReasonServed:
		return r.Code != Canceled && r.Code != DeadlineExceeded
	}
	return false
}

// NewRefusal returns the refusal of a decision, whose answer over HTTP is known. A call whose
// context has ended while it waited gets the context's code.
func NewRefusal(ctx context.Context, d rules.Decision, answer rules.Answer, request any) *Refusal {
	r := &Refusal{
		Code: ResourceExhausted, Message: "too many requests for these parameters",
		Decision: d, Request: request, Header: metadata(answer.Header),
	}
	r.Decision.From = nil
	if err := ctx.Err(); err != nil {
		r.Code, r.Message = Canceled, err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			r.Code = DeadlineExceeded
		}
		return r
	}
	switch d.Reason {
	case rules.ReasonNoMatch, rules.ReasonBlocked:
		r.Code, r.Message = PermissionDenied, "not allowed"
		return r
	case rules.ReasonUnread:
		r.Code, r.Message = InvalidArgument, "the request cannot be read"
		return r
	case rules.ReasonBusy, rules.ReasonAway:
		r.Code, r.Message = Unavailable, "no room for such requests now"
		r.Wait = time.Second
	case rules.ReasonServed:
		r.Code = codeOf(answer.Status)
		if text := strings.TrimSpace(string(answer.Body)); isMessage(text) {
			r.Message = text
		}
	}
	if r.Wait = max(r.Wait, d.Backoff, d.RetryAfter); r.Wait > 0 && d.Reason != rules.ReasonServed {
		r.Message += "; retry in " + seconds(r.Wait) + " s"
	}
	return r
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// isMessage reports whether a body can be the message of a status, which is sent as a header.
func isMessage(body string) bool {
	const longest = 1 << 10
	return body != "" && len(body) <= longest && utf8.ValidString(body)
}

// codeOf returns the code that google.rpc.Code maps to a status of HTTP. A status of success
// has none, since a call that has no message has not succeeded.
func codeOf(status int) Code {
	switch status {
	case http.StatusBadRequest:
		return InvalidArgument
	case http.StatusUnauthorized:
		return Unauthenticated
	case http.StatusForbidden:
		return PermissionDenied
	case http.StatusNotFound:
		return NotFound
	case http.StatusConflict:
		return Aborted
	case http.StatusPreconditionFailed:
		return FailedPrecondition
	case http.StatusInternalServerError:
		return Internal
	case http.StatusNotImplemented:
		return Unimplemented
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return Unavailable
	case http.StatusGatewayTimeout:
		return DeadlineExceeded
	}
	return ResourceExhausted
}

// metadata returns the headers of an answer without those that describe its body, or that the
// protocol has for itself.
func metadata(header map[string][]string) http.Header {
	var md http.Header
	for name, values := range header {
		switch name {
		case "Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Te", "Trailer", "Transfer-Encoding", "Upgrade":
			continue
		}
		if strings.HasPrefix(name, "Grpc-") || strings.HasPrefix(name, "Connect-") {
			continue
		}
		if md == nil {
			md = make(http.Header, len(header))
		}
		md[name] = values
	}
	return md
}
