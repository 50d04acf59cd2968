package middleware

import (
	"context"
	"net/http"
)

// Request is the part of a request that rules use.
type Request struct {
	// Context ends a wait: a request whose context ends while it waits is refused and
	// returns the permits and tokens that it had taken. A request never waits beyond its
	// context's deadline. With a nil Context, nothing ends a wait.
	Context context.Context
	Method  string
	// Path is the escaped path, as the client sent it.
	Path string
	// Query is the raw query, without "?".
	Query string
	// Pattern is the route's pattern in the router's syntax ("GET /u/{id}", "/u/{id}").
	// If it is empty, the route is unknown, and keys contain the path itself. For requests
	// that are not HTTP, and so have neither Method nor Path, it is the resource, such as
	// "shop.Search/Find" for an RPC; see [Guard.Enter].
	Pattern string
	// Caller is the sender of the request, such as an address or a tenant, or empty if
	// unknown. The most frequent callers of hot keys are reported.
	Caller string

	// NoWait makes the request never wait, as [WithoutWaiting] does for all requests.
	NoWait bool

	// Steps selects the steps of the check.
	Steps Steps
	run   *runCheck // not nil if the limits are asked for a run of the handler

	// HTTP is the net/http request itself; it may be nil. Rules read headers, cookies, the
	// client's address and the body from it, and functions of options get it. A body that was
	// read is replaced by one that reads the same.
	HTTP *http.Request
	// MakeHTTP returns HTTP for a request that is not of net/http, or nil if there is none. It
	// is called at most once, and only if something needs it. The fields that rules and options
	// use suffice: usually Method, URL, Header, Host and RemoteAddr, and for rules by form or
	// json Body and ContentLength.
	MakeHTTP func() *http.Request
	// Field appends the values of a field of an RPC's message, which rules name rpc:name, to
	// values. It appends nothing if the field is not set. A nil Field means that there is no
	// message.
	Field func(name string, values []string) []string
}

// http returns the net/http request, or nil if there is none.
func (in *Request) http() *http.Request {
	if in.HTTP == nil && in.MakeHTTP != nil {
		in.HTTP = in.MakeHTTP()
		in.MakeHTTP = nil
	}
	return in.HTTP
}

// Steps are the steps of a check. A request of a hot key that may be answered together with others
// is checked in two calls: the first counts it, and only if the handler answers it does the second
// ask its limits.
type Steps uint8

// The steps of one call.
const (
	// AllSteps counts the request and asks its limits.
	AllSteps Steps = iota
	// CountStep counts the request. If one of its keys is hot and the key's rule has on_hot, that is
	// all: the decision allows the request with [rules.ReasonShared], and its Answer has [HotHeader].
	// Otherwise it asks the limits too, as for each method but GET and HEAD: no cache answers it.
	CountStep
	// LimitStep asks the limits of a request that CountStep has allowed with ReasonShared.
	LimitStep
)

// counts reports whether the call counts the request.
func (s Steps) counts() bool { return s != LimitStep }

// onlyCounts reports whether the check ends with CountStep if a key of the request is hot. A request
// that is not HTTP has no method.
func (in *Request) onlyCounts() bool {
	return in.Steps == CountStep && (sharesMethod(in.Method) || in.Method == "" && in.Path == "")
}

// sharesMethod reports whether requests with this method may be answered together.
func sharesMethod(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// runCheck is a check of the limits for a run of the handler. The decision on it is that on the
// request which leads the run, unless the run refreshes an older answer, or the request is handled
// alone after it. So it counts once it is known how the request was answered: each request counts
// once.
type runCheck struct {
	made      bool // the limits were asked
	refresh   bool
	decisions []*spreadCount
	shadowed  int64
}

// refreshes reports whether the run refreshes an older answer.
func (c *runCheck) refreshes() bool { return c != nil && c.refresh }
