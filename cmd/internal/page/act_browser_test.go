//go:build real

package page

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// logIn opens a page that acts, as ann.
func logIn(t *testing.T, tab *real.Tab, s *live.Snapshot) (*fixture, *fakeView) {
	t.Helper()
	view := newFakeView(t)
	f := &fixture{actor: new(fakeActor)}
	f.serve(t, view, "")
	view.show(s)
	tab.Open(f.server.URL)
	tab.Wait("document.activeElement.id === 'token' && document.body.innerText.includes('hotparam operate --tokens')")
	tab.Type(testToken)
	tab.Press("Enter")
	tab.Wait("!document.getElementById('act-button')?.hidden && " + rowsInSight + " > 0")
	return f, view
}

func click(tab *real.Tab, selector string) {
	tab.Wait("document.querySelector(`" + selector + "`)")
	tab.Eval("document.querySelector(`"+selector+"`).click()", nil)
}

// ordered waits until the actor has n orders, and returns the last.
func ordered(t *testing.T, f *fixture, n int) hotkeys.ControlOrder {
	t.Helper()
	eventually(t, func() error {
		if got := len(f.actor.all()); got != n {
			return fmt.Errorf("%d orders, want %d", got, n)
		}
		return nil
	})
	return f.actor.all()[n-1]
}

