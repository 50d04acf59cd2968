package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// A request that a program checks has the keys that it has in the Go middleware.
func TestSameKeys(t *testing.T) {
	gatewaytest.Run(t, func(tb testing.TB, d *gateway.Decider) gatewaytest.DoorUnderTest {
		f := serve(tb, gatewaytest.NewOf(tb, d), gateway.DoorConfig{})
		return gatewaytest.DoorUnderTest{Ask: func(tb testing.TB, r *gatewaytest.ClientRequest) gatewaytest.DoorAnswer {
			q := question{Method: r.Method, URI: r.Target, Addr: r.Addr, Headers: map[string]values{"Host": {"shop.example"}}}
			for name, list := range r.Header {
				q.Headers[name] = list
			}
			text, err := json.Marshal(map[string]any{"method": q.Method, "uri": q.URI, "addr": q.Addr, "headers": q.Headers})
			if err != nil {
				tb.Fatal(err)
			}
			got := f.check(string(text))
			a := gatewaytest.DoorAnswer{Status: got.Status, Header: make(http.Header), Body: got.Body}
			if got.Allowed {
				a.Status = 0
			}
			for name, value := range got.Headers {
				a.Header.Set(name, value)
			}
			return a
		}}
	})
}

func TestDecisions(t *testing.T) {
	f := open(t, gateway.DoorConfig{})
	first := f.check(`{"method": "GET", "uri": "/search?q=a"}`)
	if !first.Allowed || first.Status != 200 || first.Rule != "q" || first.Limit != 1 || first.Headers["Ratelimit"] == "" {
		t.Errorf("the first request: %+v", first)
	}
	second := f.check(`{"method": "GET", "uri": "//search?q=%61", "addr": "192.0.2.1"}`)
	if second.Allowed || second.Status != 429 || second.Reason != "limited" || second.RetryAfterMS < 1000 || second.Headers["Retry-After"] == "" || !strings.Contains(second.Body, "quota-exceeded") {
		t.Errorf("the second request: %+v", second)
	}
	for i, want := range []bool{true, false} {
		if got := f.check(`{"method": "GET", "uri": "/me", "context": {"user": "ann"}}`); got.Allowed != want {
			t.Errorf("request %d of a user: %+v", i, got)
		}
		if got := f.check(`{"resource": "resize", "params": [{"name": "size", "value": "xl"}]}`); got.Allowed != want {
			t.Errorf("job %d: %+v", i, got)
		}
	}
	if got := f.check(`{"method": "GET", "uri": "/me"}`); !got.Allowed || got.Rule != "" {
		t.Errorf("a request without a user: %+v", got)
	}
	// The door never delays an answer: the program waits.
	f.check(`{"method": "GET", "uri": "/spaced"}`)
	if got := f.check(`{"method": "GET", "uri": "/spaced"}`); got.Allowed {
		t.Errorf("a wait of a minute does not fit in a second: %+v", got)
	}
	if s := f.Figures(); s.Passed == 0 || s.Refused != 4 {
		t.Errorf("%+v", s)
	}
}

// A misspelt field is named in the error, with the most similar real one.
func TestMisspeltField(t *testing.T) {
	f := open(t, gateway.DoorConfig{})
	response, text := f.post("/v1/check", `{"method": "GET", "url": "/search?q=a"}`)
	if response.StatusCode != 400 || !strings.Contains(string(text), "did you mean") || !strings.Contains(string(text), "uri") {
		t.Errorf("%s %s", response.Status, text)
	}
}

