package top

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// topKeys returns a snapshot of n hot keys, the first with the highest rate.
func topKeys(n int) *live.Snapshot {
	now := time.Now()
	s := &live.Snapshot{Namespace: "shop", Seq: 1, Read: now, Clock: now, Published: true, InstancesTotal: 3}
	for i := range n {
		s.Hot = append(s.Hot, live.HotKey{Hot: published.Hot{
			Key: rules.Key{Rule: "search-terms", Text: fmt.Sprintf("GET /search?q=term%04d", i)},
			Low: int64(2000 - i), High: int64(2100 - i), Rate: float64(2000 - i), Ratio: float64(i), Since: now.Add(-time.Minute), Until: now.Add(time.Minute),
			Cause: published.Cause{Rate: rules.Rate{N: 200, Per: time.Second}}, Limit: rules.Rate{N: 50, Per: time.Second}, Burst: 100, Mode: rules.ModeLimit,
			Top: &published.Attribution{Routes: []published.Origin{{Name: "GET /search", Count: 100}}, Instances: []published.Origin{{Name: "api-1", Count: 60}}, Callers: []published.Origin{{Name: "10.0.0.7\x1b[2J", Count: 9}}},
		}})
	}
	return s
}

// topScreen returns a model with a state, and the orders that it receives.
func topScreen(width, height int, s *live.Snapshot) (*model, *[]order) {
	var orders []order
	m := newModel("shop", "redis://127.0.0.1:6379/0", func(o order) orderDone {
		orders = append(orders, o)
		return orderDone{answer: "done"}
	})
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	m.Update(snapshotTaken{Snapshot: s})
	return m, &orders
}

// typeKeys presses keys, and runs the commands that they cause.
func typeKeys(m *model, keys ...string) (quit bool) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "down": tea.KeyDown, "up": tea.KeyUp, "backspace": tea.KeyBackspace, "pgdown": tea.KeyPgDown, "end": tea.KeyEnd}
	for _, key := range keys {
		msg := tea.KeyPressMsg{Text: key, Code: []rune(key)[0]}
		if code, ok := special[key]; ok {
			msg = tea.KeyPressMsg{Code: code}
		}
		if _, cmd := m.Update(msg); cmd != nil {
			answer := cmd()
			if _, ok := answer.(tea.QuitMsg); ok {
				return true
			}
			m.Update(answer)
		}
	}
	return false
}

// styles matches the only escape sequences that may be on the screen.
var styles = regexp.MustCompile("\x1b\\[[0-9;]*m")

func topText(m *model) string {
	return styles.ReplaceAllString(strings.Join(m.screen(), "\n"), "")
}

// Whatever the screen shows, no line is too wide and there are not too many, and no text of
// others moves the cursor.
func TestTopFitsEachTerminal(t *testing.T) {
	t.Parallel()
	broken := topKeys(3)
	broken.Hot[0].Text = "GET /search?q=\x1b[2J\x07瀬戸内海瀬戸内海瀬戸内海瀬戸内海瀬戸内海瀬戸内海"
	away := topKeys(3)
	away.Err = errors.New("dial tcp: \x1b[31mrefused")
	for name, s := range map[string]*live.Snapshot{"many": topKeys(1000), "broken": broken, "away": away, "none": {Seq: 1, Read: time.Now(), Namespace: "shop"}, "nothing yet": {Namespace: "shop"}} {
		for _, size := range [][2]int{{80, 24}, {200, 60}, {30, 6}, {5, 2}, {1, 1}, {0, 0}} {
			m, _ := topScreen(size[0], size[1], s)
			for _, keys := range [][]string{nil, {"enter"}, {"esc", "?"}, {"x", "b"}, {"enter", "enter"}, {"esc", "/", "q"}} {
				typeKeys(m, keys...)
				lines := m.screen()
				if len(lines) > size[1] {
					t.Errorf("%s, %v, %v: %d lines", name, size, keys, len(lines))
				}
				for _, line := range lines {
					if w := lipgloss.Width(line); w > size[0] {
						t.Errorf("%s, %v, %v: a line of %d: %q", name, size, keys, w, line)
					}
				}
				if text := topText(m); strings.ContainsAny(text, "\x1b\x07") {
					t.Errorf("%s, %v, %v: control characters in %q", name, size, keys, text)
				}
			}
		}
	}
}

