package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Chromium is a real headless browser that belongs to one test. It is driven over pipes, so that
// nothing listens. Its tabs fail the test if the browser does not do as asked.
type Chromium struct{ ctx context.Context }

// chromiumPatience bounds one command on a busy machine.
const chromiumPatience = 30 * time.Second

// StartChromium starts the chromium of the PATH with an empty profile for the test. Without one
// the test is skipped (see the package).
func StartChromium(tb testing.TB) *Chromium {
	tb.Helper()
	path := testenv.Program(tb, "chromium", "chromium", "chromium-browser", "google-chrome")
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU,
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("mute-audio", true), chromedp.Flag("disable-component-update", true))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // its sandbox refuses root, and the pages are trusted
	}
	ctx, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ = chromedp.NewContext(ctx) // ends with its parent
	tb.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits for the process and removes the profile
			tb.Logf("real: chromium: %v", err)
		}
		end()
	})
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("real: chromium: %v", err)
	}
	return &Chromium{ctx}
}

// Tab is a tab of a [Chromium].
type Tab struct {
	tb  testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// Tab opens an empty tab of the given size, in CSS pixels, for a test or a part of it. Its
// methods must be called from the goroutine of that test.
func (b *Chromium) Tab(tb testing.TB, width, height int) *Tab {
	tb.Helper()
	ctx, end := chromedp.NewContext(b.ctx)
	tb.Cleanup(end)
	t := &Tab{tb: tb, ctx: ctx}
	if err := chromedp.Listen(ctx, t.record); err != nil {
		tb.Fatalf("real: chromium: %v", err)
	}
	do(t, "a tab", cdpCall(log.Enable, cdp.Empty{}))
	do(t, "a tab", cdpCall(runtime.Enable, cdp.Empty{}))
	t.Resize(width, height)
	return t
}

// cdpCall returns a command of the DevTools protocol as an action.
func cdpCall[P, R any](command cdp.Command[P, R], params P) chromedp.Action[R] {
	return func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, params) }
}

// do runs an action that must not fail.
func do[T any](t *Tab, what string, action chromedp.Action[T]) T {
	t.tb.Helper()
	value, err := try(t, action)
	if err != nil {
		t.tb.Fatalf("real: chromium: %s: %v", what, err)
	}
	return value
}

func try[T any](t *Tab, action chromedp.Action[T]) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, chromiumPatience)
	defer cancel()
	return chromedp.Run(ctx, action)
}

// record keeps the errors and warnings that the console would show.
func (t *Tab) record(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = fmt.Sprintf("exception: %v", e.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		switch e.Type {
		case "error", "warning", "assert":
			args, _ := json.Marshal(e.Args)
			problem = "console: " + string(args)
		}
	case *log.EventEntryAdded: // from the browser itself, such as violations of a content security policy
		if e.Entry.Level != "info" && e.Entry.Level != "verbose" {
			problem = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	}
	if problem != "" {
		t.mu.Lock()
		t.problems = append(t.problems, problem)
		t.mu.Unlock()
	}
}

// Problems returns the errors and warnings of the console, exceptions, and violations of
// policies, since the last call.
func (t *Tab) Problems() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	problems := t.problems
	t.problems = nil
	return problems
}

// CollectGarbage forces a garbage collection of the page.
func (t *Tab) CollectGarbage() {
	t.tb.Helper()
	do(t, "garbage", cdpCall(heapprofiler.CollectGarbage, cdp.Empty{}))
}

// Resize sets the size of the screen in CSS pixels.
func (t *Tab) Resize(width, height int) {
	t.tb.Helper()
	do(t, "the size", chromedp.EmulateViewport(int64(width), int64(height)))
}

// Prefer sets a preference of the user, such as prefers-color-scheme: dark.
func (t *Tab) Prefer(feature, value string) {
	t.tb.Helper()
	do(t, feature, cdpCall(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}}))
}

// Open navigates to a URL and returns when it is loaded.
func (t *Tab) Open(url string) {
	t.tb.Helper()
	do(t, url, chromedp.Navigate(url))
}

// Eval evaluates an expression of JavaScript and awaits it if it is a promise. It decodes the
// JSON of the result into value, unless value is nil.
func (t *Tab) Eval(expression string, value any) {
	t.tb.Helper()
	result := do(t, expression, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise))
	if value == nil {
		return
	}
	if err := json.Unmarshal(result, value); err != nil {
		t.tb.Fatalf("real: chromium: %s: %q: %v", expression, result, err)
	}
}

// Wait waits until an expression is true, and fails the test if that takes too long.
func (t *Tab) Wait(expression string) {
	t.tb.Helper()
	for end := time.Now().Add(chromiumPatience); ; time.Sleep(25 * time.Millisecond) {
		yes, err := try(t, chromedp.Evaluate[bool]("Boolean("+expression+")", chromedp.EvalAwaitPromise))
		if thrown := new(chromedp.ExceptionError); errors.As(err, &thrown) {
			t.tb.Fatalf("real: chromium: %s: %v", expression, err)
		}
		if yes {
			return
		}
		if time.Now().After(end) { // evaluation fails during a navigation
			var text string
			t.Eval("document.body.innerText.slice(0, 2000)", &text)
			t.tb.Fatalf("real: chromium: never true: %s: %v; the page says:\n%s\n%q", expression, err, text, t.Problems())
		}
	}
}

var keyNames = map[string]string{
	"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "ArrowDown": kb.ArrowDown, "ArrowUp": kb.ArrowUp,
	"ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight, "Home": kb.Home, "End": kb.End, "PageDown": kb.PageDown, "Backspace": kb.Backspace,
}

// Press presses a key by its name, "Enter" or "ArrowDown", or by its character, "j". Unlike with
// [chromedp.KeyEvent], a key whose keydown event the page prevents is not typed.
func (t *Tab) Press(keys ...string) {
	t.tb.Helper()
	for _, key := range keys {
		if named, ok := keyNames[key]; ok {
			key = named
		}
		for _, r := range key {
			events := kb.Encode(r)
			down := events[0]
			for _, e := range events[1:] {
				if e.Type == kb.KeyChar {
					down.Type, down.Text = kb.KeyDown, e.Text
				}
			}
			do(t, "a key", cdpCall(input.DispatchKeyEvent, *down))
			do(t, "a key", cdpCall(input.DispatchKeyEvent, *events[len(events)-1]))
		}
	}
}

// Type types text where the focus is.
func (t *Tab) Type(text string) {
	t.tb.Helper()
	do(t, "text", cdpCall(input.InsertText, input.InsertTextParams{Text: text}))
}

// Screenshot writes the visible page as a PNG.
func (t *Tab) Screenshot(path string) {
	t.tb.Helper()
	if err := os.WriteFile(path, do(t, path, chromedp.CaptureScreenshot()), 0o644); err != nil {
		t.tb.Fatal(err)
	}
}
