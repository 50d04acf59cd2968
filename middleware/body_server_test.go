package middleware

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// tellBody answers with everything that it sees of the body.
func tellBody(w http.ResponseWriter, r *http.Request) {
	length, encoding := r.ContentLength, slices.Clone(r.TransferEncoding)
	declared := slices.Sorted(maps.Keys(r.Trailer))
	h := sha256.New()
	var n int64
	var err error
	for buf := make([]byte, 777); err == nil; {
		var got int
		got, err = r.Body.Read(buf)
		n += int64(got)
		h.Write(buf[:got])
	}
	_, again := r.Body.Read(make([]byte, 1))
	trailers := []string{}
	for name, values := range r.Trailer {
		trailers = append(trailers, fmt.Sprint(name, values))
	}
	slices.Sort(trailers)
	closed := r.Body.Close()
	_, after := r.Body.Read(make([]byte, 1))
	fmt.Fprintf(w, "length %d %v, %d bytes %x, ended %v, again %v, trailers %v %v, close %v, after %v, form %v", length, encoding, n, h.Sum(nil), err, again, declared, trailers, closed, after, r.Form)
}

// tellForm answers with the result of net/http's parser.
func tellForm(w http.ResponseWriter, r *http.Request) {
	err := r.ParseMultipartForm(1 << 20)
	files := 0
	if r.MultipartForm != nil {
		for _, f := range r.MultipartForm.File {
			files += len(f)
		}
	}
	fmt.Fprint(w, r.Form, r.PostForm, files, err)
}

func bodyRules(tb testing.TB) rules.Rules {
	return rules.Rules{Rules: []rules.Rule{hotRule(tb, "r", "/", byNames("form:user", "json:user"), 0, 0)}}
}

// bodyServers returns a server whose handlers are guarded, and one whose handlers are not.
func bodyServers(t *testing.T, f *fixture, http2 bool) (guarded, plain *httptest.Server) {
	mux := http.NewServeMux()
	mux.HandleFunc("/tell", tellBody)
	mux.HandleFunc("/form", tellForm)
	mux.HandleFunc("/none", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "read nothing") })
	mux.HandleFunc("/some", func(w http.ResponseWriter, r *http.Request) {
		head := make([]byte, 10)
		n, err := io.ReadFull(r.Body, head)
		fmt.Fprint(w, string(head[:n]), err)
	})
	mux.HandleFunc("/limited", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 100_000))
		fmt.Fprint(w, len(text), err)
	})
	start := func(h http.Handler) *httptest.Server {
		s := httptest.NewUnstartedServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // connections end in the middle of bodies
		if s.EnableHTTP2 = http2; http2 {
			s.StartTLS()
		} else {
			s.Start()
		}
		t.Cleanup(s.Close)
		return s
	}
	return start(f.Handler(mux)), start(mux)
}

// Whatever the body, the handler sees the same as without a guard. (Whether the server then keeps
// the connection may differ: less is left of a body that was partly read.)
func TestHandlersSeeTheSameBody(t *testing.T) {
	large := strings.Repeat("0123456789", 30_000)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, "user=ann")
	z.Close()
	multipart := "--x\r\nContent-Disposition: form-data; name=\"user\"\r\n\r\nann\r\n--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n" + large[:1000] + "\r\n--x--\r\n"
	texts := []struct{ name, contentType, text string }{
		{"form", formType, "user=ann&x=1"}, {"empty", formType, ""}, {"large form", formType, "user=ann&x=" + large},
		{"multipart", "multipart/form-data; boundary=x", multipart}, {"broken multipart", "multipart/form-data; boundary=x", multipart[:100]},
		{"large multipart", "multipart/form-data; boundary=x", strings.Replace(multipart, "ann", large, 1)},
		{"JSON", jsonType, `{"user":"ann"}`}, {"broken JSON", jsonType, `{"user":`}, {"large JSON", jsonType, `{"user":"` + large + `"}`},
		{"as large as can be", formType, large[:rules.DefaultMaxBody]}, {"a byte more", formType, large[:rules.DefaultMaxBody+1]},
		{"gzip", formType, zipped.String()}, {"text", "text/plain", "user=ann"},
	}
	for _, http2 := range []bool{false, true} {
		f := newFixture(t, bodyRules(t))
		guarded, plain := bodyServers(t, f, http2)
		guarded.Client().Transport.(*http.Transport).ExpectContinueTimeout = 10 * time.Second
		plain.Client().Transport.(*http.Transport).ExpectContinueTimeout = 10 * time.Second
		for _, text := range texts {
			for _, path := range []string{"/tell", "/form", "/none", "/some", "/limited"} {
				for _, how := range []string{"sized", "chunked", "trailers", "continue"} {
					try := func(s *httptest.Server) (string, error) {
						r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+path+"?user=bob", strings.NewReader(text.text))
						if err != nil {
							t.Fatal(err)
						}
						r.Header.Set("Content-Type", text.contentType)
						if text.name == "gzip" {
							r.Header.Set("Content-Encoding", "gzip")
						}
						switch how {
						case "chunked", "trailers":
							r.ContentLength = -1
							r.Body = io.NopCloser(struct{ io.Reader }{strings.NewReader(text.text)})
							if how == "trailers" {
								r.Trailer = http.Header{"X-Sum": {"1"}}
							}
						case "continue":
							r.Header.Set("Expect", "100-continue")
						}
						resp, err := s.Client().Do(r)
						if err != nil {
							return "", err
						}
						defer resp.Body.Close()
						answer, err := io.ReadAll(resp.Body)
						return fmt.Sprint(resp.Status, string(answer)), err
					}
					// A server that has not read all of a body resets the connection, which may
					// overtake its answer.
					ask := func(s *httptest.Server) (answer string) {
						err := errors.New("")
						for n := 0; err != nil && n < 100; n++ {
							answer, err = try(s)
						}
						return fmt.Sprint(answer, err)
					}
					got, want := ask(guarded), ask(plain)
					if how == "trailers" && text.text != "" { // which come with the end of the body, that may be read before
						got, want = strings.ReplaceAll(got, "[X-Sum[1]]", "[]"), strings.ReplaceAll(want, "[X-Sum[1]]", "[]")
					}
					if got != want {
						t.Errorf("HTTP/2 %v, %s, %s, %s:\n%s, want\n%s", http2, text.name, path, how, got, want)
					}
				}
			}
		}
		if s := f.Stats(); s.Bodies == 0 || s.Unread.TooLarge == 0 || s.Unread.Malformed == 0 || s.Unread.Encoded == 0 {
			t.Errorf("%+v", s)
		}
		guarded.Close() // which waits for handlers
		if held := f.bodies.Held.Load(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	}
}

