package check

import (
	_ "embed"
	"net/http"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

const (
	defaultTimeout        = time.Second
	defaultMaxConnections = 512
	defaultMaxBody        = 256 << 10 // bytes of a request's body
)

// Door serves the check API to programs.
type Door struct {
	gateway.HTTPDoor
	mux     *http.ServeMux
	maxBody int64
}

// New returns a door. Tickets are required. The token of c must be sent as "Authorization: Bearer
// TOKEN". New starts nothing.
func New(c gateway.DoorConfig) (*Door, error) {
	if err := c.SetDefaults(defaultTimeout, defaultMaxConnections, true); err != nil {
		return nil, err
	}
	d := &Door{mux: http.NewServeMux(), maxBody: defaultMaxBody}
	d.mux.HandleFunc("POST /v1/check", d.serveCheck)
	d.mux.HandleFunc("POST /v1/check/batch", d.serveBatch)
	d.mux.HandleFunc("POST /v1/done", d.serveDone)
	d.HTTPDoor = gateway.NewHTTPDoor(c, 0, d)
	return d, nil
}

// ServeHTTP answers one request of the API.
func (d *Door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, pattern := d.mux.Handler(r)
	switch {
	case r.URL.Path == "/v1/openapi.json" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI)
	case !d.Accepts(bearer(r)):
		d.Fault(gateway.Unauthorized, "")
		w.Header().Set("WWW-Authenticate", `Bearer realm="hotparam"`)
		writeProblem(w, http.StatusUnauthorized, "the token is missing or wrong: send it as Authorization: Bearer TOKEN")
	case pattern != "":
		d.mux.ServeHTTP(w, r)
	case strings.HasPrefix(r.URL.Path, "/v1/") && r.Method != http.MethodPost:
		d.Fault(gateway.Unreadable, "")
		w.Header().Set("Allow", http.MethodPost)
		writeProblem(w, http.StatusMethodNotAllowed, "want POST")
	default:
		d.Fault(gateway.Unreadable, "")
		writeProblem(w, http.StatusNotFound, "want POST /v1/check, /v1/check/batch or /v1/done; GET /v1/openapi.json describes them")
	}
}

//go:embed openapi.json
var openAPI []byte

// bearer returns the token of a request, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
