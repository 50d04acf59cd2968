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

// Request is the request to explain, as it is sent to a daemon.
type Request struct {
	Method string `json:"method"`
	// URL is a path with its query, or a whole URL, whose host is then the header Host.
	URL     string      `json:"url"`
	Headers http.Header `json:"headers,omitempty"`
	Body    string      `json:"body,omitempty"`
	// Route is the pattern of the program's router for the request, such as "GET /u/{id}". If
	// it is empty, rules match the path, and keys have the pattern of their rule.
	Route string `json:"route,omitempty"`
	// Client is the address of the connection's peer. If it is empty, the address is not known.
	Client string `json:"client,omitempty"`
}

// MaxBody is the largest body that is explained, in bytes.
const MaxBody = 4 << 20

// guarded returns the request as a guard gets it.
func (q *Request) guarded() (middleware.Request, error) {
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
	in.RemoteAddr = ""
	if q.Client != "" {
		ip, err := netip.ParseAddr(q.Client)
		if err != nil {
			return none, fmt.Errorf("client %q: want an IP address, such as 203.0.113.7", q.Client)
		}
		in.RemoteAddr = netip.AddrPortFrom(ip, 1).String()
	}
	for name, values := range q.Headers {
		for _, value := range values {
			if http.CanonicalHeaderKey(name) == "Host" { // which net/http takes out of the headers
				in.Host = value
				continue
			}
			in.Header.Add(name, value)
		}
	}
	return middleware.Request{
		Method: q.Method, Path: u.EscapedPath(), Query: u.RawQuery, Pattern: q.Route, HTTP: in,
	}, nil
}