func TestTopSortsFiltersAndKeepsTheKey(t *testing.T) {
	t.Parallel()
	m, _ := topScreen(120, 24, topKeys(100))
	typeKeys(m, "down", "down")
	if m.selected.Text != "GET /search?q=term0002" {
		t.Fatalf("selected is %s", m.selected.Text)
	}
	typeKeys(m, "s") // by ratio: the other way round
	if m.rows[0].key.Text != "GET /search?q=term0099" || m.current().key.Text != "GET /search?q=term0002" || !strings.Contains(topText(m), ">") {
		t.Errorf("by ratio the first is %s, and %s is selected", m.rows[0].key.Text, m.current().key.Text)
	}
	typeKeys(m, "S")
	if m.rows[0].key.Text != "GET /search?q=term0000" {
		t.Errorf("reversed the first is %s", m.rows[0].key.Text)
	}
	typeKeys(m, "/", "T", "E", "R", "M", "0", "0", "1", "enter")
	if len(m.rows) != 10 || !strings.Contains(topText(m), "10 of 100") {
		t.Errorf("the filter leaves %d rows", len(m.rows))
	}
	typeKeys(m, "esc")
	if len(m.rows) != 100 {
		t.Errorf("without a filter there are %d rows", len(m.rows))
	}
	typeKeys(m, "end")
	if m.cursor != 99 || !strings.Contains(topText(m), m.selected.Text) {
		t.Errorf("the last row is not shown: %d", m.cursor)
	}
	m.Update(snapshotTaken{Snapshot: topKeys(3)})
	if m.current() == nil || m.cursor > 2 {
		t.Errorf("after keys went, row %d is selected", m.cursor)
	}
	m.Update(snapshotTaken{Snapshot: &live.Snapshot{Namespace: "shop", Seq: 2, Read: time.Now(), Published: true}})
	if text := topText(m); !strings.Contains(text, "Nothing is hot in namespace shop") {
		t.Errorf("an empty screen says\n%s", text)
	}
	if !typeKeys(m, "enter", "q") {
		t.Error("q does not quit")
	}
}

// Until the user chooses a key, the first is selected, so that the screen shows the top of the
// list. A chosen key stays selected wherever it moves.
func TestTopFollowsTheTop(t *testing.T) {
	t.Parallel()
	m, _ := topScreen(100, 21, topKeys(500))
	turned := func(n int) *live.Snapshot { // rates the other way round
		s := topKeys(n)
		for i := range s.Hot {
			s.Hot[i].Rate = float64(i)
		}
		return s
	}
	m.Update(snapshotTaken{Snapshot: turned(500)})
	if text := topText(m); m.cursor != 0 || m.offset != 0 || m.selected.Text != "GET /search?q=term0499" || !strings.Contains(text, "rows 1–18 of 500") {
		t.Errorf("row %d (%s) is selected:\n%s", m.cursor, m.selected.Text, text)
	}
	typeKeys(m, "down")
	m.Update(snapshotTaken{Snapshot: topKeys(500)})
	if m.selected.Text != "GET /search?q=term0498" || m.cursor != 498 || !strings.Contains(topText(m), "rows 482–499 of 500") {
		t.Errorf("row %d (%s) is selected:\n%s", m.cursor, m.selected.Text, topText(m))
	}
	typeKeys(m, "g")
	m.Update(snapshotTaken{Snapshot: turned(500)})
	if m.cursor != 0 || m.offset != 0 {
		t.Errorf("after g, row %d", m.cursor)
	}
	if m.Update(snapshotTaken{Snapshot: topKeys(3)}); strings.Contains(topText(m), "rows ") {
		t.Error("all rows are in sight, and counted")
	}
}

// On a narrow screen the rate stays visible.
func TestTopOnANarrowScreen(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{40: "RATE KEY", 60: "RATE STATE KEY", 80: "RATE LINE LIMIT STATE KEY"} {
		m, _ := topScreen(width, 24, topKeys(3))
		if got := strings.Join(strings.Fields(strings.Split(topText(m), "\n")[1]), " "); got != want {
			t.Errorf("at %d columns: %s, want %s", width, got, want)
		}
	}
}

