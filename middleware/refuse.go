package middleware

import "github.com/hotparam/hotparam/rules"

// refuse sets the decision on a denied request: it passes in shadow mode, is answered instead
// of the handler, or is refused. The denial of a run that refreshes an answer refuses no request.
func (r *request) refuse() {
	if r.in.run.refreshes() {
		return
	}
	g, d := r.guard, &r.verdict.decision
	if g.opts.shadow {
		g.stats.Shadowed.Add(1)
		r.verdict.pass(rules.ReasonShadow, d.Rule)
		return
	}
	g.stats.Limited.Add(1)
	d.Backoff = r.backoff(d, &r.verdict)
	switch d.Reason {
	case rules.ReasonBlocked:
		g.stats.Blocked.Add(1)
	case rules.ReasonBusy:
		g.stats.Busy.Add(1)
	case rules.ReasonUnavailable:
		g.stats.Unavailable.Add(1)
	}
	if r.verdict.serves() {
		g.stats.Served.Add(1)
		d.Reason = rules.ReasonServed
	}
}
