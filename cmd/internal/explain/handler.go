package explain

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
)

// Path is the path at which a daemon explains requests. It takes a POST with a [RequestJSON] as
// JSON, and answers with a [Document] or with {"error": …}.
const Path = "/api/v1/explain"

// Source provides the facts by which a daemon explains.
type Source struct {
	// Rules returns the rules in force.
	Rules func() Rules
	// Client reads the hot keys.
	Client redis.UniversalClient
}

const (
	maxMessage     = 2*MaxBody + 64<<10 // larger than MaxBody, since JSON escapes bytes
	handlerTimeout = 5 * time.Second
)

// NewHandler returns the handler of [Path]. It explains one request at a time, since each takes
// some megabytes. Other requests wait for their turn, at most 5 s.
func NewHandler(source Source) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q RequestJSON
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxMessage)).Decode(&q); err != nil {
			fail(w, http.StatusBadRequest, "want a request as JSON: "+err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), handlerTimeout)
		defer cancel()
		select {
		case turn <- struct{}{}:
			defer func() { <-turn }()
		case <-ctx.Done():
			fail(w, http.StatusServiceUnavailable, "busy with other requests; try again")
			return
		}
		rules := source.Rules()
		d, err := Explain(q, rules, Read(ctx, source.Client, rules.Namespace))
		if err != nil {
			fail(w, http.StatusBadRequest, err.Error())
			return
		}
		send(w, http.StatusOK, d)
	})
}

func fail(w http.ResponseWriter, status int, words string) {
	send(w, status, map[string]string{"error": words})
}

func send(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // an error means that the client has disconnected
}