// A request that another rule denies is never asked to continue, and one that passes is.
func TestNoContinueForDenied(t *testing.T) {
	f := newFixture(t, rules.Rules{Rules: []rules.Rule{limitRule(t, "user", "POST /tell", byNames("form:user"), 1, 10), limitRule(t, "once", "*", rules.By{}, 1, 1)}})
	guarded, _ := bodyServers(t, f, false)
	for i, want := range []string{"100", "429"} {
		conn, err := net.Dial("tcp", guarded.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /tell HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n", formType)
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+want) {
			t.Errorf("request %d: %q, %v", i, line, err)
		}
		conn.Close()
	}
}

// A request whose body is not read, because of a lack of room or of its headers, is answered
// without the body and without waiting for it.
func TestNoContinueForUnread(t *testing.T) {
	ruleset := bodyRules(t)
	ruleset.Rules[0].Unread = rules.UnreadReject
	f := newFixture(t, ruleset)
	f.bodies.Held.Store(64 << 20) // by others
	guarded, _ := bodyServers(t, f, false)
	for head, want := range map[string]Unread{
		"Content-Length: 8":                                 {NoRoom: 1},
		"Transfer-Encoding: chunked":                        {NoRoom: 1},
		"Content-Length: 8\r\nContent-Encoding: gzip":       {Encoded: 1},
		"Content-Length: 80000":                             {TooLarge: 1},
		"Transfer-Encoding: chunked\r\nContent-Encoding: x": {Encoded: 1},
	} {
		before := f.Stats().Unread
		conn, err := net.Dial("tcp", guarded.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /none HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\n%s\r\nExpect: 100-continue\r\n\r\n", formType, head)
		line, err := bufio.NewReader(conn).ReadString('\n')
		got := f.Stats().Unread
		got.NoRoom, got.Encoded, got.TooLarge = got.NoRoom-before.NoRoom, got.Encoded-before.Encoded, got.TooLarge-before.TooLarge
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 400") || got != want {
			t.Errorf("%q: %q, %v, %+v", head, line, err, got)
		}
		conn.Close()
	}
}

// A handler gets the usual errors from a client that disconnects or is too slow for the server's
// deadline.
func TestClientsThatDoNotFinish(t *testing.T) {
	for _, how := range []string{"goes away", "is slow"} {
		told := make(chan string, 1)
		f := newFixture(t, bodyRules(t))
		mux := http.NewServeMux()
		mux.HandleFunc("POST /", func(_ http.ResponseWriter, r *http.Request) {
			text, err := io.ReadAll(r.Body)
			var late net.Error
			told <- fmt.Sprint(string(text), " ", errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &late) && late.Timeout())
		})
		s := httptest.NewUnstartedServer(f.Handler(mux))
		s.Config.ReadTimeout = 200 * time.Millisecond
		s.Start()
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\nuser=ann", formType)
		want := "user=ann false true"
		if how == "goes away" {
			conn.Close()
			want = "user=ann true false"
		}
		if got := <-told; got != want {
			t.Errorf("%s: %s, want %s", how, got, want)
		}
		conn.Close()
		s.Close()
		if st := f.Stats(); st.Unread != (Unread{Failed: 1}) || f.bodies.Held.Load() != 0 {
			t.Errorf("%s: %+v, %d bytes are held", how, st.Unread, f.bodies.Held.Load())
		}
	}
}

// A request to upgrade is left alone, and its connection can be hijacked. So can the connection of
// a request whose body was read.
func TestHijackBehindBodies(t *testing.T) {
	f := newFixture(t, bodyRules(t))
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		line, err := buf.ReadString('\n')
		fmt.Fprintf(conn, "%s %s%v\n", text, line, err)
	})
	s := httptest.NewServer(f.Handler(mux))
	defer s.Close()
	for head, want := range map[string]string{
		"Content-Length: 8\r\n\r\nuser=ann":                       "user=ann hello\n<nil>\n",
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n":       " hello\n<nil>\n",
		"Transfer-Encoding: chunked\r\n\r\n3\r\na=b\r\n0\r\n\r\n": "a=b hello\n<nil>\n",
	} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: %s\r\n%shello\n", formType, head)
		if got, err := io.ReadAll(conn); string(got) != want || err != nil {
			t.Errorf("%q: %q, %v", head, got, err)
		}
		conn.Close()
	}
}
