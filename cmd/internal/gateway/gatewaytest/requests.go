package gatewaytest

import (
	"cmp"
	"net/http"
	"strings"
)

// ClientRequest is one request of a client.
type ClientRequest struct {
	Name   string
	Method string
	Target string      // as in the request's first line
	Header http.Header // headers of the client; may be nil
	Addr   string      // address of the client, without a port
	// Cleaned is the target as seen by an application that cleans paths. Empty means Target.
	Cleaned string
	// Understood is the target in a form that net/http accepts, if it answers 400 to Cleaned.
	// Other applications may be less strict.
	Understood string
	// NoMux is set if a ServeMux does not pass the request on, or if its route has another
	// method than the request. A ServeMux serves HEAD by the pattern of GET, and the key then
	// has that method.
	NoMux bool
}

const longText = 8 << 10

// Requests returns the requests of the suite. Each is sent twice, so that the second one meets
// the limits that the first has used up.
func Requests() []ClientRequest {
	all := []ClientRequest{
		{Name: "plain", Target: "/search?q=phone"},
		{Name: "another value", Target: "/search?q=lamp&page=2"},
		{Name: "no parameters", Target: "/search"},
		{Name: "blocked value", Target: "/search?q=blocked"},
		{Name: "exempt value", Target: "/search?q=exempt"},
		{Name: "no rule", Target: "/nothing/at/all?x=1"},
		{Name: "root", Target: "/"},

		{Name: "escaped letters in a value", Target: "/search?q=%70h%6Fne2"},
		{Name: "escaped letters in a name", Target: "/search?%71=named"},
		{Name: "escaped letters in the path", Target: "/%73earch?q=path"},
		{Name: "plus", Target: "/search?q=a+b"},
		{Name: "space", Target: "/search?q=a%20b"},
		{Name: "lone percent", Target: "/search?q=100%"},
		{Name: "broken escape in a value", Target: "/search?q=%zz%4"},
		{Name: "escaped delimiters", Target: "/search?q=%26%3D%3F%2F%23%25"},
		{Name: "escaped zero byte", Target: "/search?q=a%00b"},
		{Name: "semicolons in the query", Target: "/search?a=1;q=2"},
		{Name: "question marks in the query", Target: "/search?q=what??"},
		{Name: "parameters in another order", Target: "/list?b=2&a=1"},

		{Name: "repeated, two values", Target: "/search?q=one&q=two"},
		{Name: "repeated, the same value", Target: "/search?q=same&q=same"},
		{Name: "empty value", Target: "/search?q="},
		{Name: "no equals sign", Target: "/search?q"},
		{Name: "empty query", Target: "/search?"},
		{Name: "empty parameters", Target: "/search?&&q=gaps&"},
		{Name: "many parameters", Target: "/list?" + strings.Repeat("p=1&q=2&r=3&", 100) + "s=4"},

		{Name: "non-ASCII, escaped", Target: "/search?q=caf%C3%A9"},
		{Name: "non-ASCII, raw", Target: "/search?q=th\u00e9"},
		{Name: "not UTF-8", Target: "/search?q=%ff%fe"},
		{Name: "non-ASCII path, escaped", Target: "/u/%E6%97%A5"},
		{Name: "non-ASCII path, raw", Target: "/u/\u672c"},

		{Name: "8 KiB in a value", Target: "/search?q=" + strings.Repeat("v", longText)},
		{Name: "8 KiB in the path", Target: "/u/" + strings.Repeat("p", longText)},

		{Name: "path value", Target: "/u/7"},
		{Name: "escaped slash in a path value", Target: "/u/a%2Fb"},
		{Name: "rest of the path", Target: "/files/a/b/c"},
		{Name: "slash at the end", Target: "/u/8/"},
		{Name: "broken escape in the path", Target: "/u/%zz", Understood: "/u/%25zz"},

		{Name: "two slashes", Target: "//search?q=slashes", Cleaned: "/search?q=slashes"},
		{Name: "slashes inside", Target: "/files//d///e", Cleaned: "/files/d/e"},
		{Name: "slashes at the end", Target: "/u/9//", Cleaned: "/u/9/"},
		{Name: "dot", Target: "/./search?q=dot", Cleaned: "/search?q=dot"},
		{Name: "two dots", Target: "/x/y/../../search?q=dots", Cleaned: "/search?q=dots"},
		{Name: "dots above the root", Target: "/../../search?q=above", Cleaned: "/search?q=above"},
		{Name: "escaped dots", Target: "/x/%2e%2E/search?q=escaped", Cleaned: "/search?q=escaped"},
		{Name: "parameter of a segment", Target: "/search;v=1?q=segment", Cleaned: "/search?q=segment"},
		{Name: "parameter inside the path", Target: "/u;a=b/10", Cleaned: "/u/10"},
		{Name: "all of these", Target: "/.//x;y/%2e./search;?q=%61ll", Cleaned: "/search?q=all"},
		{Name: "fragment", Target: "/search?q=fragment#top", Cleaned: "/search?q=fragment"},
		{Name: "absolute form", Target: "http://shop.example/search?q=absolute"},
		{Name: "absolute form without a path", Target: "http://shop.example", NoMux: true},

		{Name: "POST", Method: "POST", Target: "/orders?user=ann"},
		{Name: "HEAD", Method: "HEAD", Target: "/search?q=head", NoMux: true},
		{Name: "DELETE", Method: "DELETE", Target: "/search?q=delete"},
		{Name: "a method of its own", Method: "PURGE", Target: "/search?q=purge"},
		{Name: "OPTIONS of the server", Method: "OPTIONS", Target: "*", NoMux: true},

		{Name: "header", Target: "/tenant", Header: http.Header{"X-Tenant": {"acme"}}},
		{Name: "header twice", Target: "/tenant", Header: http.Header{"X-Tenant": {"one", "two"}}},
		{Name: "header with spaces", Target: "/tenant", Header: http.Header{"X-Tenant": {"big shop"}}},
		{Name: "cookie", Target: "/tenant", Header: http.Header{"Cookie": {"a=1; cart=c3; b=2"}}},
		{Name: "address", Target: "/address", Addr: "203.0.113.9"},
		{Name: "IPv6 address", Target: "/address", Addr: "2001:db8:1:2::3"},
		{Name: "address that a client claims", Target: "/address", Addr: "203.0.113.10", Header: http.Header{"X-Forwarded-For": {"198.51.100.1"}}},
	}
	for i := range all {
		r := &all[i]
		r.Method = cmp.Or(r.Method, http.MethodGet)
		r.Addr = cmp.Or(r.Addr, "192.0.2.1")
		r.Cleaned = cmp.Or(r.Cleaned, r.Target)
	}
	return all
}

