package attach

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/middleware"
)

// recipe returns the files that docs/RECIPES.md has under a title, with a Redis and a StatsD
// that are not there, or the Redis at url.
func recipe(t *testing.T, title, url string) (files []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/RECIPES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "\n## "+title+"\n")
	if !found {
		t.Fatalf("docs/RECIPES.md has no %q", title)
	}
	part, _, _ = strings.Cut(part, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(part, -1) {
		files = append(files, fmt.Sprintf("aggregator: {redis: %q}\nstatsd: {addresses: [%q]}\n%s", url, nowhere(t), m[1]))
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

// status returns what a handler answers a user's request from an address behind a proxy.
func status(h http.Handler, method, target, user, addr string) int {
	req := httptest.NewRequest(method, target, http.NoBody)
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
	mux.HandleFunc("POST /login/{user}", func(http.ResponseWriter, *http.Request) {})
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
	i := 0
	login := func(user string) func() int {
		return func() int {
			i++
			return status(handler, http.MethodPost, "/login/"+user, "", fmt.Sprintf("192.0.2.%d", i))
		}
	}
	if n := passed(10, login("ann")); n != 5 {
		t.Errorf("%d of 10 guesses of one password passed, want 5", n)
	}
	if n := passed(1, login("bob")); n != 1 {
		t.Error("another account is refused")
	}
	guess := 0
	if n := passed(30, func() int {
		guess++
		return status(handler, http.MethodPost, fmt.Sprintf("/login/u%d", guess), "", "198.51.100.7")
	}); n != 20 {
		t.Errorf("%d of 30 guesses from one address passed, want 20", n)
	}
}

func TestRecipeOfOperations(t *testing.T) {
	f := open(t, recipe(t, "GraphQL and JSON-RPC", "redis://"+nowhere(t))[0])
	enter := func(operation string) int {
		d, ticket := f.Guard().EnterCost(t.Context(), "graphql "+operation, hotparam.Param{Name: "category", Value: "tv"})
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