// The requests of a batch are decided one by one.
func TestBatch(t *testing.T) {
	f := open(t, gateway.DoorConfig{})
	response, text := f.post("/v1/check/batch", `{"checks": [
		{"method": "GET", "uri": "/search?q=b"}, {"method": "GET", "uri": "/search?q=b"}, {"method": "GET", "uri": "/search?q=c"}]}`)
	var out struct{ Results []checkResult }
	if err := json.Unmarshal(text, &out); err != nil || response.StatusCode != 200 || len(out.Results) != 3 {
		t.Fatalf("%s %s %v", response.Status, text, err)
	}
	if !out.Results[0].Allowed || out.Results[1].Allowed || !out.Results[2].Allowed {
		t.Errorf("%s", text)
	}
	one := `{"method": "GET", "uri": "/"},`
	if status := f.status("/v1/check/batch", `{"checks": [`+strings.TrimSuffix(strings.Repeat(one, 101), ",")+`]}`); status != 400 {
		t.Errorf("101 checks: %d", status)
	}
}

// Tickets hold permits and charge costs, each once.
func TestTickets(t *testing.T) {
	f := open(t, gateway.DoorConfig{})
	const slow = `{"method": "GET", "uri": "/slow", "hold": true}`
	held := f.check(slow)
	if held.Ticket == "" || f.check(slow).Reason != "busy" {
		t.Fatalf("%+v holds no permit", held)
	}
	done := fmt.Sprintf(`{"ticket": %q}`, held.Ticket)
	for range 2 {
		if status := f.status("/v1/done", done); status != 204 {
			t.Errorf("done: %d", status)
		}
	}
	if got := f.check(slow); !got.Allowed {
		t.Errorf("after done: %+v", got)
	}
	if got := f.check(`{"method": "GET", "uri": "/slow"}`); got.Allowed || got.Ticket != "" {
		t.Errorf("without hold: %+v", got)
	}
	file := f.check(`{"method": "GET", "uri": "/file?name=a", "hold": true}`)
	if status := f.status("/v1/done", fmt.Sprintf(`{"ticket": %q, "bytes": 2000, "ms": 1.5}`, file.Ticket)); status != 204 {
		t.Errorf("done with a cost: %d", status)
	}
	if got := f.check(`{"method": "GET", "uri": "/file?name=a"}`); got.Allowed {
		t.Errorf("2000 of 1000 bytes were sent, and %+v", got)
	}
	if status := f.status("/v1/done", `{"ticket": "00000000000000000000000000000000"}`); status != 410 {
		t.Errorf("an unknown ticket: %d", status)
	}
	if held.Ticket == file.Ticket || len(held.Ticket) != 32 {
		t.Errorf("tickets %q and %q", held.Ticket, file.Ticket)
	}
}

// A request whose ticket finds no place is refused, as its cost could not be charged to anyone.
func TestTicketsFull(t *testing.T) {
	around := gatewaytest.New(t, testRules, gateway.Config{})
	around.Tickets = gateway.NewTickets(gateway.TicketsConfig{Max: 1})
	f := serve(t, around, gateway.DoorConfig{})
	first := f.check(`{"method": "GET", "uri": "/file?name=a", "hold": true}`)
	if first.Ticket == "" {
		t.Fatalf("%+v", first)
	}
	if got := f.check(`{"method": "GET", "uri": "/file?name=b", "hold": true}`); got.Allowed || got.Reason != "busy" || got.Ticket != "" {
		t.Errorf("without a place: %+v", got)
	}
	f.status("/v1/done", fmt.Sprintf(`{"ticket": %q}`, first.Ticket))
	if got := f.check(`{"method": "GET", "uri": "/file?name=b", "hold": true}`); !got.Allowed || got.Ticket == "" {
		t.Errorf("with a place: %+v", got)
	}
}

