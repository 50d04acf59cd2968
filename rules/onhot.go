package rules

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// OnHot says how requests of a rule's hot keys are answered before their limit is asked:
// identical ones once, and from memory. Only GET and HEAD requests without a body are.
type OnHot struct {
	Coalesce bool          // identical requests join the one under way
	Cache    time.Duration // time for which an answer is fresh; zero stores none
	Stale    time.Duration // time after Cache in which an answer is used while it is refreshed, or while the handler fails
	Wait     time.Duration // time that a request waits for the one it joined
	Max      int64         // bytes of the largest answer
	Total    int64         // bytes of all answers of the rule in a process
	// Vary has the headers and cookies that identify an answer, as "header:NAME" and "cookie:NAME".
	// All others are kept from the handler. If it names cookies, requests with cookies are shared,
	// and their other cookies are kept from the handler too.
	Vary   []string
	Status []int // statuses that are shared
}

// Defaults of an [OnHot].
const (
	defaultOnHotWait  = 300 * time.Millisecond
	defaultOnHotMax   = 1 << 20
	defaultOnHotTotal = 64 << 20
)

// Bounds of an [OnHot].
const (
	maxOnHotCache = time.Minute
	maxOnHotStale = 10 * time.Minute
	maxOnHotWait  = 10 * time.Second
	minOnHotTotal = 64 << 10
	maxOnHotTotal = 8 << 30
)

// WithDefaults returns o with the default of each field that is zero. Statuses are sorted.
func (o OnHot) WithDefaults() OnHot {
	if o.Wait == 0 {
		o.Wait = defaultOnHotWait
	}
	if o.Total == 0 {
		o.Total = defaultOnHotTotal
	}
	if o.Max == 0 {
		o.Max = min(defaultOnHotMax, o.Total/4)
	}
	if len(o.Status) == 0 {
		o.Status = []int{200}
	}
	o.Status = slices.Sorted(slices.Values(o.Status))
	return o
}

// Validate reports all errors of o as [FieldErrors].
func (o *OnHot) Validate() error { return o.validate().err() }

func (o *OnHot) validate() (bad FieldErrors) {
	const durations = "for example on_hot: {cache: 500ms, stale: 2s, wait: 300ms}"
	if !o.Coalesce && o.Cache == 0 {
		bad.addSentence("on_hot", "write cache: 500ms, or leave out coalesce: false", "on_hot neither joins requests nor keeps answers: it does nothing").needs("on_hot")
	}
	for _, d := range []struct {
		name          string
		length, bound time.Duration
	}{{"cache", o.Cache, maxOnHotCache}, {"stale", o.Stale, maxOnHotStale}, {"wait", o.Wait, maxOnHotWait}} {
		if d.length < 0 || d.length > d.bound {
			bad.add("on_hot."+d.name, quoted(d.length.String()), durations, "want 1ms to %v", d.bound)
		}
	}
	if o.Stale > 0 && o.Cache == 0 {
		bad.addSentence("on_hot.stale", "add cache: 500ms, or remove stale", "on_hot.stale needs cache: without it no answer is kept").needs("on_hot.cache")
	}
	switch total := o.WithDefaults().Total; {
	case total < minOnHotTotal || total > maxOnHotTotal:
		bad.add("on_hot.total", strconv.FormatInt(o.Total, 10), "for example total: 64MiB", "want 64KiB to 8GiB")
	case o.Max < 0 || o.Max > total/4:
		bad.add("on_hot.max", strconv.FormatInt(o.Max, 10), "lower max, or raise total", "want at most a quarter of total, which is for answers that are being recorded").needs("on_hot.total")
	}
	for i, status := range o.Status {
		field := fmt.Sprintf("on_hot.status[%d]", i)
		switch {
		case status < 200 || status > 499:
			bad.add(field, strconv.Itoa(status), "for example status: [200, 404]", "want 200 to 499; failures are never shared")
		case slices.Contains([]int{206, 304, 401, 407, 412, 416, 421, 429}, status):
			bad.add(field, strconv.Itoa(status), "for example status: [200, 404]", "the status answers one request alone and cannot be shared")
		case slices.Contains(o.Status[:i], status):
			bad.add(field, strconv.Itoa(status), "keep one of them", "the status is named twice")
		}
	}
	for i, text := range o.Vary {
		field := fmt.Sprintf("on_hot.vary[%d]", i)
		switch p, reason, hint := parseVary(text); {
		case reason != "":
			bad.add(field, quoted(text), hint, "%s", reason)
		case slices.ContainsFunc(o.Vary[:i], func(s string) bool { earlier, _, _ := parseVary(s); return earlier == p }):
			bad.add(field, quoted(text), "keep one of them", "it is named twice")
		}
	}
	return bad
}

