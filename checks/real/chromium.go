package real

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Chromium is a real browser without a window that belongs to one test. It is driven by
// the DevTools protocol over pipes, so that nothing listens. Its tabs fail the test when
// the browser does not do what is asked.
type Chromium struct {
	in *os.File // we write

	mu      sync.Mutex
	next    int
	answers map[int]chan devtoolsMessage
	tabs    map[string]*Tab
	closed  chan struct{}
}

type devtoolsMessage struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// chromiumPatience is how long one command may take on a busy machine.
const chromiumPatience = 30 * time.Second

// StartChromium starts a browser with an empty profile for the test. It is the chromium
// of the PATH; without one the test is skipped (see the package).
func StartChromium(tb testing.TB) *Chromium {
	tb.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		testenv.Unavailable(tb, "no chromium in PATH: install it (Debian: apt-get install chromium)")
	}
	// Not the test's own directory: helpers of the browser may write there for a moment
	// after it has ended, and the test would fail since it cannot be removed.
	profile, err := os.MkdirTemp("", "hotparam-chromium-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for range 20 {
			if os.RemoveAll(profile) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	theirIn, in, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	args := []string{
		"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + profile, "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
		"--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check",
		"--hide-scrollbars", "--mute-audio", "--force-color-profile=srgb", "--password-store=basic", "--log-level=3",
	}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox") // its sandbox refuses root, and the pages are ours
	}
	b := &Chromium{in: in, answers: make(map[int]chan devtoolsMessage), tabs: make(map[string]*Tab), closed: make(chan struct{})}
	tb.Cleanup(func() { // after the process has ended
		_ = b.in.Close()
		_ = theirOut.Close()
		<-b.closed
	})
	cmd := exec.Command(path, args...)
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as the flag wants them
	testenv.Start(tb, cmd)
	_, _ = theirIn.Close(), theirOut.Close()
	go b.read(out)
	return b
}

// read takes what the browser says until it ends.
func (b *Chromium) read(out *os.File) {
	defer close(b.closed)
	defer func() { _ = out.Close() }()
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m devtoolsMessage
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer, asked := b.answers[m.ID]; asked && m.ID > 0 {
			delete(b.answers, m.ID)
			answer <- m // it has room for one
		} else if tab := b.tabs[m.Session]; tab != nil && m.Method != "" {
			tab.record(m)
		}
		b.mu.Unlock()
	}
}

// call sends a command and returns its result, or why the browser refuses it.
func (b *Chromium) call(tb testing.TB, session, method string, params any) (result json.RawMessage, refused string) {
	tb.Helper()
	raw, err := json.Marshal(params)
	if err != nil {
		tb.Fatal(err)
	}
	answer := make(chan devtoolsMessage, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.answers[id] = answer
	b.mu.Unlock()
	text, err := json.Marshal(devtoolsMessage{ID: id, Session: session, Method: method, Params: raw})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		tb.Fatalf("real: chromium: %s: %v", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, m.Error.Message
		}
		return m.Result, ""
	case <-b.closed:
		tb.Fatalf("real: chromium: %s: the browser has ended", method)
	case <-time.After(chromiumPatience):
		tb.Fatalf("real: chromium: %s: no answer", method)
	}
	return nil, ""
}

// do is call for commands that must not be refused.
func (b *Chromium) do(tb testing.TB, session, method string, params any) json.RawMessage {
	tb.Helper()
	result, refused := b.call(tb, session, method, params)
	if refused != "" {
		tb.Fatalf("real: chromium: %s: %s", method, refused)
	}
	return result
}

// Tab is a tab of a [Chromium].
type Tab struct {
	tb      testing.TB
	browser *Chromium
	session string

	problems []string // guarded by browser.mu
	loads    int
}

