package hpgin_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	hpgin "github.com/hotparam/hotparam/adapters/gin"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

const answered = `{id: items, match: {route: "GET /items/{id}"}, by: ["path:id"], hot: 1000000/s, limit: {rate: 1/1h, burst: 9}, on_hot: {cache: 1m, stale: 1m}}`

// getHot serves two requests of a hot item and returns the second response and the detail of its
// Cache-Status.
func getHot(t *testing.T, front, handler gin.HandlerFunc, opts func(*gin.Engine) []hpgin.Option) (w *httptest.ResponseRecorder, detail string) {
	t.Helper()
	guard := middlewaretest.NewGuard(t, answered)
	middlewaretest.Heat(t, guard, "items GET /items/{id}?path:id=7")
	r := gin.New()
	r.Use(gin.RecoveryWithWriter(io.Discard), front, hpgin.Middleware(guard, opts(r)...))
	r.GET("/items/:id", handler)
	server := httptest.NewServer(r)
	defer server.Close()
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/items/7", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-User", "ann")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		w = &httptest.ResponseRecorder{Code: res.StatusCode, HeaderMap: res.Header, Body: new(bytes.Buffer)}
		_, _ = io.Copy(w.Body, res.Body)
		res.Body.Close()
	}
	_, detail, _ = strings.Cut(w.Header().Get("Cache-Status"), "detail=")
	return w, detail
}

func withEngine(r *gin.Engine) []hpgin.Option { return []hpgin.Option{hpgin.WithEngine(r)} }

// An answer is shared only if it is what the client of a single request would get.
func TestAnswersOfRuns(t *testing.T) {
	next := func(c *gin.Context) { c.Next() }
	user := func(c *gin.Context) { c.String(http.StatusOK, "for %s", c.GetHeader("X-User")) }
	for name, c := range map[string]struct {
		front, handler gin.HandlerFunc
		opts           func(*gin.Engine) []hpgin.Option
		status         int
		body, detail   string
	}{
		"shared":            {next, user, withEngine, 200, "for ", ""},
		"without an engine": {next, user, func(*gin.Engine) []hpgin.Option { return nil }, 200, "for ann", "withheld"},
		"error for middleware in front": {func(c *gin.Context) {
			c.Next()
			if len(c.Errors) > 0 {
				c.String(http.StatusTeapot, "front")
			}
		}, func(c *gin.Context) { _ = c.Error(io.ErrUnexpectedEOF) }, withEngine, 418, "front", "failed"},
		"status for middleware in front": {func(c *gin.Context) {
			c.Next()
			c.String(c.Writer.Status(), "front")
		}, func(c *gin.Context) { c.Status(http.StatusOK) }, withEngine, 200, "front", "withheld"},
		"written and an error": {next, func(c *gin.Context) { user(c); _ = c.Error(io.ErrUnexpectedEOF) }, withEngine, 200, "for ", ""},
		"refused in front": {func(c *gin.Context) {
			if c.GetHeader("X-User") == "" {
				c.AbortWithStatusJSON(http.StatusOK, "login")
			}
		}, user, withEngine, 200, "for ann", "withheld"},
		"stream": {next, func(c *gin.Context) {
			c.Stream(func(w io.Writer) bool { _, _ = io.WriteString(w, "one"); return false })
		}, withEngine, 200, "one", ""},
		"hijacked": {next, func(c *gin.Context) {
			conn, rw, err := c.Writer.Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
			_ = rw.Flush()
		}, withEngine, 200, "own", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, detail := getHot(t, c.front, c.handler, c.opts)
			if w.Code != c.status || w.Body.String() != c.body || detail != c.detail {
				t.Errorf("%d %q, %v; want %d %q, %s", w.Code, w.Body, w.Header(), c.status, c.body, c.detail)
			}
		})
	}
}