func TestBadRequests(t *testing.T) {
	f := open(t, gateway.DoorConfig{Token: "0123456789abcdef"})
	f.Stop()
	f.door.maxBody = 1000
	f.ServeAgain(f.door)
	for body, want := range map[string]int{
		``: 400, `{`: 400, `null`: 400, `[]`: 400, `{}`: 400, `{"method": "GET"}`: 400, `{"uri": "/"}`: 400,
		`{"method": "GET", "uri": "search"}`:                                     400,
		`{"method": "G T", "uri": "/"}`:                                          400,
		`{"method": "GET", "uri": "/", "resource": "x"}`:                         400,
		`{"method": "GET", "uri": "/", "urk": 1}`:                                400,
		`{"method": "GET", "uri": "/"} {}`:                                       400,
		`{"method": "GET", "uri": "/", "headers": {"a": 1}}`:                     400,
		`{"resource": "x", "params": [{"value": "x"}]}`:                          400,
		`{"resource": "x", "params": [{"name": "x", "source": "y"}]}`:            400,
		`{"method": "GET", "uri": "/` + strings.Repeat("x", 1000) + `"}`:         413,
		`{"method": "GET", "uri": "/"}` + strings.Repeat(" ", 1000):              413,
		`{"method": "GET", "uri": "/"}`:                                          200,
		`{"method": "OPTIONS", "uri": "*"}`:                                      200,
		`{"method": "GET", "uri": "/\ud800", "headers": {"a": ["\u0000", "b"]}}`: 200,
	} {
		if got := f.status("/v1/check", body); got != want {
			t.Errorf("%.80s: %d, want %d", body, got, want)
		}
	}
	for body, want := range map[string]int{`{}`: 400, `{"ticket": "x", "bytes": -1}`: 400, `{"ticket": "x", "ms": 1e300}`: 410} {
		if got := f.status("/v1/done", body); got != want {
			t.Errorf("done %s: %d, want %d", body, got, want)
		}
	}
	if got := f.status("/v2/check", `{}`); got != 404 {
		t.Errorf("another path: %d", got)
	}
	f.token = "0123456789abcdeg"
	if got := f.status("/v1/check", `{"method": "GET", "uri": "/"}`); got != 401 {
		t.Errorf("a wrong token: %d", got)
	}
	response, err := f.client.Post(f.base+"/v1/check", "text/plain", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 401 || f.Faults(gateway.Unauthorized) != 2 {
		t.Errorf("no token: %s, %+v", response.Status, f.Figures())
	}
}

// A page of another site can send only a few content types without permission, and none of them
// is accepted.
func TestOtherTypes(t *testing.T) {
	f := open(t, gateway.DoorConfig{})
	for _, media := range []string{"text/plain", "application/x-www-form-urlencoded", ""} {
		response, err := f.client.Post(f.base+"/v1/check", media, strings.NewReader(`{"method": "GET", "uri": "/"}`))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %s", media, response.Status)
		}
	}
	response, err := f.client.Get(f.base + "/v1/check")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed || response.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %s", response.Status)
	}
}

