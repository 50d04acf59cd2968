package hotparam

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// recipe returns the files under a title of docs/RECIPES.md. They use an unreachable StatsD, and
// an unreachable Redis unless there is a url.
func recipe(t *testing.T, title, url string) (files []string) {
	t.Helper()
	text, err := os.ReadFile("docs/RECIPES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/RECIPES.md has no %q", title)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(part, -1) {
		file := m[1]
		if !strings.Contains(file, "aggregator:") {
			file = fmt.Sprintf("aggregator: {redis: %q}\n", url) + file
		}
		files = append(files, fmt.Sprintf("statsd: {addresses: [%q]}\n%s", nowhere(t), file))
	}
	return files
}

type userKey struct{}

func withUser() Option {
	return WithParam("user", func(ctx context.Context) string {
		user, _ := ctx.Value(userKey{}).(string)
		return user
	})
}

// status returns a handler's status for a user's request from an address behind a proxy.
func status(h http.Handler, method, target, user, addr string) int {
	return statusOf(h, httptest.NewRequest(method, target, http.NoBody), user, addr)
}

func statusOf(h http.Handler, req *http.Request, user, addr string) int {
	req = req.WithContext(context.WithValue(req.Context(), userKey{}, user))
	req.RemoteAddr = "10.0.0.1:80"
	req.Header.Set("X-Forwarded-For", "203.0.113.1, "+addr)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code
}

// passed returns how many of n requests pass.
func passed(n int, request func() int) (passed int) {
	for range n {
		if request() == http.StatusOK {
			passed++
		}
	}
	return passed
}

func anything() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /login", func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err != nil || int64(len(body)) != r.ContentLength {
			http.Error(w, "the body is not whole", http.StatusTeapot)
		}
	})
	return mux
}

func TestRecipeOfUsers(t *testing.T) {
	server := testenv.Redis(t)
	files := recipe(t, "Users of a JWT", server.URL())
	users, front := open(t, files[0], withUser()), open(t, files[1])
	handler := front.Handler(users.Handler(anything()))
	get := func(user, addr string) int { return status(handler, http.MethodGet, "/x", user, addr) }
	for range 150 { // until this instance alone has found the user hot
		get("ann", "192.0.2.1")
	}
	users.await("a hot user", func() bool { return len(users.HotKeys()) == 1 })
	if n := passed(100, func() int { return get("ann", "192.0.2.2") }); n > 60 {
		t.Errorf("%d of 100 requests of a hot user passed, want 20/s", n)
	}
	if n := passed(20, func() int { return get("bob", "192.0.2.3") }); n != 20 {
		t.Errorf("%d of 20 requests of another user passed", n)
	}
	if n := passed(400, func() int { return get("", "192.0.2.4") }); n < 200 || n > 390 {
		t.Errorf("%d of 400 requests of one address passed, want a burst of 200", n)
	}
}

func TestRecipeOfLogins(t *testing.T) {
	server := testenv.Redis(t)
	f := open(t, recipe(t, "Login forms", server.URL())[0])
	handler := f.Handler(anything())
	login := func(contentType, body, addr string) int {
		req := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(body))
		req.Header.Set("Content-Type", contentType)
		return statusOf(handler, req, "", addr)
	}
	off := func(n, want int) bool { return n < want-f.unanswered() || n > want+f.unanswered() }
	i := 0
	guess := func(contentType, body string) func() int {
		return func() int {
			i++
			return login(contentType, body, fmt.Sprintf("192.0.2.%d", i))
		}
	}
	const form, json = "application/x-www-form-urlencoded", "application/json"
	if n := passed(10, guess(form, fmt.Sprint("user=ann&password=", i))); off(n, 5) {
		t.Errorf("%d of 10 guesses of one password passed, want 5", n)
	}
	if n := passed(10, guess(json, `{"user":"ann"}`)); off(n, 5) {
		t.Errorf("%d of 10 guesses of one password in JSON passed, want 5", n)
	}
	if n := passed(10, guess(json, `{"user":`)); off(n, 5) {
		t.Errorf("%d of 10 requests that cannot be read passed, want 5", n)
	}
	if n := passed(1, guess(form, "user=bob")); off(n, 1) {
		t.Error("another account is refused")
	}
	other := 0
	if n := passed(30, func() int {
		other++
		return login(form, fmt.Sprintf("user=u%d", other), "198.51.100.7")
	}); off(n, 20) {
		t.Errorf("%d of 30 guesses from one address passed, want 20", n)
	}
}

func TestRecipeOfOperationsInBodies(t *testing.T) {
	f := open(t, recipe(t, "GraphQL and JSON-RPC", "redis://"+nowhere(t))[0])
	mux := http.NewServeMux()
	mux.HandleFunc("POST /graphql", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /rpc", func(http.ResponseWriter, *http.Request) {})
	handler := f.Handler(mux)
	for target, body := range map[string]string{
		"/graphql": `{"operationName":"search","query":"query search { a }"}`, "/rpc": `[{"method":"a","id":1},{"method":"b","id":2}]`,
	} {
		call := func(body string) int {
			req := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			return statusOf(handler, req, "", "192.0.2.1")
		}
		before := len(f.HotKeys())
		for range 700 { // until this instance alone has found the operations hot
			call(body)
		}
		f.await("a hot operation", func() bool { return len(f.HotKeys()) > before })
		if n := passed(300, func() int { return call(body) }); n > 250 {
			t.Errorf("%s: %d of 300 of a hot operation passed, want 100/s", target, n)
		}
		if n := passed(5, func() int { return call(`{"operationName":"x","method":"x"}`) }); n != 5 {
			t.Errorf("%s: %d of 5 of another operation passed", target, n)
		}
	}
}

func TestRecipeOfOperations(t *testing.T) {
	f := open(t, recipe(t, "GraphQL and JSON-RPC", "redis://"+nowhere(t))[1])
	enter := func(operation string) int {
		d, ticket := f.Guard().EnterCost(t.Context(), "graphql "+operation, rules.Param{Name: "category", Value: "tv"})
		if !d.Allowed {
			return http.StatusTooManyRequests
		}
		ticket.End(middleware.Cost{Units: 300})
		return http.StatusOK
	}
	if n := passed(200, func() int { return enter("other") }); n < 50 || n > 190 {
		t.Errorf("%d of 200 other operations passed, want a burst of 50", n)
	}
	for range 20 {
		enter("search")
	}
	f.await("a hot category", func() bool { return len(f.HotKeys()) == 1 })
	if n := passed(50, func() int { return enter("search") }); n > 40 {
		t.Errorf("%d of 50 operations of 300 units passed, want 1000 units", n)
	}
}

func TestRecipeOfMessages(t *testing.T) {
	server := testenv.Redis(t)
	f := open(t, recipe(t, "WebSockets and server-sent events", server.URL())[0], withUser())
	ctx := context.WithValue(t.Context(), userKey{}, "ann")
	enter := func() int {
		if f.Enter(ctx, "chat message").Allowed {
			return http.StatusOK
		}
		return http.StatusTooManyRequests
	}
	for range 80 {
		enter()
	}
	f.await("a hot user", func() bool { return len(f.HotKeys()) == 1 })
	if n := passed(60, enter); n > 50 {
		t.Errorf("%d of 60 messages passed, want 5/s", n)
	}
}
