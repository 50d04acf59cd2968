package page

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/base"
)

const (
	// beat is the interval at which a stream sends something, so that both sides know it is
	// alive.
	beat = 10 * time.Second
	// writeLimit bounds one write. A reader that takes longer is disconnected.
	writeLimit = 5 * time.Second
)

// encode encodes an event of a stream. JSON has no line breaks.
func encode(name string, value any) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\ndata: ", name)
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil { // Encode ends the line
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// events serves /api/v1/events: each event once, beginning after the Last-Event-ID.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	last := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	if last != "" && !live.ValidID(last) {
		fail(w, r, http.StatusBadRequest, "Last-Event-ID: want the id of an event, such as 1732172445123-0.h7")
		return
	}
	p.stream(w, r, false, last)
}

// view serves /api/v1/view: the whole state, then its changes, and events.
func (p *Page) view(w http.ResponseWriter, r *http.Request) { p.stream(w, r, true, "") }

func (p *Page) stream(w http.ResponseWriter, r *http.Request, readsChanges bool, last string) {
	self, ok, err := p.hub.join(base.PeerAt(r.RemoteAddr), readsChanges)
	switch {
	case err != nil:
		fail(w, r, http.StatusInternalServerError, err.Error())
		return
	case !ok:
		w.Header().Set("Retry-After", "10")
		fail(w, r, http.StatusServiceUnavailable, fmt.Sprintf("%d streams are open, which is the most: close a page, or ask another aggregator", maxStreams))
		return
	}
	defer p.hub.removeReader(self)
	out := &streamWriter{w: w, control: http.NewResponseController(w)}
	seen, complete := p.cfg.View.Seek(last)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")    // otherwise nginx delays events
	_ = out.control.SetReadDeadline(time.Time{}) // the server's deadline is for requests that end
	out.write([]byte("retry: 2000\n: connected\n\n"))
	if !complete {
		out.write([]byte("event: gap\ndata: {\"why\":\"some events since Last-Event-ID are not kept any more\"}\n\n"))
	}
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for out.err == nil {
		changed := p.cfg.View.Changed() // before reading the events, so that none is missed
		events, found, lost := p.cfg.View.EventsAfter(seen)
		if seen = found; lost > 0 {
			p.hub.cutSlow(self) // it resumes after its last event
			<-self.cut
			out.cut(self.why)
			return
		}
		for i := range events {
			out.writeEvent(&events[i])
		}
		select {
		case <-r.Context().Done():
			return
		case frame := <-self.frames:
			out.write(frame)
		case <-changed:
		case <-beats.C:
			if readsChanges {
				out.write([]byte("event: beat\ndata: {}\n\n")) // visible to a script, unlike a comment
			} else {
				out.write([]byte(": beat\n\n"))
			}
		case <-self.cut:
			out.cut(self.why)
			return
		}
	}
}

// streamWriter writes to one reader until a write fails.
type streamWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *streamWriter) write(frame []byte) {
	if s.err != nil {
		return
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeLimit)) // each write has its own deadline in place of the server's
	if _, s.err = s.w.Write(frame); s.err == nil {
		s.err = s.control.Flush()
	}
}

func (s *streamWriter) writeEvent(e *live.Event) {
	frame, err := encode(string(e.Type), e)
	if err != nil {
		return // cannot happen for text and numbers
	}
	s.write(append([]byte("id: "+e.ID+"\n"), frame...))
}

// cut sends the reader the reason why the stream ends.
func (s *streamWriter) cut(why string) {
	frame, err := encode("cut", map[string]string{"why": why})
	if err == nil {
		s.write(frame)
	}
}
