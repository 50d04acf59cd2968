package explain

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/hotparam/hotparam/middleware"
)

// RequestJSON is a request to explain, in the form that is sent to a daemon.
type RequestJSON struct {
	Method string `json:"method"`
	// URL is a path with its query, or a whole URL. The host of a whole URL becomes the header
	// Host.
	URL     string      `json:"url"`
	Headers http.Header `json:"headers,omitempty"`
	Body    string      `json:"body,omitempty"`
	// Route is the pattern of the program's router for the request, such as "GET /u/{id}". If it
	// is empty, rules match the path, and keys have the pattern of their rule.
	Route string `json:"route,omitempty"`
	// Client is the address of the connection's peer, or empty if it is unknown.
	Client string `json:"client,omitempty"`
	// Resource is the name of a resource that is not HTTP. It replaces Method, URL, Body and
	// Route. Params are the parameters of its request; names that begin with "rpc:" are fields of
	// an RPC's message.
	Resource string     `json:"resource,omitempty"`
	Params   url.Values `json:"params,omitempty"`
}

// MaxBody is the largest body that is explained, in bytes.
const MaxBody = 4 << 20

// guarded returns the request in the form that a guard gets.
func (q *RequestJSON) guarded() (middleware.Request, error) {
	if q.Resource != "" {
		return q.ofResource()
	}
	none := middleware.Request{}
	u, err := url.Parse(q.URL)
	switch {
	case q.Method == "":
		return none, errors.New("the method is missing: want METHOD URL, such as GET '/search?q=phone'")
	case err != nil || !strings.HasPrefix(u.Path, "/"):
		return none, fmt.Errorf("URL %q: want a path such as '/search?q=phone', or a whole URL", q.URL)
	case len(q.Body) > MaxBody:
		return none, fmt.Errorf("the body has %d bytes, want at most %d", len(q.Body), MaxBody)
	}
	in, err := http.NewRequest(q.Method, u.String(), strings.NewReader(q.Body)) //nolint:noctx // it is not sent
	if err != nil {
		return none, err
	}
	if q.Body == "" {
		in.Body = http.NoBody
	}
	if err := q.address(in); err != nil {
		return none, err
	}
	return middleware.Request{
		Method: q.Method, Path: u.EscapedPath(), Query: u.RawQuery, Pattern: q.Route, HTTP: in,
	}, nil
}

// ofResource returns a request for a resource in the form that a guard gets from Enter, or from
// an adapter for RPCs.
func (q *RequestJSON) ofResource() (middleware.Request, error) {
	if q.Method != "" || q.URL != "" || q.Body != "" || q.Route != "" {
		return middleware.Request{}, errors.New("a resource has parameters, and neither a method, a URL, a body nor a route")
	}
	in := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/" + q.Resource}, Header: make(http.Header), Body: http.NoBody}
	if err := q.address(in); err != nil {
		return middleware.Request{}, err
	}
	params, fields := make(url.Values), make(url.Values)
	for name, values := range q.Params {
		if field, ok := strings.CutPrefix(name, "rpc:"); ok {
			fields[field] = values
		} else {
			params[name] = values
		}
	}
	return middleware.Request{
		Pattern: q.Resource, Query: params.Encode(), HTTP: in,
		Field: func(name string, values []string) []string { return append(values, fields[name]...) },
	}, nil
}

// address sets the address of the client and the headers.
func (q *RequestJSON) address(in *http.Request) error {
	in.RemoteAddr = ""
	if q.Client != "" {
		ip, err := netip.ParseAddr(q.Client)
		if err != nil {
			return fmt.Errorf("client %q: want an IP address, such as 203.0.113.7", q.Client)
		}
		in.RemoteAddr = netip.AddrPortFrom(ip, 1).String()
	}
	for name, values := range q.Headers {
		for _, value := range values {
			if http.CanonicalHeaderKey(name) == "Host" { // net/http has it outside of the headers
				in.Host = value
				continue
			}
			in.Header.Add(name, value)
		}
	}
	return nil
}
