package hpfiber_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v3"

	hpfiber "github.com/hotparam/hotparam/adapters/fiber"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// recorder is a guard that lets all requests pass and keeps the last one.
type recorder struct{ last middleware.Request }

func (r *recorder) Changed(int, string, string, string)                               {}
func (r *recorder) Share(*middleware.Exchange, *rules.Decision) (s middleware.Shared) { return s }

func (r *recorder) Begin(req middleware.Request) (rules.Decision, *middleware.Ticket) {
	r.last = req
	return rules.Decision{Allowed: true}, nil
}

func send(t *testing.T, app *fiber.App, method, target string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://suite"+target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := app.Test(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

type vowels struct{}

func (vowels) Name() string                       { return "vowels" }
func (vowels) Execute(v string, _ ...string) bool { return strings.Trim(v, "aeiou") == "" }

// For any routes of Fiber, the pattern and the path belong to the handler that Fiber calls.
func TestRoutes(t *testing.T) {
	guard := new(recorder)
	app := fiber.New()
	app.RegisterCustomConstraint(vowels{})
	served := ""
	at := func(name string) fiber.Handler {
		return func(fiber.Ctx) error { served = name; return nil }
	}
	app.Get("/before/:x", at("before"))
	app.Get("/both/*", func(c fiber.Ctx) error { return c.Next() })
	app.Use(hpfiber.Middleware(guard))
	app.Use("/api", func(c fiber.Ctx) error { return c.Next() })
	app.Get("/api/:id<int>", at("int"))
	app.Get("/api/:id<vowels>", at("vowels"))
	app.Get("/api/:id<minLen(5);maxLen(6)>/x", at("len"))
	app.Get("/api/:name", at("name"))
	app.Get("/optional/:id?", at("optional"))
	app.Get("/flights/:from-:to", at("flights"))
	app.Get("/files/:name.:ext", at("files"))
	app.Get("/plus/+", at("plus"))
	app.Get("/middle/*/end/:id", at("middle"))
	app.Get("/v1/some\\:action/:id", at("escaped"))
	app.Get("/both/:id", at("both"))
	app.Get("/twice/:id/of/:id", at("twice"))
	app.Get("/Case/:Id", at("case"))
	app.Get("/colon/a::id", at("colon"))
	group := app.Group("/group/:tenant")
	group.Get("/", at("group"))
	group.Get("/list/", at("list"))
	sub := fiber.New()
	sub.Get("/u/:id", at("mounted"))
	sub.Get("/all/*", at("mounted star"))
	app.Use("/sub", sub)
	app.All("/any/:id", at("any"))
	app.Get("/rest*", at("rest"))
	for _, c := range []struct{ target, served, pattern, path string }{
		{"/before/1", "before", "", ""},
		{"/api/7", "int", "GET /api/{id}", "/api/7"},
		{"/api/aei", "vowels", "GET /api/{id}", "/api/aei"},
		{"/api/xyz", "name", "GET /api/{name}", "/api/xyz"},
		{"/api/xyzxy/x", "len", "GET /api/{id}/x", "/api/xyzxy/x"},
		{"/api/xyz/x", "", middleware.Unrouted, "/api/xyz/x"},
		{"/API/xyz/", "name", "GET /api/{name}", "/api/xyz"},
		{"/optional", "optional", "GET /optional/{id}", "/optional/%00"},
		{"/optional/", "optional", "GET /optional/{id}", "/optional/%00"},
		{"/optional/3", "optional", "GET /optional/{id}", "/optional/3"},
		{"/flights/LAX-SFO", "flights", "GET /flights/{from_to}", "/flights/LAX-SFO"},
		{"/files/a.txt", "files", "GET /files/{name_ext}", "/files/a.txt"},
		{"/plus/a/b", "plus", "GET /plus/{path...}", "/plus/a/b"},
		{"/plus/", "", middleware.Unrouted, "/plus/"},
		{"/middle/a/b/end/7", "middle", "GET /middle/{path}/end/{id}", "/middle/a%2Fb/end/7"},
		{"/v1/some:action/7", "escaped", "GET /v1/some:action/{id}", "/v1/some:action/7"},
		{"/both/7", "both", "GET /both/{id}", "/both/7"},
		{"/twice/1/of/2", "twice", "GET /twice/{id}/of/{id_2}", "/twice/1/of/1"},
		{"/CASE/A", "case", "GET /Case/{Id}", "/Case/A"},
		{"/colon/a:7", "colon", "GET /colon/{id}", "/colon/a:7"},
		{"/group/t", "group", "GET /group/{tenant}", "/group/t"},
		{"/group/t/", "group", "GET /group/{tenant}", "/group/t"},
		{"/group/t/list", "list", "GET /group/{tenant}/list", "/group/t/list"},
		{"/sub/u/7", "mounted", "GET /sub/u/{id}", "/sub/u/7"},
		{"/sub/all/a/b", "mounted star", "GET /sub/all/{path...}", "/sub/all/a/b"},
		{"/any/7", "any", "GET /any/{id}", "/any/7"},
		{"/restful", "rest", "GET /{path...}", "/restful"},
		{"/none", "", middleware.Unrouted, "/none"},
	} {
		served, guard.last = "", middleware.Request{}
		status := send(t, app, "GET", c.target)
		if served != c.served || guard.last.Pattern != c.pattern || guard.last.Path != c.path {
			t.Errorf("GET %s: status %d, served by %q, pattern %q, path %q; want %q, %q, %q", c.target, status, served, guard.last.Pattern, guard.last.Path, c.served, c.pattern, c.path)
		}
	}
	send(t, app, "HEAD", "/api/7")
	if guard.last.Pattern != "GET /api/{id}" {
		t.Errorf("HEAD: %q", guard.last.Pattern)
	}
	app.Head("/own/:id", at("own head"))
	app.RebuildTree()
	if send(t, app, "HEAD", "/own/7"); guard.last.Pattern != "/own/{id}" || served != "own head" {
		t.Errorf("HEAD of its own, added later: %q by %q", guard.last.Pattern, served)
	}
	// A path that a middleware has rewritten is routed as Fiber routes it.
	rewritten := fiber.New()
	rewritten.Use(func(c fiber.Ctx) error {
		c.Path("/new/7")
		c.Method("POST")
		return c.Next()
	}, hpfiber.Middleware(guard))
	rewritten.Post("/new/:id", at("rewritten"))
	if send(t, rewritten, "GET", "/old"); served != "rewritten" || guard.last.Pattern != "/new/{id}" || guard.last.Path != "/new/7" || guard.last.Method != "POST" {
		t.Errorf("rewritten: %+v", guard.last)
	}
	if status := send(t, app, "DELETE", "/api/7"); status != http.StatusMethodNotAllowed || guard.last.Pattern != middleware.Unrouted {
		t.Errorf("DELETE: status %d, %q", status, guard.last.Pattern)
	}
}
