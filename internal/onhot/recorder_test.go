package onhot

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// A recorded answer is what net/http would have sent.
func TestRecordedAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		status  int
		body    string
		header  string
		want    string
	}{
		"nothing":                 {func(w http.ResponseWriter, r *http.Request) {}, 200, "", "Content-Length", "0"},
		"type by content":         {func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "<html>") }, 200, "<html>", "Content-Type", "text/html; charset=utf-8"},
		"type of the first write": {func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "x"); _, _ = w.Write([]byte{0}) }, 200, "x\x00", "Content-Type", "text/plain; charset=utf-8"},
		"encoded": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "x")
		}, 200, "x", "Content-Type", ""},
		"type after the status": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404); _, _ = io.WriteString(w, "<html>") }, 404, "<html>", "Content-Type", "text/html; charset=utf-8"},
		"no type": {func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			_, _ = io.WriteString(w, "<html>")
		}, 200, "<html>", "Content-Type", ""},
		"first status":    {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404); w.WriteHeader(200) }, 404, "", "Content-Length", "0"},
		"early hints":     {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(103); _, _ = io.WriteString(w, "x") }, 200, "x", "Content-Length", "1"},
		"header too late": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200); w.Header().Set("X", "1") }, 200, "", "X", ""},
		"no content": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(204)
			_, _ = io.WriteString(w, "x")
		}, 204, "", "Content-Length", ""},
		"hop by hop": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "X")
			w.Header().Set("X", "1")
		}, 200, "", "X", ""},
		"age of another cache": {func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Age", "5") }, 200, "", "Age", "5"},
		"names as written":     {func(w http.ResponseWriter, r *http.Request) { w.Header()["x-lower"] = []string{"1"} }, 200, "", "X-Lower", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, rules.OnHot{Cache: time.Hour, Status: []int{200, 204, 404}}, c.handler)
			defer closeCache(t, s.Cache)
			for _, how := range []string{"led", "hit"} {
				w, res := s.ask("GET", "/")
				expect(t, w, res, how, c.status, c.body)
				if got := w.Header().Get(c.header); got != c.want {
					t.Errorf("%s: %q, want %q", c.header, got, c.want)
				}
				if w.Header().Get("Date") == "" {
					t.Error("no Date")
				}
			}
		})
	}
}

// A goroutine that a handler leaves behind does not change the answer.
func TestLateWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late error
		s := newSite(t, hour, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "answer")
			go func() {
				time.Sleep(time.Second)
				_, late = io.WriteString(w, "late")
				w.WriteHeader(500)
				w.(http.Flusher).Flush()
			}()
		})
		defer closeCache(t, s.Cache)
		s.get("/")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		w, res := s.ask("GET", "/")
		expect(t, w, res, "hit", 200, "answer")
		if !errors.Is(late, errUnshared) {
			t.Error(late)
		}
	})
}

// A body that is copied from a buffer is not changed when the handler reuses the buffer.
func TestBodyIsCopied(t *testing.T) {
	s := newSite(t, hour, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "6")
		buffer := []byte("answer")
		_, _ = w.Write(buffer)
		copy(buffer, bytes.Repeat([]byte("x"), len(buffer)))
	})
	defer closeCache(t, s.Cache)
	w, res := s.ask("GET", "/")
	expect(t, w, res, "led", 200, "answer")
}

// An answer that is withheld is not shared, whether it is written or not, and the target is
// remembered as one of these.
func TestWithhold(t *testing.T) {
	withhold := func(w http.ResponseWriter) { w.(interface{ Withhold() }).Withhold() }
	for name, leader := range map[string]http.HandlerFunc{
		"before": func(w http.ResponseWriter, r *http.Request) { withhold(w); _, _ = io.WriteString(w, "x") },
		"after":  func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "x"); withhold(w) },
		"twice":  func(w http.ResponseWriter, r *http.Request) { withhold(w); withhold(w) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, hour, func(w http.ResponseWriter, r *http.Request) {
				if isLeader(r) {
					leader(w, r)
					return
				}
				_, _ = io.WriteString(w, "own")
			})
			defer closeCache(t, s.Cache)
			for range 2 {
				w, res := s.ask("GET", "/")
				expect(t, w, res, "alone: withheld", 200, "own")
			}
			if n := s.calls.Load(); n != 3 {
				t.Errorf("%d calls", n)
			}
		})
	}
}
