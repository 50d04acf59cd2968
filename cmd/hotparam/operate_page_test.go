//go:build real

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// A person blocks a hot key from a phone. The dialog says what that would have done. An instance
// obeys within a second, Redis has the author and the reason, and the event is listed. A release
// lets the key pass again.
func TestPersonActsInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser: left out by -short")
	}
	browser := real.StartChromium(t)
	server := testenv.Redis(t)
	path := write(t, fmt.Sprintf("namespace: shop\naggregator: {listen: '127.0.0.1:0', redis: %q}\nrules:\n  - {id: search-terms, match: {route: \"GET /search\"}, by: [q], hot: {rate: 200/s}, limit: {rate: 50/s, burst: 50}}\n", server.URL()))
	d := startDaemon(t, "--config", path)
	eventually(t, d.is("ready"))
	g := startGuard(t, path)
	o := startOperate(t, new(http.Transport), "--tokens", people(t), "--http", "127.0.0.1:0", "--config", path)
	conn, err := net.Dial("udp", strings.TrimPrefix(d.find(`statsd=(\S+)`), "udp://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() func() { // a crowd that lasts as long as the test
		end, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			defer conn.Close()
			for {
				_, _ = fmt.Fprint(conn, "shop.search-terms.hot_param.GET%20/search?q=phone:25|c\n")
				select {
				case <-end:
					return
				case <-time.After(100 * time.Millisecond):
				}
			}
		}()
		return func() { close(end); <-ended }
	}())
	tab := browser.Tab(t, 390, 844)
	tab.Open(o.url)
	tab.Wait("document.activeElement.id === 'token'")
	tab.Type(operateToken)
	tab.Press("Enter")
	tab.Wait("document.querySelector('.grid .row .key')?.textContent.includes('phone')")
	tab.Wait("hotparamPage.store.hot.values().next().value.line.length > 4") // seconds of its history
	const blocked = `{"method": "GET", "uri": "/search?q=phone"}`
	refused := func(reason string) bool {
		response, err := g.client.Post("http://door/v1/check", "application/json", strings.NewReader(blocked))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), `"`+reason+`"`)
	}
	tab.Eval("document.querySelector('.grid .row').click()", nil)
	tab.Wait("document.querySelector('.acts [data-act=block]')")
	tab.Eval("document.querySelector('.acts [data-act=block]').click()", nil)
	tab.Wait("/^In the last .* it would have refused all of (at least )?[0-9,-]+ requests[.]/.test(document.querySelector('.act-effect').textContent)")
	var effect string
	tab.Eval("document.querySelector('.act-effect').textContent", &effect)
	t.Log(effect)
	if dir := os.Getenv("HOTPARAM_PICTURES"); dir != "" {
		tab.Screenshot(filepath.Join(dir, "operate-block.png"))
	}
	tab.Type("INC-7")
	if refused("blocked") {
		t.Fatal("the key is blocked before")
	}
	began := time.Now()
	tab.Press("Enter")
	for !refused("blocked") {
		if time.Since(began) > 20*time.Second {
			t.Fatal("the instance does not obey")
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("the instance obeys %v after the key was pressed", time.Since(began).Round(time.Millisecond))
	list := hotparamCommand(t, "list", "--controls", "--config", path)
	list.exits(t, exitOK)
	for _, want := range []string{"block", "GET /search?q=phone", "ann", "INC-7"} {
		if !strings.Contains(list.out, want) {
			t.Errorf("the list has no %q:\n%s", want, list.out)
		}
	}
	tab.Wait("document.querySelector('.acts [data-act=release]')")
	if dir := os.Getenv("HOTPARAM_PICTURES"); dir != "" {
		tab.Screenshot(filepath.Join(dir, "operate-blocked.png"))
	}
	tab.Eval("document.querySelector('.acts [data-act=release]').click()", nil)
	tab.Wait("document.querySelector('.act-effect').textContent.startsWith('In the last ')")
	tab.Press("Enter")
	for began := time.Now(); refused("blocked"); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatal("the instance does not release")
		}
	}
	tab.Wait("!document.getElementById('act').open")
	tab.Press("Escape", "6")
	tab.Wait("[...document.querySelectorAll('#view-events tbody tr')].some((r) => /block.*phone.*INC-7.*ann/s.test(r.textContent)) && [...document.querySelectorAll('#view-events tbody tr')].some((r) => /release.*phone/s.test(r.textContent))")
	if dir := os.Getenv("HOTPARAM_PICTURES"); dir != "" {
		tab.Screenshot(filepath.Join(dir, "operate-events.png"))
	}
	if strings.Contains(o.log.String(), operateToken) {
		t.Error("the log has the token")
	}
	for _, problem := range tab.Problems() {
		t.Errorf("the browser says: %s", problem)
	}
}
