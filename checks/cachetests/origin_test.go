package cachetests

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// origin is the handler behind the cache. It answers each request as its test says, and records
// what it has seen.
//
// The suite's server finds the number of a request in a header, which a leader's request lacks. So
// the client sets it here. A request whose answer is not for sharing runs the handler twice, as
// leader and alone. It counts once here, by the second run, whose answer the client receives.
type origin struct {
	test *suiteTest
	body string // of responses for which the test states none

	mu      sync.Mutex
	current int    // index of the client's request
	seen    []seen // requests that reached the handler, in their order
	status  int    // of the last response
}

// seen is a request that the handler saw, and its response.
type seen struct {
	index  int
	method string
	header http.Header
	// response has the headers sent, and stored those that the client must receive.
	response, stored http.Header
}

// begin sets the number of the client's request.
func (o *origin) begin(index int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.current = index
}

func (o *origin) lastStatus() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.status
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	index := o.current
	o.mu.Unlock()
	x := &o.test.Requests[index]
	_, _ = io.Copy(io.Discard, r.Body)
	time.Sleep(time.Duration(x.ResponsePause) * time.Second)
	for _, i := range x.InterimResponses {
		for name, values := range i.header {
			w.Header()[name] = values
		}
		w.WriteHeader(i.status)
		clear(w.Header())
	}
	status := o.record(w.Header(), r, index)
	if x.Disconnect {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
	if status != http.StatusNoContent && status != http.StatusNotModified {
		body := o.body
		if x.ResponseBody != "" {
			body = x.ResponseBody
		}
		_, _ = io.WriteString(w, body)
	}
}

// record sets the headers of the response, records the request and returns the status.
func (o *origin) record(h http.Header, r *http.Request, index int) (status int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	x := &o.test.Requests[index]
	if n := len(o.seen); n > 0 && o.seen[n-1].index == index {
		o.seen = o.seen[:n-1]
	}
	now := time.Now()
	h.Set("Server-Request-Count", strconv.Itoa(len(o.seen)+1))
	h.Set("Client-Request-Count", strconv.Itoa(index+1))
	h.Set("Server-Now", now.Format(time.RFC3339Nano))
	s := seen{index: index, method: r.Method, header: r.Header.Clone(), stored: make(http.Header)}
	for _, f := range x.ResponseHeaders {
		h.Add(f.name, f.value(x, now, r.URL.Path))
		if len(f.args) < 2 || f.args[1] == true {
			s.stored[http.CanonicalHeaderKey(f.name)] = h.Values(f.name)
		}
	}
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/plain")
	}
	s.response = h.Clone()
	if status = x.status(); status == 0 {
		status = http.StatusOK
	}
	if strings.HasSuffix(x.ExpectedType, "validated") {
		status = o.validate(r.Header, index)
	}
	o.seen, o.status = append(o.seen, s), status
	return status
}

// validate returns 304 for a request that has a validator of the previous response, and otherwise
// a status that the client takes for a failure.
func (o *origin) validate(request http.Header, index int) (status int) {
	for _, s := range o.seen {
		if s.index != index-1 {
			continue
		}
		for name, validator := range map[string]string{"If-Modified-Since": "Last-Modified", "If-None-Match": "Etag"} {
			if v := s.response.Get(validator); v != "" && request.Get(name) == v {
				return http.StatusNotModified
			}
		}
	}
	return notConditional
}

// notConditional is the status of a response to a request that should have been conditional.
const notConditional = 999
