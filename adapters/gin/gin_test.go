package hpgin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"

	hpgin "github.com/hotparam/hotparam/adapters/gin"
	"github.com/hotparam/hotparam/middleware/middlewaretest"
)

// Gin's writer reports the true status and size of an answer, whether the guard measures it or has
// refused the request.
func TestWriter(t *testing.T) {
	guard := middlewaretest.NewGuard(t, `{id: bytes, match: {route: "GET /"}, count: bytes, limit: {rate: 1/1h, burst: 1}}`)
	r := gin.New()
	var status, size int
	var aborted bool
	r.Use(func(c *gin.Context) {
		before := c.Writer
		c.Next()
		if c.Writer != before {
			t.Error("the guard has left its writer")
		}
		status, size, aborted = c.Writer.Status(), c.Writer.Size(), c.IsAborted()
	}, hpgin.Middleware(guard))
	r.GET("/*path", func(c *gin.Context) {
		c.Header("X-Own", "kept")
		c.String(http.StatusAccepted, "twelve bytes")
		if c.Writer.Status() != http.StatusAccepted || c.Writer.Size() != 12 || !c.Writer.Written() {
			t.Errorf("the handler sees %d, %d bytes", c.Writer.Status(), c.Writer.Size())
		}
	})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/a", nil))
	if w.Code != http.StatusAccepted || w.Header().Get("X-Own") != "kept" || status != http.StatusAccepted || size != 12 || aborted {
		t.Errorf("passed: %d, gin has %d, %d bytes, aborted %v", w.Code, status, size, aborted)
	}
	w = httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/b", nil))
	if w.Code != http.StatusTooManyRequests || status != w.Code || size != w.Body.Len() || !aborted {
		t.Errorf("refused: %d with %d bytes, gin has %d, %d bytes, aborted %v", w.Code, w.Body.Len(), status, size, aborted)
	}
}
