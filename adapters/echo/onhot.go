package hpecho

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v5"

	"github.com/hotparam/hotparam/middleware"
)

// lead returns the handler for a run that answers several requests.
func lead(c *handlerCall) http.Handler { return middleware.Restart(c.Echo()) }

// serveRun calls next in such a run, with the writer of its answer. Errors are answered by the
// server's error handler, or by middleware in front of the guard, so they have no answer yet.
func serveRun(c *echo.Context, w http.ResponseWriter, next echo.HandlerFunc) error {
	answer := echo.NewResponse(w, c.Logger())
	c.SetResponse(answer)
	err := next(c)
	switch {
	case err == nil && answer.Committed:
	case !answer.Committed && statusOf(err) >= http.StatusInternalServerError:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		middleware.Withhold(w)
	}
	return err
}

// statusOf returns the status of an error's answer, or zero if there is no error.
func statusOf(err error) int {
	var with echo.HTTPStatusCoder
	switch {
	case err == nil:
		return 0
	case errors.As(err, &with):
		return with.StatusCode()
	}
	return http.StatusInternalServerError
}
