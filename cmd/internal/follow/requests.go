package follow

import (
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/middleware"
)

// requests turns entries into requests and counts them.
type requests struct {
	guard  *middleware.Guard
	values *replay.LogValues
	clean  bool // clean paths like the guard in front of the application does
}

func (r *requests) count(e *accesslog.Entry) {
	path, query, _ := strings.Cut(e.Target, "?")
	if r.clean && path != "*" {
		path = gateway.CleanPath(path)
	}
	req := middleware.Request{Method: e.Method, Path: path, Query: query, Caller: e.Addr}
	r.values.Add(&req, e)
	_, ticket := r.guard.Begin(req)
	ticket.End(middleware.Cost{Bytes: max(0, e.Bytes), Time: e.Took})
}

func cleansPaths(file *config.File) bool { return file.Guard.WithDefaults().Paths != config.PathsRaw }
