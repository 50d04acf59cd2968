package hotparam

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/middleware"
)

// Logins are limited by the user in a form or JSON, on a real server and by a rule of the file
// alone. The handler reads the same body as without a guard.
func TestLoginsByTheirBody(t *testing.T) {
	rule := `{id: logins, match: {route: "POST /login"}, by: ["form:user", "json:user"], limit: {rate: 1/1h, burst: 2}}`
	f := open(t, "bodies: {max: 1KiB}\n"+shop("redis://"+nowhere(t), nowhere(t), rule))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") == "application/json" {
			_, _ = io.Copy(w, r.Body)
			return
		}
		_, _ = io.WriteString(w, r.PostFormValue("user"))
	})
	server := httptest.NewServer(f.Handler(mux))
	defer server.Close()
	post := func(contentType, body string) (int, string) {
		t.Helper()
		resp, err := server.Client().Post(server.URL+"/login", contentType, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	form := func(user, other string) string { return url.Values{"user": {user}, "x": {other}}.Encode() }
	const formType, jsonType = "application/x-www-form-urlencoded", "application/json"
	large := strings.Repeat("x", 2000)
	for i, test := range []struct {
		contentType, body string
		status            int
		text              string // response of a request that passes
	}{
		{formType, form("ann", ""), 200, "ann"},
		{formType, form("ann", "1"), 200, "ann"},
		{formType, form("ann", "2"), 429, ""},
		{formType, form("bob", ""), 200, "bob"},
		{jsonType, `{"user":"ann"}`, 200, `{"user":"ann"}`}, // another parameter
		{jsonType, `{"USER":"ann"}`, 200, `{"USER":"ann"}`},
		{jsonType, `{"user":"x","user":"ann"}`, 429, ""},
		{formType, form("ann", large), 200, "ann"}, // held to the key of such bodies
		{formType, form("cat", large), 200, "cat"},
		{formType, form("dan", large), 429, ""},
		{jsonType, `{`, 200, `{`},
		{jsonType, `{"user":"ann"} `, 429, ""},
	} {
		status, text := post(test.contentType, test.body)
		if status != test.status || status == 200 && text != test.text {
			t.Errorf("request %d, %.40s: %d %q, want %d %q", i+1, test.body, status, text, test.status, test.text)
		}
	}
	if s := f.Stats().Guard; s.Bodies != 8 || s.Unread != (middleware.Unread{TooLarge: 3, Malformed: 1}) {
		t.Errorf("%+v", s)
	}
}
