package onhot

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A body that a back end cuts off is no answer, though the proxy has no Content-Length to see it by.
// Real servers run here, since httputil.ReverseProxy panics only within one.
func TestProxyOfATruncatedBody(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/cut" {
			panic(http.ErrAbortHandler)
		}
	}))
	defer origin.Close()
	target, err := url.Parse(origin.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s := newSite(t, hour, proxy.ServeHTTP)
	defer closeCache(t, s.Cache)
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	defer server.Close()
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	get := func(path string) (string, error) {
		res, err := client.Get(server.URL + path)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return string(body), err
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if body, err := get("/cut"); err == nil {
				t.Errorf("%q as a whole answer", body)
			}
			if body, err := get("/whole"); body != "half" || err != nil {
				t.Errorf("%q, %v", body, err)
			}
		})
	}
	wg.Wait()
	if n := s.Stats().How[Hit] + s.Stats().How[Joined]; n != 4 {
		t.Errorf("%d shared answers, want 4", n)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}
