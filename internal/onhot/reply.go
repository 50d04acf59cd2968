package onhot

import (
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How is how a request was answered.
type How uint8

// The ways in which requests are answered. Those from Hit to Led have a reply.
const (
	unknown How = iota
	Hit         // by a fresh answer
	Stale       // by a stale answer
	Joined      // by the answer of the leader that it joined
	Led         // by the answer of its own leader
	Alone       // by the handler itself; the result has a reason
	Refused     // by the limit
	Gone        // not at all: the client left

	hows
)

// String returns the way's name, as in metrics.
func (h How) String() string {
	return [hows]string{"", "hit", "stale", "joined", "led", "alone", "refused", "gone"}[h]
}

// Hows returns all ways, for the labels of counters.
func Hows() (all []How) {
	for h := unknown + 1; h < hows; h++ {
		all = append(all, h)
	}
	return all
}

// Result is what a cache found for a request.
type Result struct {
	How    How
	Reason Reason // of Alone
	answer *Answer
	at     time.Time
}

// Shared reports whether the result has a reply.
func (res *Result) Shared() bool { return res.answer != nil }

// The values of Cache-Status (RFC 9211). Each is shared by many headers.
var (
	statusHit    = []string{"hotparam; hit"}
	statusJoined = []string{"hotparam; fwd=miss; collapsed"}
	statusLed    = []string{"hotparam; fwd=miss"}
)

// Reply adds the headers of the answer to h and returns its status and its body, which must not be
// changed. The conditions of r are judged here (RFC 9110, section 13.2.2), since the leader's
// request had none.
func (res *Result) Reply(r *http.Request, h http.Header) (status int, body []byte) {
	a := res.answer
	status, body = a.status, a.body
	unmodified := status == http.StatusOK && notModified(r.Header, a.header)
	for name, values := range a.header {
		switch {
		case unmodified && (name == "Content-Type" || name == "Content-Length" || name == "Content-Encoding"):
		case name == "Vary" || name == "Cache-Status":
			addValues(h, name, values) // a middleware around may have set its own
		default:
			h[name] = values
		}
	}
	if age := a.age + res.at.Sub(a.received); res.How != Led || a.age > 0 {
		h["Age"] = seconds(age)
	}
	addValues(h, "Cache-Status", res.cacheStatus())
	switch {
	case unmodified:
		return http.StatusNotModified, nil
	case r.Method == http.MethodHead:
		return status, nil
	}
	return status, body
}

// addValues adds values, which many responses share, to a header.
func addValues(h http.Header, name string, values []string) {
	if len(h[name]) == 0 {
		h[name] = slices.Clip(values)
		return
	}
	h[name] = append(slices.Clip(h[name]), values...)
}

func (res *Result) cacheStatus() []string {
	switch res.How {
	case Hit:
		return statusHit
	case Stale:
		over := res.at.Sub(res.answer.received) - res.answer.terms.fresh
		return []string{"hotparam; hit; ttl=-" + strconv.Itoa(1+int(over/time.Second))}
	case Joined:
		return statusJoined
	}
	return statusLed
}

// smallAges are the values of Age for the first seconds, which most answers have.
var smallAges = func() (ages [16][]string) {
	for i := range ages {
		ages[i] = []string{strconv.Itoa(i)}
	}
	return ages
}()

func seconds(d time.Duration) []string {
	if n := int(d / time.Second); n < len(smallAges) {
		return smallAges[n]
	}
	return []string{strconv.FormatInt(int64(d/time.Second), 10)}
}

// notModified reports whether the client's copy is the stored 200.
func notModified(request, answer http.Header) bool {
	if has(request, "If-None-Match") {
		return matchesTag(request["If-None-Match"], answer.Get("Etag"))
	}
	since, ok := parseDate(request["If-Modified-Since"])
	if !ok {
		return false
	}
	modified, ok := parseDate(answer["Last-Modified"])
	return ok && !modified.After(since)
}

// matchesTag reports whether a list of entity tags has one, by the weak comparison.
func matchesTag(list []string, tag string) bool {
	opaque := strings.TrimPrefix(tag, "W/")
	for _, s := range list {
		if textproto.TrimString(s) == "*" {
			return true
		}
		for s != "" {
			s = strings.TrimLeft(s, " \t,")
			s = strings.TrimPrefix(s, "W/")
			if !strings.HasPrefix(s, `"`) {
				break // it is not a list of tags
			}
			end := strings.IndexByte(s[1:], '"')
			if end < 0 {
				break
			}
			if s[:end+2] == opaque {
				return true
			}
			s = s[end+2:]
		}
	}
	return false
}

// Explain adds Cache-Status to the headers of the answer to a request that goes alone.
func (res *Result) Explain(h http.Header) { addValues(h, "Cache-Status", statusAlone[res.Reason]) }
