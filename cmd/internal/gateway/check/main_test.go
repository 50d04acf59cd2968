package check

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const testRules = `
  - {id: q, match: {route: "GET /search"}, by: [q], limit: {rate: 1/1h, burst: 1}}
  - {id: me, match: {route: "GET /me"}, by: ["ctx:user"], limit: {rate: 1/1h, burst: 1}}
  - {id: slow, match: {route: "GET /slow"}, limit: {concurrency: 1}}
  - {id: bytes, match: {route: "GET /file"}, by: [name], count: bytes, limit: {rate: 1000/1h}}
  - {id: jobs, match: {route: "resize"}, by: [size], limit: {rate: 1/1h, burst: 1}}
  - {id: spaced, match: {route: "GET /spaced"}, limit: {rate: 1/1m, burst: 1, on_limit: wait, wait: 2m}}
`

// fixture is a served door with a client.
type fixture struct {
	*gatewaytest.Fixture
	t      testing.TB
	door   *Door
	base   string // URL
	client http.Client
	token  string
}

func open(t testing.TB, c gateway.DoorConfig) *fixture {
	t.Helper()
	return serve(t, gatewaytest.New(t, testRules, gateway.Config{}), c)
}

func serve(t testing.TB, around *gatewaytest.Fixture, c gateway.DoorConfig) *fixture {
	t.Helper()
	c.Decider, c.Tickets, c.Log = around.Decider, around.Tickets, around.Logger
	door, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	around.Serve(door)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &fixture{around, t, door, "http://" + around.Addr, http.Client{Transport: transport, Timeout: gatewaytest.Patience}, c.Token}
}

// post sends a body and returns the response with its body.
func (f *fixture) post(path, body string) (*http.Response, []byte) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, f.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	response, err := f.client.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return response, text
}

// check sends one check.
func (f *fixture) check(body string) (out checkResult) {
	f.t.Helper()
	response, text := f.post("/v1/check", body)
	if err := json.Unmarshal(text, &out); err != nil || response.StatusCode != http.StatusOK {
		f.t.Fatalf("%s: %s %q, %v", body, response.Status, text, err)
	}
	return out
}

// status posts a body and returns the status.
func (f *fixture) status(path, body string) int {
	f.t.Helper()
	response, text := f.post(path, body)
	if response.StatusCode >= 400 {
		var p gateway.Problem
		if err := json.Unmarshal(text, &p); err != nil || p.Status != response.StatusCode || p.Detail == "" ||
			response.Header.Get("Content-Type") != "application/problem+json" {
			f.t.Errorf("%s %s: %s %q is no problem of RFC 9457", path, body, response.Status, text)
		}
	}
	return response.StatusCode
}
