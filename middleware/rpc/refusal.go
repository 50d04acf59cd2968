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

// Code is a status code of gRPC and Connect.
type Code uint32

// Codes of refusals.
const (
	Canceled           Code = 1
	unknown            Code = 2
	invalidArgument    Code = 3
	DeadlineExceeded   Code = 4
	notFound           Code = 5
	permissionDenied   Code = 7
	resourceExhausted  Code = 8
	failedPrecondition Code = 9
	aborted            Code = 10
	unimplemented      Code = 12
	internalError      Code = 13
	unavailable        Code = 14
	dataLoss           Code = 15
	unauthenticated    Code = 16
)

// Domain is the domain of the ErrorInfo of refusals.
const Domain = "github.com/hotparam/hotparam"

// Refusal is the answer to a refused call.
type Refusal struct {
	Code     Code
	Message  string
	Decision rules.Decision
	Request  any         // the message that the guard decided by, or nil
	Header   http.Header // metadata to send, with the names of net/http; it may be nil
	// Wait is how long the client should wait before it retries, or zero if a retry cannot
	// pass.
	Wait time.Duration
}

// Reason returns the reason in the form of an ErrorInfo, such as "LIMITED".
func (r *Refusal) Reason() string { return strings.ToUpper(r.Decision.Reason.String()) }

// OverQuota reports whether the client has exceeded a limit. The answer should then have a
// QuotaFailure.
func (r *Refusal) OverQuota() bool {
	switch r.Decision.Reason {
	case rules.ReasonLimited, rules.ReasonLocked, rules.ReasonServed:
		return r.Code != Canceled && r.Code != DeadlineExceeded
	}
	return false
}

// NewRefusal returns the refusal for a decision whose answer over HTTP is given. If the call's
// context ended while it waited, the refusal has the context's code.
func NewRefusal(ctx context.Context, d rules.Decision, answer rules.Answer, request any) *Refusal {
	r := &Refusal{
		Code: resourceExhausted, Message: "too many requests for these parameters",
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
		r.Code, r.Message = permissionDenied, "not allowed"
		return r
	case rules.ReasonUnread:
		r.Code, r.Message = invalidArgument, "the request cannot be read"
		return r
	case rules.ReasonBusy, rules.ReasonUnavailable:
		r.Code, r.Message = unavailable, "no room for such requests now"
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

// isMessage reports whether a body can be a status's message, which is sent as a header.
func isMessage(body string) bool {
	const longest = 1 << 10
	return body != "" && len(body) <= longest && utf8.ValidString(body)
}

// codeOf returns the code that google.rpc.Code maps to an HTTP status. A status of success
// has none, since a call without a message has not succeeded.
func codeOf(status int) Code {
	switch status {
	case http.StatusBadRequest:
		return invalidArgument
	case http.StatusUnauthorized:
		return unauthenticated
	case http.StatusForbidden:
		return permissionDenied
	case http.StatusNotFound:
		return notFound
	case http.StatusConflict:
		return aborted
	case http.StatusPreconditionFailed:
		return failedPrecondition
	case http.StatusInternalServerError:
		return internalError
	case http.StatusNotImplemented:
		return unimplemented
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return unavailable
	case http.StatusGatewayTimeout:
		return DeadlineExceeded
	}
	return resourceExhausted
}

// metadata returns the headers of an answer, without the headers that describe its body or that
// the protocol reserves.
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
