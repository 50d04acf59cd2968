//go:build !race

// The test takes long, and shorter bodies run the same code under the race detector.

package middleware

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// A body of 1 GB is streamed both ways, and takes no more memory than the largest body that the
// guard reads.
func TestLargeBodiesStream(t *testing.T) {
	size := int64(1 << 30)
	if testing.Short() {
		size = 1 << 24
	}
	f := newFixture(t, bodyRules(t))
	mux := http.NewServeMux()
	var most int64
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		buf := make([]byte, 1<<16)
		for {
			n, err := r.Body.Read(buf)
			if _, bad := w.Write(buf[:n]); bad != nil {
				t.Error(bad)
				return
			}
			most = max(most, f.bodies.Held.Load())
			if err != nil {
				break
			}
		}
		if err := rc.Flush(); err != nil {
			t.Error(err)
		}
	})
	s := httptest.NewServer(f.Handler(mux))
	defer s.Close()
	for _, chunked := range []bool{true, false} {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL, io.LimitReader(zeros{}, size))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", jsonType)
		if r.ContentLength = size; chunked {
			r.ContentLength = -1
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		runtime.ReadMemStats(&after)
		if n != size || err != nil {
			t.Errorf("chunked %v: %d bytes, %v", chunked, n, err)
		}
		if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 8<<20 {
			t.Errorf("chunked %v: %d bytes were allocated", chunked, grown)
		}
	}
	if most > rules.DefaultMaxBody+1 || f.Stats().Unread != (Unread{TooLarge: 2}) {
		t.Errorf("%d bytes were held, %+v", most, f.Stats().Unread)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