// routes are the routes of a program with a ServeMux.
var routes = []string{"GET /search", "GET /list", "GET /u/{id}", "GET /files/{rest...}", "GET /tenant", "GET /address", "POST /orders", "/{any...}"}

// rules are the rules of the suite. Rules with hot count keys; the others decide.
const rules = `
  - {id: count-q, match: {route: "GET /search"}, by: [q], hot: 1000000/s}
  - {id: count-all, match: {route: "GET /list"}, by: all, hot: 1000000/s}
  - {id: count-any, match: {route: "*"}, by: [a, b, p, q], key: params, hot: 1000000/s}
  - {id: count-user, match: {route: "GET /u/{id}"}, by: ["path:id"], hot: 1000000/s}
  - {id: count-files, match: {route: "GET /files/{rest...}"}, by: ["path:rest"], hot: 1000000/s}
  - {id: count-tenant, match: {route: "GET /tenant"}, by: ["header:x-tenant"], hot: 1000000/s}
  - {id: count-cart, match: {route: "GET /tenant"}, by: ["cookie:cart"], hot: 1000000/s}
  - {id: count-addr, match: {route: "GET /address"}, by: ["addr:ip"], hot: 1000000/s}
  - {id: q, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}, allow: {q: exempt}, block: {q: blocked}}
  - {id: user, match: {route: "GET /u/{id}"}, by: ["path:id"], limit: {rate: 1/1h, burst: 1}}
  - {id: files, match: {route: "GET /files/{rest...}"}, by: ["path:rest"], limit: {rate: 1/1h, burst: 1}}
  - {id: orders, match: {route: "POST /orders"}, by: [user], limit: {rate: 1/1h, burst: 1}}
  - {id: tenant, match: {route: "GET /tenant"}, by: ["header:x-tenant"], limit: {rate: 1/1h, burst: 1}}
  - {id: address, match: {route: "GET /address"}, by: ["addr:ip"], limit: {rate: 1/1h, burst: 1}}
`
