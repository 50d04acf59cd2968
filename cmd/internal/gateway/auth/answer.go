package auth

import (
	"bytes"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/rules"
)

// Response headers. decisionHeader holds the reason of the decision in one word, so that a script
// can distinguish the door's response from an error page of an intermediary.
const (
	decisionHeader = "X-Hotparam"
	statusHeader   = "X-Hotparam-Status"
	bodyHeader     = "X-Hotparam-Body"
)

// maxHeaderBody is the maximum length of a body that is sent in a header. nginx reads all headers
// of a response into one buffer of 4 KiB, and treats a response that does not fit as an error.
const maxHeaderBody = 2 << 10

// answer sends the decision to a gateway. If the gateway cannot send a refusal's response to the
// client unchanged, as with a success status (on_limit: serve), it sends a plain 429 instead.
func (d *Door) answer(w http.ResponseWriter, s Scheme, decision rules.Decision) {
	a := decision.Answer()
	w.Header()[decisionHeader] = []string{decision.Reason.String()}
	d.Decided(a.Status == 0)
	if a.Status == 0 {
		maps.Copy(w.Header(), a.Header)
		w.WriteHeader(s.success())
		return
	}
	if !sendable(s, &a) {
		d.Fault(gateway.Unsendable, "")
		a = plainAnswer(decision, a.Header)
	}
	refuse(w, s, &a)
}

// refuse sends a refusal that the scheme can carry.
func refuse(w http.ResponseWriter, s Scheme, a *rules.Answer) {
	header := w.Header()
	maps.Copy(header, a.Header)
	if s == Nginx {
		header[statusHeader] = []string{strconv.Itoa(a.Status)}
		header[bodyHeader] = []string{string(bytes.TrimRight(a.Body, "\r\n"))}
		header["Content-Length"] = []string{"0"}
		w.WriteHeader(http.StatusForbidden)
		return
	}
	header["Content-Length"] = []string{strconv.Itoa(len(a.Body))}
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body) // the gateway may have closed the connection
}

// repeated returns the response to a request that repeats a header of the scheme. One of the
// values may be the client's, and their order does not show which.
func repeated(header string) *rules.Answer {
	return &rules.Answer{
		Status: http.StatusBadRequest,
		Header: http.Header{"Content-Type": {"application/problem+json"}},
		Body:   gateway.ProblemBody(http.StatusBadRequest, header+" is given more than once"),
	}
}

// plainAnswer returns the default response to a refusal, with the rate limit headers of stated.
func plainAnswer(d rules.Decision, stated http.Header) rules.Answer {
	d.From = nil
	switch d.Reason {
	case rules.ReasonServed, rules.ReasonBusy, rules.ReasonUnavailable: // 429 in place of 503
		d.Reason, d.Backoff = rules.ReasonLimited, max(d.Backoff, time.Second)
	}
	a := d.Answer()
	for name, values := range stated {
		if _, set := a.Header[name]; !set && strings.Contains(strings.ToLower(name), "ratelimit") {
			a.Header[name] = values
		}
	}
	return a
}

// sendable reports whether the scheme can carry a refusal. A success status never can. Envoy
// treats a status of 500 or more as an error of the door, and lets the request pass. nginx
// receives the body as one line in a header, and sends it with a fixed Content-Type from its
// configuration.
func sendable(s Scheme, a *rules.Answer) bool {
	switch {
	case a.Status < 300, s == Envoy && a.Status >= 500:
		return false
	case s != Nginx:
		return true
	}
	line := bytes.TrimRight(a.Body, "\r\n")
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	return http.Header(a.Header).Get("Content-Type") == "application/problem+json" &&
		len(line) <= maxHeaderBody && utf8.Valid(line) && bytes.IndexFunc(line, isControl) < 0
}
