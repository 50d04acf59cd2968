package spoe

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// The door uses only the action set-var, in the transaction's scope: a variable lasts from the
// request until the end of its response.
const (
	actionSetVar     = 1
	scopeTransaction = 2
)

// actions appends the actions of one ACK.
type actions struct {
	buf []byte
	max int // maximum length of the frame; a variable that does not fit is omitted
}

// appendSetVar appends a set-var action without the value, which the caller appends.
func appendSetVar(b []byte, name string) []byte {
	return appendText(append(b, actionSetVar, 3, scopeTransaction), name)
}

// replace sets the actions to b if b fits in the frame, and reports whether it does.
func (a *actions) replace(b []byte) bool {
	if len(b)-lengthSize > a.max {
		return false
	}
	a.buf = b
	return true
}

func (a *actions) setBool(name string, v bool) { a.replace(appendBool(appendSetVar(a.buf, name), v)) }

func (a *actions) setInt(name string, n int64) { a.replace(appendInt64(appendSetVar(a.buf, name), n)) }

func (a *actions) setString(name, v string) bool {
	return a.replace(appendString(appendSetVar(a.buf, name), v))
}

// setDecision sets the variables of a decision, for HAProxy's configuration:
//
//	allowed   whether the request passes
//	status    status of the response to a refused request; not set if the request passes
//	body      body of that response
//	reason    the reason, in one word, as in metrics
//	rule      the rule that decided
//	retry_after, ratelimit, ratelimit_policy, content_type, …
//	          headers of that response, or to add to the application's response
//
// It reports whether all variables fit in the frame. The body comes last, because it is the most
// likely not to fit.
func (a *actions) setDecision(d *rules.Decision) bool {
	if d.Allowed && d.From == nil && d.Rule == "" {
		a.setBool("allowed", true)
		return true
	}
	answer := d.Answer()
	passes := answer.Status == 0
	a.setBool("allowed", passes)
	if !passes {
		a.setInt("status", int64(answer.Status))
	}
	a.setString("reason", d.Reason.String())
	if d.Rule != "" {
		a.setString("rule", d.Rule)
	}
	all := true
	for _, name := range slices.Sorted(maps.Keys(answer.Header)) {
		if variable := variableOf(name); variable != "" {
			all = a.setString(variable, strings.Join(answer.Header[name], ", ")) && all
		}
	}
	if !passes {
		// HAProxy writes the line end of a body as %0A.
		all = a.setString("body", strings.TrimRight(string(answer.Body), "\r\n")) && all
	}
	return all
}

// ownVariables are the variables that no header may set.
var ownVariables = map[string]bool{"allowed": true, "status": true, "body": true, "reason": true, "rule": true, "ticket": true, "ended": true}

// variableOf returns the variable of a header, such as ratelimit_policy for RateLimit-Policy. It
// returns "" for a header that would set one of ownVariables.
func variableOf(header string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, header)
	if ownVariables[name] {
		return ""
	}
	return name
}

// joinTicket returns a ticket as HAProxy holds it: the id in Tickets, and the time at which the
// request began, in milliseconds since the Unix epoch. The time is in the ticket, so that the
// door need not store it to compute the duration of a request.
func joinTicket(id string, began time.Time) string {
	return id + "." + strconv.FormatInt(began.UnixMilli(), 36)
}

// splitTicket returns the id of a ticket and the time since its request began.
func splitTicket(ticket string, now time.Time) (id string, took time.Duration, ok bool) {
	dot := strings.LastIndexByte(ticket, '.')
	if dot <= 0 {
		return "", 0, false
	}
	began, err := strconv.ParseInt(ticket[dot+1:], 36, 64)
	if err != nil {
		return "", 0, false
	}
	return ticket[:dot], max(0, now.Sub(time.UnixMilli(began))), true
}
