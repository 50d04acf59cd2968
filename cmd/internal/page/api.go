package page

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/rules"
)

// api returns the handler of /api/v1. Its arrays are those of `hotparam list --json`.
func (p *Page) api() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/hot", p.snapshotHandler(func(s *live.Snapshot) any {
		hot := make([]listed.Hot, 0, len(s.Hot))
		for i := range s.Hot {
			hot = append(hot, listed.OfOne(&s.Hot[i].Hot, s.Hot[i].Admitted))
		}
		return hot
	}))
	mux.HandleFunc("GET /api/v1/suspects", p.snapshotHandler(func(s *live.Snapshot) any { return listed.OfSuspects(s.Suspects) }))
	mux.HandleFunc("GET /api/v1/near", p.snapshotHandler(func(s *live.Snapshot) any { return listed.OfSummary(&s.Summary) }))
	mux.HandleFunc("GET /api/v1/controls", p.snapshotHandler(func(s *live.Snapshot) any { return listed.OfControls(s.Controls) }))
	mux.HandleFunc("GET /api/v1/instances", p.snapshotHandler(func(s *live.Snapshot) any { return listed.OfMembers(s.Members, s.Instances) }))
	mux.HandleFunc("GET /api/v1/rules", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, p.cfg.Rules()) })
	mux.HandleFunc("GET /api/v1/events", p.events)

	// For the page only; these may change with it.
	mux.HandleFunc("GET /api/v1/session", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, map[string]any{"token": p.cfg.Guard.HasToken(), "streams_full": p.hub.full(), "may_act": p.acting != nil, "author": authorOf(r)})
	})
	if p.acting != nil {
		p.acting.register(mux)
	}
	mux.HandleFunc("GET /api/v1/view", p.view)
	mux.HandleFunc("GET /api/v1/view/key", p.viewKey)
	mux.HandleFunc("GET /api/v1/view/lines", p.viewLines)
	mux.HandleFunc("/api/v1/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, http.StatusNotFound, "known are hot, suspects, near, controls, instances, rules, history and events, each by GET")
	})
	return mux
}

// snapshotHandler returns a handler that serves value of the newest snapshot, or an error if Redis
// could not be read since.
func (p *Page) snapshotHandler(value func(*live.Snapshot) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := p.cfg.View.Snapshot()
		switch {
		case s.Err != nil:
			fail(w, r, http.StatusServiceUnavailable, "Redis cannot be read: "+s.Err.Error())
		case s.Read.IsZero():
			fail(w, r, http.StatusServiceUnavailable, "Redis has not been read yet: try again in a second")
		default:
			writeJSON(w, value(s))
		}
	}
}

// maxLines is the number of keys whose lines one request may ask for: more than are in sight.
const maxLines = 100

// viewLines serves the lines of keys, by the ids in a stream.
func (p *Page) viewLines(w http.ResponseWriter, r *http.Request) {
	ids := strings.Split(r.URL.Query().Get("ids"), ",")
	if len(ids) > maxLines {
		fail(w, r, http.StatusBadRequest, "too many ids: want 100 at most")
		return
	}
	wanted := make(map[rules.Key]string, len(ids))
	for _, id := range ids {
		if key, ok := p.keyOf(id); ok {
			wanted[key] = id
		}
	}
	lines := make(map[string]json.RawMessage, len(wanted))
	s := p.cfg.View.Snapshot()
	for i := range s.Hot {
		if id, ok := wanted[s.Hot[i].Key]; ok {
			lines[id] = appendLine(nil, s.Hot[i].History)
		}
	}
	writeJSON(w, map[string]any{"lines": lines})
}

// appendLine appends [[unix seconds, rate, low, high, refused share], …], the oldest first.
func appendLine(dst []byte, h live.History) []byte {
	dst = append(dst, '[')
	for i := range h.Len() {
		point := h.At(i)
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, '['), point.At.Unix(), 10)
		dst = appendPoint(append(dst, ','), point.Rate, point.Low, bound(point.High))
		dst = strconv.AppendFloat(append(dst[:len(dst)-1], ','), point.Refused, 'g', 3, 64)
		dst = append(dst, ']')
	}
	return append(dst, ']')
}

// viewKey serves all details of one key.
func (p *Page) viewKey(w http.ResponseWriter, r *http.Request) {
	key, ok := p.keyOf(r.URL.Query().Get("id"))
	s := p.cfg.View.Snapshot()
	for i := range s.Hot {
		if ok && s.Hot[i].Key == key {
			writeJSON(w, map[string]any{"hot": listed.OfOne(&s.Hot[i].Hot, s.Hot[i].Admitted)})
			return
		}
	}
	fail(w, r, http.StatusNotFound, "the key is not hot any more")
}

func (p *Page) keyOf(id string) (rules.Key, bool) {
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return rules.Key{}, false
	}
	return p.hub.keyOf(uint32(n))
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // the client has gone
}