func TestTopDetail(t *testing.T) {
	t.Parallel()
	s := topKeys(2)
	s.Hot[0].Admitted.OnHot = admitted.OnHot{Stored: 1940, Alone: 9, AloneFor: "range"}
	s.Controls = []published.Control{
		{Key: s.Hot[0].Key, Action: published.ControlBlock, Until: s.Clock.Add(10*time.Minute + time.Second), Why: "scraper", By: "ops", Claimed: "ann@laptop"},
		{Key: rules.Key{Rule: "other", Text: "GET /gone"}, Action: published.ControlAllow, Until: s.Clock.Add(time.Hour)},
		{Key: rules.Key{Rule: "other", Text: "GET /over"}, Action: published.ControlAllow, Until: s.Clock.Add(-time.Second)},
	}
	m, _ := topScreen(120, 40, s)
	for _, want := range []string{"2 hot", "3 instances", "blocked 10m", "GET /gone", "allowed 59m"} {
		if text := topText(m); !strings.Contains(text, want) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(topText(m), "GET /over") {
		t.Error("a control that is over is listed")
	}
	typeKeys(m, "enter")
	for _, want := range []string{"GET /search?q=term0000", "ops (claims to be ann@laptop): scraper", "2000-2100 in 1s", "hot at      200/s", "50/s, burst 100, mode limit", "on_hot      1940/s from memory, 9.0/s alone (range), by all instances", "ROUTES in 2s", "INSTANCES in 1s", "CALLERS in 2s", "GET /search", "api-1", "10.0.0.7\ufffd[2J"} {
		if text := topText(m); !strings.Contains(text, want) {
			t.Errorf("the details lack %q:\n%s", want, text)
		}
	}
	typeKeys(m, "down")
	if !strings.Contains(topText(m), "term0001") {
		t.Error("down does not show the next key")
	}
}

// A key that is hot by its cost shows how it is held, and why.
func TestTopHeld(t *testing.T) {
	t.Parallel()
	s := topKeys(2)
	for i, stage := range []published.HoldStage{published.HoldKept, published.HoldTrial} {
		h := &s.Hot[i].Hot
		h.Limit, h.Burst, h.Cause = rules.Rate{}, 0, published.Cause{Kind: rules.Cost, Rate: rules.CostRate, Unit: rules.Millis}
		h.Hold = &published.Hold{Pool: "orders-db", Permits: 1, Stage: stage, Share: 0.93, Each: 812 * time.Millisecond, Usual: 4 * time.Millisecond}
	}
	m, _ := topScreen(120, 40, s)
	for _, want := range []string{" cost ", " held ", " on trial "} {
		if text := topText(m); !strings.Contains(text, want) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	typeKeys(m, "enter")
	for _, want := range []string{"hot at      cost, since", "limit       held to 1 at a time, mode limit", "because     93% of orders-db's time · 812 ms a request, others 4.0 ms"} {
		if text := topText(m); !strings.Contains(text, want) {
			t.Errorf("the details lack %q:\n%s", want, text)
		}
	}
}

func TestTopOrders(t *testing.T) {
	t.Parallel()
	s := topKeys(2)
	s.Hot[1].Limit, s.Hot[1].Mode = rules.Rate{}, rules.ModeWatch
	s.Controls = []published.Control{{Key: s.Hot[0].Key, Action: published.ControlBlock, Until: s.Clock.Add(time.Minute)}}
	m, orders := topScreen(120, 24, s)
	typeKeys(m, "b", "1", "0", "m", "5", "m", "enter") // the typed text replaces 10m
	if text := topText(m); !strings.Contains(text, "For how long? 10m5m█") || !strings.Contains(text, "want a number and a unit") {
		t.Errorf("10m5m pass:\n%s", text)
	}
	typeKeys(m, "esc", "b", "x", "enter")
	if !strings.Contains(topText(m), "want a number and a unit") {
		t.Errorf("a length of x passes:\n%s", topText(m))
	}
	typeKeys(m, "backspace", "2", "5", "h", "enter")
	if !strings.Contains(topText(m), "want 1s to 24h") {
		t.Errorf("25h pass:\n%s", topText(m))
	}
	typeKeys(m, "backspace", "backspace", "h", "enter", "b", "o", "t", "enter")
	if text := topText(m); !strings.Contains(text, "Do it for 2h (bot)?") || !strings.Contains(text, "Not known: the key has just become hot.") {
		t.Errorf("there is no confirmation:\n%s", text)
	}
	typeKeys(m, "n")
	if len(*orders) != 0 || !strings.Contains(topText(m), "nothing was changed") {
		t.Errorf("n does it: %v", *orders)
	}
	typeKeys(m, "a", "enter", "enter", "y")
	typeKeys(m, "r", "y")
	typeKeys(m, "p", "esc")
	want := []order{{key: s.Hot[0].Key, action: published.ControlAllow, length: 10 * time.Minute}, {key: s.Hot[0].Key}}
	if len(*orders) != 2 || (*orders)[0] != want[0] || (*orders)[1] != want[1] {
		t.Errorf("the orders are %+v, want %+v", *orders, want)
	}
	typeKeys(m, "down", "r")
	if !strings.Contains(topText(m), "nothing to release") {
		t.Errorf("a release of nothing:\n%s", topText(m))
	}
	typeKeys(m, "p")
	if m.prompt != nil || !strings.Contains(topText(m), "has no limit") {
		t.Errorf("a pin without a limit:\n%s", topText(m))
	}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	m.Update(orderDone{err: errors.New("block: NOPERM this user lacks a right: use one with those of hotparam-operator, which are in docs/REDIS.md")})
	if text := topText(m); !strings.Contains(text, "docs/REDIS.md") {
		t.Errorf("at 80 columns the refusal is cut:\n%s", text)
	}
	m.Update(orderDone{err: errors.New("NOPERM \x1b[2J")})
	if text := topText(m); !strings.Contains(text, "NOPERM") || strings.Contains(text, "\x1b") {
		t.Errorf("a refusal:\n%s", text)
	}
}

// The lines are scaled, and show unknown values as blanks.
func TestTopLines(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	if got := string(blocks([]float64{nan, 0, 1, 4, 8}, 8, 0, 1)); got != " ▁▁▄█" {
		t.Errorf("a line is %q", got)
	}
	if got := string(blocks([]float64{nan, 0, 4, 8}, 8, 1, 2)); got != "   █" {
		t.Errorf("the upper row is %q", got)
	}
	if got := string(blocks([]float64{0}, 0, 0, 1)); got != "▁" {
		t.Errorf("a line of zeros is %q", got)
	}
}

// counter is a view whose state changes on request.
type counter struct {
	mu      sync.Mutex
	n       uint64
	changed chan struct{}
}

func (c *counter) Snapshot() *live.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &live.Snapshot{Seq: c.n}
}

func (c *counter) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *counter) Recent(int) []live.Event { return nil }

func (c *counter) change() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	close(c.changed)
	c.changed = make(chan struct{})
}

// However often the state changes, a busy screen gets one snapshot when it is ready: the newest.
func TestTopSkipsWhatABusyScreenMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &counter{changed: make(chan struct{})}
		var got []uint64
		go sendSnapshots(ctx, c, func(msg tea.Msg) {
			got = append(got, msg.(snapshotTaken).Seq)
			time.Sleep(time.Second / 10) // the screen is busy
		})
		for range 50 {
			time.Sleep(time.Second / 50)
			c.change()
		}
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		if len(got) > 12 || got[len(got)-1] != 50 {
			t.Errorf("of 50 changes in a second the screen got %v", got)
		}
	})
}

// With 1,000 hot keys and 50 updates a second the screen costs a small part of a processor.
func BenchmarkTop(b *testing.B) {
	s := topKeys(1000)
	m, _ := topScreen(200, 60, s)
	b.ReportAllocs()
	for b.Loop() {
		m.Update(snapshotTaken{Snapshot: s})
		m.screen()
	}
}
