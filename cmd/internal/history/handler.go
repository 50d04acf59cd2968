package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Path is the path of the handler.
const Path = "/api/v1/history"

const (
	// answerTimeout bounds one answer, and atOnce the answers at a time.
	answerTimeout = 5 * time.Second
	atOnce        = 2
)

// NewHandler returns the handler of [Path], whose parameters are
//
//	from, to     Unix seconds; required
//	columns      1 to 1,000 (the default)
//	rule, route, prefix, key, text  as in [Query]
//
// A nil store is a configuration without a history.
func NewHandler(s *Store) http.Handler {
	working := make(chan struct{}, atOnce)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s == nil {
			fail(w, http.StatusNotFound, "history is off: aggregator.history in the rules file switches it on")
			return
		}
		q, err := parseQuery(r.URL.Query())
		if err == nil {
			err = q.Check()
		}
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
		defer cancel()
		select {
		case working <- struct{}{}:
			defer func() { <-working }()
		case <-ctx.Done():
			w.Header().Set("Retry-After", "1")
			fail(w, http.StatusServiceUnavailable, "other answers are being made: try again in a second")
			return
		}
		view, err := s.Read(ctx, q)
		switch {
		case errors.Is(err, ErrNone):
			view = &View{From: q.From.Unix(), To: q.To.Unix(), Step: 1, Gaps: [][2]int64{{q.From.Unix(), q.To.Unix()}}}
		case err != nil:
			fail(w, http.StatusServiceUnavailable, "Redis with the history cannot be read: "+err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(view.AppendJSON(nil), '\n')) // the client may have gone
	})
}

func parseQuery(values url.Values) (q Query, err error) {
	q = Query{Rule: values.Get("rule"), Route: values.Get("route"), Prefix: values.Get("prefix"), Key: values.Get("key"), Text: values.Get("text")}
	for name, to := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		seconds, err := strconv.ParseInt(values.Get(name), 10, 64)
		if err != nil || seconds < 0 || seconds > 1<<40 {
			return q, fmt.Errorf("%s=%.40q: want Unix seconds", name, values.Get(name))
		}
		*to = time.Unix(seconds, 0)
	}
	if text := values.Get("columns"); text != "" {
		if q.Columns, err = strconv.Atoi(text); err != nil || q.Columns < 1 {
			return q, fmt.Errorf("columns=%.40q: want 1 to %d", text, MaxColumns)
		}
	}
	return q, nil
}

func fail(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": words}) // the client may have gone
}
