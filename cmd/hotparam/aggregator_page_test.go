//go:build real

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// status asks the daemon and returns the status and the body of its answer.
func (d *running) status(path string, headers ...string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, d.http+path, http.NoBody)
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// The address and the token decide who may read the page. Probes and metrics are open.
func TestWhoMayReadThePage(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	t.Setenv("TEST_PAGE_TOKEN", token)
	for name, test := range map[string]struct {
		http, settings string
		want           map[string]int
	}{
		"on loopback":     {"127.0.0.1:0", "", map[string]int{"/": 200, "/api/v1/rules": 200, "/assets/main.js": 200, "/nowhere": 404}},
		"anywhere":        {":0", "", map[string]int{"/": 403, "/api/v1/rules": 403, "/login": 403}},
		"with a token":    {":0", "page_token_env: TEST_PAGE_TOKEN, ", map[string]int{"/": 401, "/api/v1/rules": 401, "/api/v1/events": 401, "/login": 200}},
		"without a page":  {"127.0.0.1:0", "page: off, ", map[string]int{"/": 404, "/api/v1/rules": 404, "/login": 404}},
		"another's names": {"127.0.0.1:0", "page_hosts: [agg.example], ", map[string]int{"/": 200}},
	} {
		d := startDaemon(t, "--redis", "redis://"+unreachable(t), "--http", test.http, "--config", write(t, goodRules+"aggregator: {"+test.settings+"listen: '127.0.0.1:0'}\n"))
		d.http = "http://" + strings.Replace(strings.TrimPrefix(d.http, "http://"), "[::]", "127.0.0.1", 1)
		test.want["/-/healthy"], test.want["/metrics"] = 200, 200
		for path, want := range test.want {
			got, body := d.status(path)
			if got != want || want == 403 && !strings.Contains(body, "aggregator.page_token_file") {
				t.Errorf("%s: %s: %d %.200s, want %d", name, path, got, body, want)
			}
		}
		switch name {
		case "with a token":
			if got, body := d.status("/api/v1/rules", "Authorization", "Bearer "+token); got != 200 || !strings.Contains(body, "search-terms") {
				t.Errorf("%s: %d %s", name, got, body)
			}
		case "another's names":
			for host, want := range map[string]int{"agg.example": 200, "evil.example": 421} {
				if got, _ := d.status("/", "Host", host); got != want {
					t.Errorf("%s: %d, want %d", host, got, want)
				}
			}
			if got, _ := d.status("/-/ready", "Host", "evil.example"); got == 421 {
				t.Error("probes know no names")
			}
		}
		d.end()
	}
}

// A key that becomes hot is on the page within seconds, with its reason and its line.
func TestPageShowsAHotKey(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser: left out by -short")
	}
	browser := real.StartChromium(t)
	server := testenv.Redis(t)
	d := startDaemon(t, "--redis", server.URL(), "--config", write(t, goodRules+"aggregator: {listen: '127.0.0.1:0'}\n"))
	conn, err := net.Dial("udp", strings.TrimPrefix(d.find(`statsd=(\S+)`), "udp://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, d.is("ready"))
	tab := browser.Tab(t, 1280, 800)
	tab.Open(d.http)
	tab.Wait("document.getElementById('hot-empty').innerText.includes('Nothing is hot')")
	t.Cleanup(func() func() { // a crowd that lasts as long as the test
		end, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				_, _ = fmt.Fprint(conn, "shop.search-terms.hot_param.GET%20/search?q=<b>phone:500|c\n")
				select {
				case <-end:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		return func() { close(end); <-ended }
	}())
	tab.Wait("document.querySelector('.grid .row .key')?.textContent.includes('phone')")
	tab.Press("ArrowDown", "Enter")
	tab.Wait("document.querySelector('.detail .pairs')?.innerText.includes('Hot at')")
	tab.Wait("document.querySelector('.detail .c-line')?.getAttribute('d')")
	tab.Press("6")
	tab.Wait("document.querySelector('#view-events .tag')?.textContent === 'hot'")
	tab.Press("5")
	tab.Wait("document.getElementById('view-rules').innerText.includes('search-terms')")
	server.Kill()
	tab.Wait("document.getElementById('banners').innerText.includes('Redis is unavailable')")
	for _, problem := range tab.Problems() {
		t.Errorf("the browser says: %s", problem)
	}
}
