package spoe

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam"
)

// Of an ACK's actions only set-var is used, in the scope of the transaction, so that a variable
// is there for the response too and is gone with the request.
const (
	actionSetVar     = 1
	scopeTransaction = 2
)

// actions appends the actions of one ACK.
type actions struct {
	buf []byte
	max int // length of the whole frame; a variable that does not fit is left out
}

// set begins a variable; the value follows.
func set(b []byte, name string) []byte {
	return appendText(append(b, actionSetVar, 3, scopeTransaction), name)
}

// keep makes b the actions if it is not too long, and reports whether it was kept.
func (a *actions) keep(b []byte) bool {
	if len(b)-lengthSize > a.max {
		return false
	}
	a.buf = b
	return true
}

func (a *actions) setBool(name string, v bool) { a.keep(appendBool(set(a.buf, name), v)) }

func (a *actions) setInt(name string, n int64) { a.keep(appendInt64(set(a.buf, name), n)) }

func (a *actions) setString(name, v string) bool { return a.keep(appendString(set(a.buf, name), v)) }

// setDecision sets what HAProxy's configuration may use of a decision:
//
//	allowed   whether the request passes
//	status    of the answer in place of the application's; not set if the request passes
//	body      of that answer
//	reason    in one word, as metrics have it
//	rule      that decided
//	retry_after, ratelimit, ratelimit_policy, content_type, …
//	          headers of the answer, or to add to the application's response
//
// It reports whether all of it fitted in the frame: the body is what may not, and comes last.
func (a *actions) setDecision(d *hotparam.Decision) bool {
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

// variableOf returns the variable of a header: ratelimit_policy for RateLimit-Policy. It is
// empty for a header that has none.
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

// A ticket travels to HAProxy and back as the id by which it is held and the time at which the
// request began, in milliseconds since the Unix epoch. So the door needs no memory of its own
// to know how long a request took.

func joinTicket(id string, began time.Time) string {
	return id + "." + strconv.FormatInt(began.UnixMilli(), 36)
}

// splitTicket returns the id of a ticket and how long ago its request began.
func splitTicket(ticket string, now time.Time) (id string, took time.Duration, ok bool) {
	at := strings.LastIndexByte(ticket, '.')
	if at <= 0 {
		return "", 0, false
	}
	began, err := strconv.ParseInt(ticket[at+1:], 36, 64)
	if err != nil {
		return "", 0, false
	}
	return ticket[:at], max(0, now.Sub(time.UnixMilli(began))), true
}