// Tab opens an empty tab of the given size, in CSS pixels, for a test or a part of it. Its
// methods belong to that one's goroutine.
func (b *Chromium) Tab(tb testing.TB, width, height int) *Tab {
	tb.Helper()
	var target struct {
		TargetID string `json:"targetId"`
	}
	decode(tb, b.do(tb, "", "Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var attached struct {
		SessionID string `json:"sessionId"`
	}
	decode(tb, b.do(tb, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &attached)
	t := &Tab{tb: tb, browser: b, session: attached.SessionID}
	b.mu.Lock()
	b.tabs[t.session] = t
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		t.Call(domain+".enable", map[string]any{})
	}
	t.Resize(width, height)
	return t
}

func decode(tb testing.TB, raw json.RawMessage, value any) {
	tb.Helper()
	if err := json.Unmarshal(raw, value); err != nil {
		tb.Fatalf("real: chromium: %s: %v", raw, err)
	}
}

// record keeps what a developer would be shown in red. b.mu is held.
func (t *Tab) record(m devtoolsMessage) {
	switch m.Method {
	case "Page.loadEventFired":
		t.loads++
	case "Runtime.exceptionThrown":
		t.problems = append(t.problems, "exception: "+string(m.Params))
	case "Runtime.consoleAPICalled":
		var p struct{ Type string }
		if json.Unmarshal(m.Params, &p) == nil && slices.Contains([]string{"error", "warning", "assert"}, p.Type) {
			t.problems = append(t.problems, "console: "+string(m.Params))
		}
	case "Log.entryAdded": // of the browser itself, such as violations of a content security policy
		var p struct {
			Entry struct{ Level, Source, Text, URL string }
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Entry.Level != "info" && p.Entry.Level != "verbose" {
			t.problems = append(t.problems, fmt.Sprintf("%s: %s %s", p.Entry.Source, p.Entry.Text, p.Entry.URL))
		}
	}
}

// Problems returns the errors and warnings of the console, exceptions, and violations of
// policies, since the last call.
func (t *Tab) Problems() []string {
	t.browser.mu.Lock()
	defer t.browser.mu.Unlock()
	problems := t.problems
	t.problems = nil
	return problems
}

// Call sends a command of the DevTools protocol and returns its result.
func (t *Tab) Call(method string, params map[string]any) json.RawMessage {
	t.tb.Helper()
	return t.browser.do(t.tb, t.session, method, params)
}

// Resize sets the size of the screen in CSS pixels.
func (t *Tab) Resize(width, height int) {
	t.tb.Helper()
	t.Call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// Prefer sets what the user prefers, such as prefers-color-scheme: dark.
func (t *Tab) Prefer(feature, value string) {
	t.tb.Helper()
	t.Call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": feature, "value": value}}})
}

// Open goes to a URL and returns when it is loaded.
func (t *Tab) Open(url string) {
	t.tb.Helper()
	before := t.loadCount()
	t.Call("Page.navigate", map[string]any{"url": url})
	for end := time.Now().Add(chromiumPatience); t.loadCount() == before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.tb.Fatalf("real: chromium: %s does not load", url)
		}
	}
}

func (t *Tab) loadCount() int {
	t.browser.mu.Lock()
	defer t.browser.mu.Unlock()
	return t.loads
}

// Eval evaluates an expression of JavaScript, awaits it if it is a promise, and decodes
// its JSON into value, unless that is nil.
func (t *Tab) Eval(expression string, value any) {
	t.tb.Helper()
	if refused := t.eval(expression, value); refused != "" {
		t.tb.Fatalf("real: chromium: %s: %s", expression, refused)
	}
}

// eval is Eval that returns why the browser refuses it: it does while it goes to another page.
func (t *Tab) eval(expression string, value any) (refused string) {
	t.tb.Helper()
	var answer struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	result, refused := t.browser.call(t.tb, t.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	if refused != "" {
		return refused
	}
	decode(t.tb, result, &answer)
	if e := answer.ExceptionDetails; e != nil {
		t.tb.Fatalf("real: chromium: %s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if value != nil {
		decode(t.tb, answer.Result.Value, value)
	}
	return ""
}

// Wait returns when an expression is true, and fails the test if it is not in time.
func (t *Tab) Wait(expression string) {
	t.tb.Helper()
	for end := time.Now().Add(chromiumPatience); ; time.Sleep(25 * time.Millisecond) {
		var yes bool
		if t.eval("Boolean("+expression+")", &yes); yes {
			return
		}
		if time.Now().After(end) {
			var text string
			t.Eval("document.body.innerText.slice(0, 2000)", &text)
			t.tb.Fatalf("real: chromium: never true: %s; the page says:\n%s\n%q", expression, text, t.Problems())
		}
	}
}

// Press presses a key by its name, "Enter", "ArrowDown", or by its character, "j".
func (t *Tab) Press(keys ...string) {
	t.tb.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, "ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "PageDown": 34}
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		if code, named := codes[key]; named {
			down["windowsVirtualKeyCode"], down["code"] = code, key
			if key == "Enter" {
				down["text"] = "\r"
			}
		} else {
			down["text"] = key
		}
		t.Call("Input.dispatchKeyEvent", down)
		t.Call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
	}
}

// Type types text where the focus is.
func (t *Tab) Type(text string) {
	t.tb.Helper()
	t.Call("Input.insertText", map[string]any{"text": text})
}

// Screenshot writes what is seen as a PNG.
func (t *Tab) Screenshot(path string) {
	t.tb.Helper()
	var answer struct{ Data string }
	decode(t.tb, t.Call("Page.captureScreenshot", map[string]any{"format": "png"}), &answer)
	picture, err := base64.StdEncoding.DecodeString(strings.TrimSpace(answer.Data))
	if err == nil {
		err = os.WriteFile(path, picture, 0o644)
	}
	if err != nil {
		t.tb.Fatal(err)
	}
}
