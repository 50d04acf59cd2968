package cachetests

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"time"
)

// outcome is how a test ended.
type outcome struct {
	failure  string // the first expectation that is not met, or empty
	statuses string // Cache-Status of all responses
}

func (o outcome) passed() bool { return o.failure == "" }

// client makes the requests of a test, and checks the responses and what the origin saw.
type client struct {
	test      *suiteTest
	origin    *origin
	dial      func() (net.Conn, error)
	outcome   outcome
	responses []*response
}

// response is a response with its body.
type response struct {
	*http.Response
	body    string
	interim []interim
}

// header returns the values of a header as one, as Fetch does.
func (r *response) header(name string) string { return strings.Join(r.Header.Values(name), ", ") }

// assert records the first expectation that is not met. isSetup marks one that only prepares.
func (c *client) assert(isSetup, ok bool, format string, args ...any) {
	if ok || !c.outcome.passed() {
		return
	}
	c.outcome.failure = fmt.Sprintf(format, args...)
	if isSetup {
		c.outcome.failure = "setup: " + c.outcome.failure
	}
}

// run makes all requests, one after the other, and returns the outcome.
func (c *client) run() outcome {
	for i := range c.test.Requests {
		c.origin.begin(i)
		r, err := c.send(i)
		if r.Response != nil {
			c.responses = append(c.responses, r)
			c.outcome.statuses += r.header("Cache-Status") + "\n"
		}
		c.assert(false, err == nil, "request %d: %v", i+1, err)
		if err == nil {
			c.checkResponse(i, r)
		}
		if !c.outcome.passed() {
			return c.outcome
		}
		if c.test.Requests[i].PauseAfter {
			time.Sleep(3 * time.Second)
		}
	}
	c.checkOrigin()
	return c.outcome
}

// send makes a request over a connection of its own, so none is made twice.
func (c *client) send(index int) (*response, error) {
	x := &c.test.Requests[index]
	location := "/test/" + c.origin.body
	if x.Filename != "" {
		location += "/" + x.Filename
	}
	if x.QueryArg != "" {
		location += "?" + x.QueryArg
	}
	r := &response{}
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error {
			r.interim = append(r.interim, interim{status, http.Header(h)})
			return nil
		},
	})
	request, err := http.NewRequestWithContext(ctx, x.Method, "http://example.com"+location, strings.NewReader(x.RequestBody))
	if err != nil {
		return r, err
	}
	for _, f := range x.RequestHeaders {
		now := time.Now()
		if x.MagicIMS && index > 0 {
			now, _ = time.Parse(time.RFC3339Nano, c.responses[index-1].Header.Get("Server-Now"))
		}
		value := f.value(x, now, "")
		if earlier := request.Header.Get(f.name); earlier != "" {
			value = earlier + ", " + value // as Fetch does
		}
		request.Header.Set(f.name, value)
	}
	transport := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return c.dial() },
		DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	if r.Response, err = transport.RoundTrip(request); err != nil {
		if x.Disconnect { // a gateway would answer so
			r.Response, err = &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{}}, nil
		}
		return r, err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	r.body = string(body)
	return r, err
}

