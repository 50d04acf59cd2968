package hpgin

import (
	"bufio"
	"context"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/hotparam/hotparam/middleware"
)

// Option configures a middleware.
type Option func(*options)

type options struct{ engine *gin.Engine }

// WithEngine sets the engine that has the middleware, for rules with on_hot. A run that answers
// several requests is served by the engine from its beginning, and only what the handlers behind the
// middleware write is shared. Handlers that leave their answer to middleware in front of it, by
// c.Error, share none. Without the engine on_hot has no effect: requests of hot keys are handled
// alone, under their limits.
func WithEngine(engine *gin.Engine) Option { return func(o *options) { o.engine = engine } }

// lead returns the handler for a run that answers several requests, or nil if there is none.
func (o *options) lead(c *gin.Context) http.Handler {
	if o.engine == nil || c.FullPath() == "" { // the engine writes what the latter gets
		return nil
	}
	return middleware.Restart(o.engine)
}

// serveRun calls the handlers after the middleware in such a run, with the writer of its answer.
func (o *options) serveRun(c *gin.Context, w http.ResponseWriter) {
	answer := gin.CreateTestContextOnly(w, o.engine).Writer // gin has no other constructor
	c.Writer = &runWriter{answer, w, c.Request.Context()}
	c.Next()
	switch {
	case answer.Written():
	case len(c.Errors) > 0:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		middleware.Withhold(w)
	}
}

// runWriter writes the answer of a run. It has no connection.
type runWriter struct {
	gin.ResponseWriter
	answer http.ResponseWriter
	ctx    context.Context
}

// Hijack withholds the answer.
func (w *runWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	middleware.Withhold(w.answer)
	return nil, nil, http.ErrNotSupported
}

// CloseNotify returns a channel that receives when the run is cancelled.
func (w *runWriter) CloseNotify() <-chan bool {
	closed := make(chan bool, 1)
	context.AfterFunc(w.ctx, func() { closed <- true })
	return closed
}
