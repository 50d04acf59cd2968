package middleware

import (
	"net/http"

	"github.com/hotparam/hotparam/middleware/internal/meter"
	"github.com/hotparam/hotparam/rules"
)

// serve serves the ticket's request, measures the costs that its rules count, and ends the
// ticket, even if the handler panics.
func (t *Ticket) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if t.metered = t.metered && !meter.LastsLong(r); t.metered {
		if t.client == nil {
			t.client = new(meter.Client)
		}
		w = t.client.Wrap(w, r)
	}
	request := r
	if ctx := t.Context(r.Context()); t.cancel != nil {
		r = r.WithContext(ctx)
	}
	t.Start()
	var body *meter.Response
	var said *spent
	defer func() {
		var cost Cost
		if body != nil {
			cost.Bytes = body.Bytes
		}
		if said != nil {
			cost.Units = said.units.Load()
		}
		if t.metered {
			t.client.Unwrap(request)
		}
		t.End(cost)
	}()
	if t.Counts(rules.Units) {
		ctx, sum := withSpent(r.Context())
		r, said = r.WithContext(ctx), sum
	}
	if t.Counts(rules.Bytes) && r.Method != http.MethodHead { // responses to HEAD have no body
		body = &meter.Response{ResponseWriter: w}
		w = body.WithInterfacesOf(w)
	}
	next.ServeHTTP(w, r)
}
