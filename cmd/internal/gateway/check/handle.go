package check

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
)

func (d *Door) serveCheck(w http.ResponseWriter, r *http.Request) {
	var q question
	if !d.read(w, r, &q) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	writeJSON(w, d.check(ctx, &q))
}

func (d *Door) serveBatch(w http.ResponseWriter, r *http.Request) {
	var b checkBatch
	if !d.read(w, r, &b) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), d.Timeout)
	defer cancel()
	results := make([]checkResult, 0, len(b.Checks))
	for i := range b.Checks {
		results = append(results, d.check(ctx, &b.Checks[i]))
	}
	writeJSON(w, map[string]any{"results": results})
}

func (d *Door) serveDone(w http.ResponseWriter, r *http.Request) {
	var in done
	if !d.read(w, r, &in) {
		return
	}
	if d.Tickets.End(in.Ticket, in.cost()) == gateway.Unknown {
		writeProblem(w, http.StatusGone, "no such ticket: it was ended long ago, is older than guard.ticket_age, or is of another guard")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// check decides one question.
func (d *Door) check(ctx context.Context, q *question) checkResult {
	call := gateway.Call{Resource: q.Resource, Context: q.Context, NoWait: true}
	if q.Resource != "" {
		call.Params = q.params()
	} else {
		call.Method, call.Target, call.Header, call.Addr = q.Method, q.URI, q.header(), q.Addr
		call.Caller, call.FromProgram, call.Steps = q.Caller, true, middleware.Steps(q.Step)
	}
	decision, ticket := d.Decider.Begin(ctx, &call)
	id := ""
	switch {
	case ticket == nil:
	case !q.Hold:
		ticket.End(middleware.Cost{})
	default:
		held := false
		if id, held = d.Tickets.Hold(ticket); !held {
			id, decision = "", gateway.NoPlace()
		}
	}
	d.Decided(decision.Allowed)
	out := newResult(&decision, q.Method)
	out.Ticket = id
	return out
}

// read decodes the body of a request into to. If that fails, it sends an error and returns false.
func (d *Door) read(w http.ResponseWriter, r *http.Request, to interface{ validate() error }) (ok bool) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		// Without CORS, a browser does not send this type for a page of another site.
		d.Fault(gateway.Unreadable, "")
		writeProblem(w, http.StatusUnsupportedMediaType, "want Content-Type: application/json")
		return false
	}
	err := decode(http.MaxBytesReader(w, r.Body, d.maxBody), to)
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		d.Fault(gateway.TooLarge, "")
		writeProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", d.maxBody))
		return false
	}
	if errors.Is(err, os.ErrDeadlineExceeded) { // the server counts it and closes the connection
		writeProblem(w, http.StatusRequestTimeout, "the body did not come in time")
		return false
	}
	if err != nil {
		d.Fault(gateway.Unreadable, "")
		writeProblem(w, http.StatusBadRequest, err.Error())
		return false
	}
	return true
}