const varyHint = `for example vary: ["header:accept-language", "cookie:currency"]`

// unsharedHeaders are headers that Vary cannot name: they identify users or connections, or what
// answers requests together acts by them itself.
var unsharedHeaders = []string{
	"authorization", "proxy-authorization", "range", "if-range", "if-match", "if-none-match", "if-modified-since",
	"if-unmodified-since", "cache-control", "pragma", "connection", "upgrade", "te", "trailer", "transfer-encoding",
	"content-length", "expect", "host", "accept-encoding",
}

// parseVary reads one text of [OnHot.Vary]. It returns a reason and a hint for one that is not
// valid.
func parseVary(text string) (p Param, reason, hint string) {
	p, reason, hint = ParseName(text)
	switch {
	case reason != "":
		return p, reason, hint
	case p.Source != Header && p.Source != Cookie:
		return p, "want header:NAME or cookie:NAME", varyHint
	case p.Source == Header && p.Name == "*": // would be the "*" of an answer's Vary, which matches no request
		return p, "no header has this name", "name each header, " + varyHint
	case p.Source == Header && slices.Contains(unsharedHeaders, p.Name):
		return p, "answers cannot be shared by this header", varyHint
	}
	return p, "", ""
}

// Headers returns the names of the headers that identify an answer, in lower case.
func (o *OnHot) Headers() []string { return o.vary(Header) }

// Cookies returns the names of the cookies that identify an answer.
func (o *OnHot) Cookies() []string { return o.vary(Cookie) }

func (o *OnHot) vary(source Source) (names []string) {
	for _, text := range o.Vary {
		if p, reason, _ := parseVary(text); reason == "" && p.Source == source {
			names = append(names, p.Name)
		}
	}
	return names
}

// varies reports whether requests that differ in p never share an answer.
func (o *OnHot) varies(p Param) bool {
	switch p.Source {
	case Query, Path, RPC:
		return true // the target has them, or the message
	case Header:
		return p.Name == "host" || slices.Contains(o.Headers(), p.Name)
	case Cookie:
		return slices.Contains(o.Cookies(), p.Name)
	}
	return false
}

// validateOnHot reports errors of the rule's OnHot, among them all that would let a request
// receive another's answer.
func (r *Rule) validateOnHot(bad *FieldErrors) {
	if r.OnHot == nil {
		return
	}
	*bad = append(*bad, r.OnHot.validate()...)
	switch method := r.Match.Route.method; {
	case len(r.Hot) == 0:
		bad.addSentence("on_hot", "add hot: 200/s", "on_hot needs hot: without it no key of the rule becomes hot").needs("hot")
	case r.Count != Requests:
		bad.addSentence("on_hot", "remove on_hot, or count", "on_hot is for rules that count requests: an answer from memory costs nothing, so the key would cool while it is asked for").needs("count")
	case method != "" && method != "GET" && method != "HEAD":
		bad.addSentence("on_hot", "remove on_hot", "on_hot: answers to %s are never shared, only those to GET and HEAD", method).needs("match")
	}
	for _, p := range r.Named() {
		name := p.FormatName()
		switch {
		case r.OnHot.varies(p):
		case p.Source == Ctx || p.Source == Addr:
			bad.addSentence("on_hot", "remove on_hot, or the parameter", "on_hot: the rule distinguishes requests by %s, and those that share an answer differ in it", name).needs("by", "match", "limit", "except")
		case p.Source == Header || p.Source == Cookie:
			bad.addSentence("on_hot.vary", "add "+quoted(name)+" to vary", "on_hot: the rule distinguishes requests by %s, which the shared answer would not depend on", name).needs("by", "match", "limit", "except")
		case p.Source == Form || p.Source == JSON:
			bad.addSentence("on_hot", "remove on_hot, or the parameter", "on_hot: requests with a body are never shared, and %s is read from one", name).needs("by", "match", "limit", "except")
		}
	}
}
