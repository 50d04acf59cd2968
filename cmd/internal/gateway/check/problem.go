package check

import (
	"encoding/json"
	"net/http"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// writeProblem writes the response to a failed request.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(gateway.ProblemBody(status, detail), '\n')) // the client may have gone
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // the client may have gone
}
