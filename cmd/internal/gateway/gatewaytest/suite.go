// Package gatewaytest tests doors. It has fixtures for their tests, and the suite that each door
// passes: a request through the door has the same keys and response as with the Go middleware in
// the application.
//
//	guard.go     a Hotparam whose counts can be read
//	fixture.go   a door that is served, with its log and its tickets
//	requests.go  the suite's requests, and the rules
//	suite.go     the suite: a door and the Go middleware, compared
//	through.go   a request that a real gateway passes on
package gatewaytest

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
)

// DoorAnswer is the response that a client receives through the door's gateway.
type DoorAnswer struct {
	Status int // 0 if the request passes
	Header http.Header
	Body   string
}

// DoorUnderTest is a door under test.
type DoorUnderTest struct {
	// Ask returns the door's answer to a request, asked as its gateway does, or by its gateway.
	Ask func(tb testing.TB, r *ClientRequest) DoorAnswer
	// Without names requests that the gateway does not pass on unchanged.
	Without []string
	// Refused is the status of every refusal, if the gateway has only one. Zero means the status
	// of the decision.
	Refused int
	// NoHeaders is set if a request that passes has no headers of the limit.
	NoHeaders bool
	// Cleans is set if the gateway cleans paths itself, so that raw ones are not compared.
	Cleans bool
}

// referenceApp is an application with the Go middleware that the door is compared with.
type referenceApp struct {
	name   string
	raw    bool // paths are not cleaned
	hasMux bool // the application has a ServeMux, whose patterns are the routes
}

// Run runs the suite on the doors that open returns: with raw paths, with cleaned paths, and
// compared with an application whose router decides the route of a request.
func Run(t *testing.T, open func(tb testing.TB, d *gateway.Decider) DoorUnderTest) {
	for _, ref := range []referenceApp{{name: "raw", raw: true}, {name: "clean"}, {name: "mux", hasMux: true}} {
		t.Run(ref.name, func(t *testing.T) { ref.run(t, open) })
	}
}

func (ref *referenceApp) run(t *testing.T, open func(testing.TB, *gateway.Decider) DoorUnderTest) {
	headers := hotparam.WithMiddleware(middleware.WithHeaders())
	guarded, plain := Open(t, rules, headers), Open(t, rules, headers)
	decider, err := gateway.New(gateway.Config{Hotparam: guarded.Hotparam, RawPaths: ref.raw})
	if err != nil {
		t.Fatal(err)
	}
	door, handler := open(t, decider), plain.Handler(ref.application())
	if ref.raw && door.Cleans {
		return
	}
	without := slices.Clone(door.Without)
	for _, r := range Requests() {
		if i := slices.Index(without, r.Name); i >= 0 {
			without = slices.Delete(without, i, i+1)
			continue
		}
		if ref.hasMux && r.NoMux {
			continue
		}
		target := r.Cleaned
		switch {
		case r.Understood != "":
			target = r.Understood
		case ref.raw:
			target = r.Target
		}
		for n := range 2 {
			want, got := serve(t, handler, &r, target), door.Ask(t, &r)
			if got, want := got.describe(&door), want.describe(&door); got != want {
				t.Errorf("%s, request %d (%s %.80s):\n\tgot  %s\n\twant %s", r.Name, n+1, r.Method, r.Target, got, want)
			}
		}
	}
	if len(without) > 0 {
		t.Errorf("there are no requests %q", without)
	}
	compare(t, guarded.Counted(t), plain.Counted(t))
}

func (ref *referenceApp) application() http.Handler {
	answer := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	if !ref.hasMux {
		return answer
	}
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.Handle(route, answer)
	}
	return mux
}

// serve makes net/http parse a request and the Go middleware decide on it.
func serve(t *testing.T, handler http.Handler, r *ClientRequest, target string) (a DoorAnswer) {
	t.Helper()
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: shop.example\r\n", r.Method, target)
	for name, values := range r.Header {
		for _, value := range values {
			text += name + ": " + value + "\r\n"
		}
	}
	in, err := http.ReadRequest(bufio.NewReaderSize(strings.NewReader(text+"\r\n"), 64<<10))
	if err != nil {
		t.Fatalf("%s: net/http answers 400: %v", r.Name, err)
	}
	in.RemoteAddr = "[" + r.Addr + "]:4711"
	if !strings.Contains(r.Addr, ":") {
		in.RemoteAddr = r.Addr + ":4711"
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, in)
	a = DoorAnswer{Status: w.Code, Header: w.Header(), Body: w.Body.String()}
	if w.Code == http.StatusOK {
		a.Status = 0
	}
	return a
}

// seconds matches the times in answers, which may differ by one second.
var seconds = regexp.MustCompile(`retry in \d+ s|;t=\d+`)

// describe returns the parts of an answer that are compared, as text.
func (a DoorAnswer) describe(d *DoorUnderTest) string {
	switch {
	case a.Status == 0 && d.NoHeaders:
		return "passes"
	case a.Status != 0 && d.Refused != 0:
		a.Status = d.Refused
	}
	retry := "no Retry-After"
	if a.Header.Get("Retry-After") != "" {
		retry = "Retry-After"
	}
	text := fmt.Sprintf("%d %q %q %s %q %s", a.Status, a.Header.Get("RateLimit-Policy"), a.Header.Get("RateLimit"), retry,
		a.Header.Get("Cache-Control"), strings.TrimSpace(a.Body))
	return seconds.ReplaceAllString(text, "")
}

// compare compares the counts of keys.
func compare(t *testing.T, got, want map[string]int64) {
	t.Helper()
	if len(want) == 0 {
		t.Error("the Go middleware has counted nothing")
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("key %.120s: counted %d times, want %d", key, got[key], want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			t.Errorf("key %.120s: counted %d times, want 0", key, got[key])
		}
	}
}
