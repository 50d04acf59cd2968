package middlewaretest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"
)

var messageCases = []Case{
	{"bodies", testBodies},
	{"refused before the body", testRefusedBody},
	{"100-continue", testContinue},
	{"streams", testStreams},
	{"trailers and statuses", testTrailers},
}

// digest answers with a digest of the body that the handler reads.
var digest = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	fmt.Fprintf(w, "%d %d %x %v", n, r.ContentLength, sum.Sum(nil), err)
})

var upload = []Route{{Method: "POST", Pattern: "/upload", Handler: digest}}

// Bodies reach the handler byte for byte.
func testBodies(t *testing.T, s Start) {
	f := start(t, s, countAll, upload)
	random := rand.NewChaCha8([32]byte{})
	for _, size := range []int{0, 1, 4096, 1 << 20} {
		body := make([]byte, size)
		_, _ = random.Read(body)
		for _, chunked := range []bool{false, true} {
			req := f.request(t.Context(), "POST", "/upload", bytes.NewReader(body))
			length := int64(size)
			if chunked && size > 0 {
				req.ContentLength, length = -1, -1
			}
			want := fmt.Sprintf("%d %d %x %v", size, length, sha256.Sum256(body), error(nil))
			if a := f.do(req); a.status != http.StatusOK || a.body != want {
				t.Errorf("%d bytes, chunked %v: status %d\n%s, want\n%s", size, chunked, a.status, a.body, want)
			}
		}
	}
}

// A refusal reaches a client that sends a body.
func testRefusedBody(t *testing.T, s Start) {
	f := start(t, s, `{id: uploads, match: {route: "POST /upload"}, limit: {rate: 1/1h, burst: 1}}`, upload)
	for i, want := range []int{200, 429, 429} {
		req := f.request(t.Context(), "POST", "/upload", bytes.NewReader(make([]byte, 1<<15)))
		if a := f.do(req); a.status != want {
			t.Errorf("request %d: status %d, want %d", i, a.status, want)
		}
	}
}

// A client that waits for 100 Continue sends the body if the request passes. It need not send
// the body of a refused request.
func testContinue(t *testing.T, s Start) {
	f := start(t, s, `{id: uploads, match: {route: "POST /upload"}, limit: {rate: 1/1h, burst: 1}}`, upload)
	for i, want := range []int{http.StatusContinue, http.StatusTooManyRequests} {
		conn := f.dial()
		_, err := io.WriteString(conn, "POST /upload HTTP/1.1\r\nHost: suite\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		var status int
		if _, err := fmt.Fscanf(in, "HTTP/1.1 %d", &status); err != nil || status != want {
			t.Fatalf("request %d: status %d (%v), want %d", i, status, err, want)
		}
		if status != http.StatusContinue {
			continue
		}
		for line := "-"; line != "\r\n"; { // skips the rest of that answer
			if line, err = in.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := io.WriteString(conn, "hello"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || !bytes.HasPrefix(body, []byte("5 5 ")) {
			t.Errorf("request %d: status %d, %s", i, res.StatusCode, body)
		}
	}
}

// Flushed data arrives while the handler runs, even if the guard measures the response.
func testStreams(t *testing.T, s Start) {
	next := make(chan struct{})
	routes := []Route{{Method: "GET", Pattern: "/events", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			if i == 1 { // by the older interface
				if flusher, ok := w.(http.Flusher); ok {
					flusher.Flush()
				}
			} else if err := http.NewResponseController(w).Flush(); err != nil {
				fmt.Fprintf(w, "flush: %v\n", err)
			}
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
		}
	})}}
	f := start(t, s, `{id: bytes, match: {route: "GET /events"}, count: bytes, hot: 1000000000/s}`, routes)
	res, err := f.client.Do(f.request(t.Context(), "GET", "/events", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	total := int64(0)
	for i := range 3 {
		for _, want := range []string{fmt.Sprintf("data: %d\n", i), "\n"} {
			line, err := in.ReadString('\n')
			if err != nil || line != want {
				t.Fatalf("event %d: %q, %v", i, line, err)
			}
			total += int64(len(line))
		}
		select {
		case next <- struct{}{}:
		case <-time.After(longest):
			t.Fatal("the handler has ended")
		}
	}
	if tail, err := io.ReadAll(in); err != nil || len(tail) > 0 {
		t.Errorf("after the events: %q, %v", tail, err)
	}
	f.await("the bytes of the stream", func() bool { return f.counted()["GET /events"] == total })
}

func testTrailers(t *testing.T, s Start) {
	routes := []Route{
		{Method: "GET", Pattern: "/created", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Own", "kept")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "made")
		})},
		{Method: "GET", Pattern: "/none", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		})},
	}
	f := start(t, s, countAll+"\n"+`{id: bytes, match: {route: "*"}, count: bytes, hot: 1000000000/s}`, routes)
	if a := f.get("/created"); a.status != http.StatusCreated || a.header.Get("X-Own") != "kept" || a.body != "made" {
		t.Errorf("%+v", a)
	}
	if a := f.get("/none"); a.status != http.StatusNoContent || a.body != "" {
		t.Errorf("%+v", a)
	}
}