func TestAllow(t *testing.T) {
	f := open(t, gateway.DoorConfig{Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	if response, err := f.client.Post(f.base+"/v1/check", "application/json", strings.NewReader(`{}`)); err == nil {
		response.Body.Close()
		t.Errorf("an address that is not allowed: %s", response.Status)
	}
	if n := f.Closed("not_allowed"); n == 0 {
		t.Error("it was not counted")
	}
}

// The door behaves as documented: the requests that the document forbids are refused, and the
// answers are as described.
func TestOpenAPI(t *testing.T) {
	f := open(t, gateway.DoorConfig{})
	response, err := f.client.Get(f.base + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	document, err := jsonschema.UnmarshalJSON(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	paths := document.(map[string]any)["paths"].(map[string]any)
	if len(paths) != 3 {
		t.Errorf("%d paths", len(paths))
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	if err := compiler.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	schema := func(name string) *jsonschema.Schema {
		s, err := compiler.Compile("openapi.json#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	valid := func(s *jsonschema.Schema, text []byte) error {
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return err
		}
		return s.Validate(value)
	}
	check, problem, of := schema("Check"), schema("Problem"), schema("Result")
	for _, body := range []string{
		`{"method": "GET", "uri": "/search?q=x"}`, `{"method": "GET", "uri": "/search?q=x", "addr": "192.0.2.1", "caller": "ann"}`,
		`{"method": "GET", "uri": "/slow", "hold": true, "headers": {"a": "b", "c": ["d"]}}`, `{"resource": "resize", "params": [{"name": "size", "value": "s"}]}`,
		`{}`, `{"method": "GET"}`, `{"resource": "x", "uri": "/"}`, `{"uri": "/", "method": "GET", "what": 1}`, `{"resource": "x", "params": [{"name": "a", "source": "b"}]}`,
		`{"method": 1, "uri": "/"}`, `{"resource": "", "params": []}`,
		`{"method": "GET", "uri": "/", "step": "count"}`, `{"method": "GET", "uri": "/", "step": "limit"}`, `{"method": "GET", "uri": "/", "step": "both"}`,
		`{"method": "GET", "uri": "/", "step": 1}`, `{"method": "GET", "uri": "/", "step": null}`, `{"resource": "x", "step": "count"}`,
	} {
		response, text := f.post("/v1/check", body)
		invalid := valid(check, []byte(body))
		if (response.StatusCode == 200) != (invalid == nil) {
			t.Errorf("%s: %s, by the document %v", body, response.Status, invalid)
		}
		answer := of
		if response.StatusCode != 200 {
			answer = problem
		}
		if err := valid(answer, text); err != nil {
			t.Errorf("%s: the answer %s: %v", body, text, err)
		}
	}
}

// A program with a cache asks in front of it and behind it.
func TestSteps(t *testing.T) {
	f := serve(t, gatewaytest.New(t, gatewaytest.Rules(
		`{id: q, match: {route: "GET /"}, by: [q], hot: 1000000/s, limit: {rate: 1000/s, scope: instance}, on_hot: {cache: 1s}}`, `{id: each, match: {route: "GET /"}, by: [q], limit: {rate: 1/1h, burst: 1}}`,
	), gateway.Config{}), gateway.DoorConfig{})
	f.Guard.Guard().HotSet().Update("1", published.Change{Hot: []published.Hot{{Key: rules.Key{Rule: "q", Text: "GET /?q=hot"}, Until: time.Now().Add(time.Hour)}}})
	for _, x := range []struct {
		step, value string
		allowed     bool
		reason, hot string
	}{
		{"count", "hot", true, "shared", "1"}, {"count", "hot", true, "shared", "1"}, {"count", "hot", true, "shared", "1"}, {"limit", "hot", true, "within", ""}, {"limit", "hot", false, "limited", ""},
		{"count", "cold", true, "within", ""}, {"count", "cold", false, "limited", ""},
	} {
		got := f.check(fmt.Sprintf(`{"method": "GET", "uri": "/?q=%s", "step": %q}`, x.value, x.step))
		if got.Allowed != x.allowed || got.Reason != x.reason || got.Headers[middleware.HotHeader] != x.hot {
			t.Errorf("%s of %s: %+v, want %+v", x.step, x.value, got, x)
		}
	}
	decided := make(map[string]int64) // five requests, one of them by the cache
	for _, r := range f.Guard.Guard().RuleStats() {
		for decision, n := range r.Decisions {
			decided[decision] += n
		}
	}
	if decided["shared"] != 1 || decided["within"] != 2 || decided["limited"] != 2 {
		t.Errorf("decisions %v", decided)
	}
}

// A program that waits on its own gets the length of its wait.
func TestDelay(t *testing.T) {
	f := serve(t, gatewaytest.New(t, gatewaytest.Rules(`{id: paced, match: {route: "GET /"}, limit: {rate: 10/s, burst: 1, on_limit: wait, wait: 10s}}`), gateway.Config{}), gateway.DoorConfig{})
	f.check(`{"method": "GET", "uri": "/"}`)
	if got := f.check(`{"method": "GET", "uri": "/"}`); !got.Allowed || got.DelayMS < 1 || got.DelayMS > 100 {
		t.Errorf("%+v, want a delay of up to 100 ms", got)
	}
	if s := f.Guard.Stats().Guard; s.Waited != 0 {
		t.Errorf("%d waited in the door", s.Waited)
	}
}
