package gateway

import (
	"context"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Part is one part of a combined decision. It is a call or, if Call is nil, an access to a
// resource with parameters.
type Part struct {
	Call     *Call
	Resource string
	Params   []rules.Param
	Peek     bool // counts the part and checks whether it would pass, but takes nothing from its limits
}

// Together decides parts that pass together or not at all; see [middleware.Guard.BeginAll].
func (d *Decider) Together(ctx context.Context, parts []Part) ([]rules.Decision, []*middleware.Ticket) {
	all := make([]middleware.Part, len(parts))
	for i := range parts {
		p := &parts[i]
		all[i].Peek = p.Peek
		if p.Call != nil {
			all[i].Request = d.request(ctx, p.Call)
			continue
		}
		all[i].Request = middleware.Request{Context: ctx, Pattern: p.Resource}
		all[i].Params = append([]rules.Param{}, p.Params...)
	}
	return d.config.Hotparam.Guard().BeginAll(all)
}
