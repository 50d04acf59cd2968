package gateway

import (
	"context"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/middleware"
)

// Part is one of several things that a gateway asks about at once. It is a call or, if Call is
// nil, the parameters of a resource.
type Part struct {
	Call     *Call
	Resource string
	Params   []hotparam.Param
	Peek     bool // takes nothing: it is only checked whether it would pass
}

// Together decides on parts that pass together or not at all; see [middleware.Guard.BeginAll].
func (d *Decider) Together(ctx context.Context, parts []Part) ([]hotparam.Decision, []*middleware.Ticket) {
	all := make([]middleware.Part, len(parts))
	for i := range parts {
		p := &parts[i]
		all[i].Peek = p.Peek
		if p.Call != nil {
			all[i].Request = d.request(ctx, p.Call)
			continue
		}
		all[i].Request = middleware.Request{Context: ctx, Pattern: p.Resource}
		all[i].Params = append([]hotparam.Param{}, p.Params...)
	}
	return d.config.Hotparam.Guard().BeginAll(all)
}