// A person acts on a hot key, on a key that is not listed, and releases, with a phone and with a
// keyboard.
func peopleAct(t *testing.T, tab *real.Tab) {
	source := axeSource(t)
	for _, look := range []struct {
		theme string
		width int
	}{{"light", 390}, {"dark", 1360}} {
		tab.Resize(look.width, 844)
		s := manyKeys(3, 0)
		key := s.Hot[2].Key // the first by rate
		f, view := logIn(t, tab, s)
		tab.Eval("while (document.documentElement.dataset.theme !== '"+look.theme+"') document.getElementById('theme-button').click()", nil)
		tab.Eval(source, nil)
		check := func(what string) {
			t.Helper()
			picture(t, tab, fmt.Sprintf("act-%s-%d", what, look.width))
			checkBarriers(t, tab, fmt.Sprintf("%s, %s, %d px", what, look.theme, look.width))
			var over int
			if tab.Eval("document.documentElement.scrollWidth - innerWidth", &over); over > 0 {
				t.Errorf("%s: the page is %d px wider than the screen", what, over)
			}
		}
		tab.Press("j", "Enter")
		click(tab, ".acts [data-act=block]")
		tab.Wait("document.querySelector('.act-effect').textContent.startsWith('Not known')")
		tab.Wait("document.activeElement.id === 'act-why'")
		check("block")
		tab.Press("Enter") // without a reason
		if n := len(f.actor.all()); n != 0 {
			t.Fatalf("%d orders without a reason", n)
		}
		tab.Type("INC-7 <b>")
		tab.Eval("const pick = document.getElementById('act-for'); pick.value = '30m'; pick.dispatchEvent(new Event('change'))", nil)
		tab.Wait("document.querySelector('#act .primary').textContent === 'Block for 30 min'")
		tab.Press("Enter")
		if got, want := ordered(t, f, 1), (hotkeys.ControlOrder{Key: key, Action: published.ControlBlock, For: 30 * time.Minute, Why: "INC-7 <b>", Claimed: "ann"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		tab.Wait("!document.getElementById('act').open && document.querySelector('.acted').textContent.includes('is blocked until')")
		check("done")
		// What Redis has is shown, and can be released, from the key and from the controls.
		next := *s
		next.Controls = []published.Control{{Key: key, Action: published.ControlBlock, Since: time.Now(), Until: time.Now().Add(time.Hour), Why: "INC-7", By: "operate", Claimed: "ann"}}
		view.show(&next)
		tab.Wait("[...document.querySelectorAll('.acts button')].map((b) => b.dataset.act).join() === 'pin,allow,release'")
		tab.Press("r")
		tab.Wait("document.querySelector('.act-effect').textContent !== ''")
		check("release")
		tab.Press("Enter")
		if got, want := ordered(t, f, 2), (hotkeys.ControlOrder{Key: key, Claimed: "ann"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		tab.Wait("!document.getElementById('act').open")
		tab.Press("Escape", "3")
		click(tab, "[data-release]")
		tab.Wait("document.getElementById('act-title').textContent === 'Release this key'")
		check("controls")
		tab.Press("Escape")
		// A key that is only suspect.
		next.Suspects = []published.Hot{{Key: rules.Key{Rule: "terms", Text: "GET /search?q=lamp"}, Rate: 7}}
		view.show(&next)
		tab.Wait("!document.getElementById('act').contains(document.activeElement)")
		tab.Press("2")
		click(tab, "#view-suspects [data-act=pin]")
		tab.Wait("document.getElementById('act-title').textContent === 'Pin this key' && document.querySelector('.act-key').textContent.includes('q=lamp')")
		check("suspects")
		tab.Press("Escape")
		// A key that is not listed.
		click(tab, "#act-button")
		tab.Wait("document.activeElement.id === 'act-words'")
		tab.Type("nothing")
		tab.Eval("const words = document.getElementById('act-words'); words.dispatchEvent(new Event('change'))", nil)
		tab.Wait("document.querySelector('#act [role=alert]').textContent === 'no such key'")
		tab.Eval("words.value = 'terms GET /search?q=laptop'; words.dispatchEvent(new Event('change'))", nil)
		tab.Wait("document.querySelector('.act-effect').textContent.includes('the key is not hot') && document.querySelector('#act [role=alert]').hidden")
		check("other")
		tab.Eval("document.getElementById('act-why').focus()", nil)
		tab.Type("night")
		tab.Press("Enter")
		if got := ordered(t, f, 3); got.Key != (rules.Key{Rule: "terms", Text: "GET /search?q=laptop"}) || got.For != 10*time.Minute {
			t.Errorf("%+v", got)
		}
		tab.Wait("!document.getElementById('act').open")
		// A problem is said, and can be tried again.
		f.actor.mu.Lock()
		f.actor.err = fmt.Errorf("Redis does not answer")
		f.actor.mu.Unlock()
		click(tab, "[data-release]")
		tab.Wait("document.querySelector('.act-effect').textContent !== ''")
		tab.Press("Enter")
		tab.Wait("document.querySelector('#act [role=alert]').textContent === 'Redis does not answer'")
		check("problem")
		for _, problem := range tab.Problems() {
			if !strings.Contains(problem, "400") && !strings.Contains(problem, "503") {
				t.Errorf("the browser says: %s", problem)
			}
		}
		tab.Press("Escape")
		tab.Eval("document.querySelector('#logout button').click()", nil)
		tab.Wait("location.pathname === '/login'")
	}
}

// attacks is a page of another origin that tries to act with the session of a person who visits
// it. %[1]s is the page that acts.
const attacks = `<!doctype html><title>attacks</title>
<iframe id="frame" src="%[1]s/"></iframe>
<iframe name="hidden"></iframe>
<form id="form" method="post" action="%[1]s/api/v1/act/confirmation" enctype="text/plain" target="hidden"><input name='{"key":"search-terms GET /search?q=value-0000","action":"block","x":"' value='"}'></form>
<script>
const body = JSON.stringify({key: "search-terms GET /search?q=value-0000", action: "block"});
const to = "%[1]s/api/v1/act/confirmation";
const send = (options) => fetch(to, {method: "POST", credentials: "include", body, ...options}).then((r) => r.type + " " + r.status, () => "failed");
window.results = Promise.all([
  send({mode: "no-cors"}),
  send({mode: "no-cors", headers: {"Content-Type": "text/plain"}}),
  send({headers: {"Content-Type": "application/json", "Hotparam-Act": "1"}}),
  send({mode: "no-cors", method: "GET", body: undefined}),
]);
document.getElementById("form").submit();
</script>`

// A page of another origin, on the same host or another, can neither act nor show the page in a
// frame, whatever session the browser has.
func otherSites(t *testing.T, tab *real.Tab) {
	f, _ := logIn(t, tab, manyKeys(1, 0))
	posted := make(chan string, 100)
	handler := f.server.Config.Handler
	f.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &statusRecorder{ResponseWriter: w}
		handler.ServeHTTP(rec, r)
		if r.Method != http.MethodGet {
			posted <- fmt.Sprint(r.Method, " ", rec.status)
		}
	})
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, attacks, f.server.URL)
	}))
	defer evil.Close()
	for _, site := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		tab.Problems()
		tab.Open(site)
		var results []string
		tab.Eval("window.results", &results)
		if want := []string{"opaque 0", "opaque 0", "failed", "opaque 0"}; strings.Join(results, ",") != strings.Join(want, ",") && strings.Contains(strings.Join(results, ","), "200") {
			t.Errorf("%s: %q", site, results)
		}
		for range 4 { // three posts, and the preflight
			select {
			case got := <-posted:
				if !strings.HasPrefix(got, "POST 403") && !strings.HasPrefix(got, "OPTIONS 4") {
					t.Errorf("%s: %s", site, got)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("%s: a request does not arrive", site)
			}
		}
		framed := false
		eventually(t, func() error {
			for _, problem := range tab.Problems() {
				framed = framed || strings.Contains(problem, "frame-ancestors") || strings.Contains(problem, "X-Frame-Options")
			}
			if !framed {
				return fmt.Errorf("%s: the browser shows the page in a frame", site)
			}
			return nil
		})
	}
	if n, open := len(f.actor.all()), len(f.page.acting.confirmations.open); n != 0 || open != 0 {
		t.Errorf("%d orders, %d confirmations", n, open)
	}
	// The session is still there, so the attacks failed for another reason.
	tab.Open(f.server.URL)
	tab.Wait("document.getElementById('author').textContent === 'ann'")
	tab.Problems()
}

// statusRecorder records the status of an answer.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