// checkResponse checks what the client received.
func (c *client) checkResponse(index int, r *response) {
	x := &c.test.Requests[index]
	n := index + 1
	count := number(r.Header.Get("Server-Request-Count"))
	setup := x.isSetup("expected_type")
	switch x.ExpectedType {
	case "cached":
		c.assert(setup, r.StatusCode == http.StatusNotModified && count < 0 || count > 0 && count < n, "response %d is not cached", n)
	case "not_cached":
		c.assert(setup, count == n, "response %d is cached", n)
	}

	switch status := number(string(x.ExpectedStatus)); {
	case len(x.ExpectedStatus) > 0:
		c.assert(x.isSetup("expected_status"), status < 0 || r.StatusCode == status, "status %d, not %d", r.StatusCode, status)
	case x.status() > 0:
		c.assert(true, r.StatusCode == x.status(), "status %d, not %d", r.StatusCode, x.status())
	case r.StatusCode == notConditional:
		c.assert(setup, false, "request %d should have been conditional", n)
	default:
		c.assert(true, r.StatusCode == http.StatusOK, "status %d, not 200", r.StatusCode)
	}

	c.checkHeaders(x, n, r)

	if setup := x.isSetup("expected_interim_responses"); x.ExpectedInterim != nil {
		c.assert(setup, len(r.interim) == len(x.ExpectedInterim), "response %d: %d interim responses, not %d", n, len(r.interim), len(x.ExpectedInterim))
		for i, want := range x.ExpectedInterim[:min(len(r.interim), len(x.ExpectedInterim))] {
			c.assert(setup, r.interim[i].status == want.status, "interim response %d", r.interim[i].status)
			for name := range want.header {
				c.assert(setup, r.interim[i].header.Get(name) == want.header.Get(name), "interim response without %s", name)
			}
		}
	}

	switch {
	case x.CheckBody != nil && !*x.CheckBody:
	case len(x.ExpectedText) > 0:
		var want *string
		_ = json.Unmarshal(x.ExpectedText, &want)
		c.assert(x.isSetup("expected_response_text"), want == nil || r.body == *want, "response %d: body %q, not %s", n, r.body, x.ExpectedText)
	case x.ResponseBody != "":
		c.assert(true, r.body == x.ResponseBody, "response %d: body %q, not %q", n, r.body, x.ResponseBody)
	case r.StatusCode != http.StatusNoContent && r.StatusCode != http.StatusNotModified && x.Method != http.MethodHead:
		c.assert(true, r.body == c.origin.body, "response %d: body %q, not %q", n, r.body, c.origin.body)
	}
}

func (c *client) checkHeaders(x *exchange, n int, r *response) {
	setup := x.isSetup("expected_response_headers")
	for _, f := range x.ExpectedResponseHeaders {
		got := r.header(f.name)
		c.assert(setup, len(r.Header.Values(f.name)) > 0, "response %d: no %s", n, f.name)
		switch {
		case len(f.args) == 0:
		case f.args[0] == ">":
			c.assert(setup, number(got) > int(f.args[1].(float64)), "response %d: %s: %s", n, f.name, got)
		default:
			now, _ := time.Parse(time.RFC3339Nano, r.Header.Get("Server-Now"))
			want := f.value(x, now, "")
			c.assert(setup, got == want, "response %d: %s: %s, not %s", n, f.name, got, want)
		}
	}
	setup = x.isSetup("expected_response_headers_missing")
	for _, f := range x.ExpectedMissingHeaders {
		got := r.header(f.name)
		if len(f.args) > 0 {
			c.assert(setup, !strings.Contains(got, f.args[0].(string)), "response %d: %s: %s", n, f.name, got)
			continue
		}
		c.assert(setup, len(r.Header.Values(f.name)) == 0, "response %d: unexpected %s: %s", n, f.name, got)
	}
}

// checkOrigin checks what the origin saw of the requests that are not answered by the cache, and
// that the client received the origin's headers.
func (c *client) checkOrigin() {
	c.origin.mu.Lock()
	defer c.origin.mu.Unlock()
	next := 0
	for i, r := range c.responses {
		x := &c.test.Requests[i]
		if x.ExpectedType == "cached" {
			continue
		}
		var s *seen
		if next < len(c.origin.seen) {
			s = &c.origin.seen[next]
		}
		next++
		setup := x.isSetup("expected_type")
		if s == nil {
			c.assert(setup, x.ExpectedType == "" && x.ExpectedMethod == "" && len(x.ExpectedRequestHeaders) == 0,
				"request %d did not reach the origin", i+1)
			continue
		}
		switch x.ExpectedType {
		case "not_cached":
			c.assert(setup, s.index == i, "response %d is cached", i+1)
		case "etag_validated":
			c.assert(setup, len(s.header["If-None-Match"]) > 0, "request %d has no If-None-Match", i+1)
		case "lm_validated":
			c.assert(setup, len(s.header["If-Modified-Since"]) > 0, "request %d has no If-Modified-Since", i+1)
		}
		for _, f := range x.ExpectedRequestHeaders {
			got := s.header.Get(f.name)
			c.assert(x.isSetup("expected_request_headers"), got != "" && (len(f.args) == 0 || got == f.args[0]), "request %d: %s: %q", i+1, f.name, got)
		}
		for name, values := range s.stored {
			if name != "Date" {
				c.assert(true, r.header(name) == strings.Join(values, ", "), "response %d: %s: %q, not %q", i+1, name, r.header(name), values)
			}
		}
		if x.ExpectedMethod != "" {
			c.assert(x.isSetup("expected_method"), s.method == x.ExpectedMethod, "request %d: method %s", i+1, s.method)
		}
	}
}
