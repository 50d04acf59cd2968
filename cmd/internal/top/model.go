package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// screenRow is a key on the screen: a hot key, one with an operator's control, or both.
type screenRow struct {
	key     rules.Key
	hot     *live.HotKey       // nil if it is not hot
	control *published.Control // nil if there is none
	lowered string             // rule and key in lower case, for the filter
}

// sorting is the order of the rows.
type sorting int

const (
	byRate sorting = iota
	byRatio
	bySince
	byRule
	byKey
	numSortings
)

var sortWords = [numSortings]string{"rate", "ratio to the threshold", "time", "rule", "key"}

// model is the state of the screen. Its methods do not block: slow operations are commands that
// bubbletea runs.
type model struct {
	namespace, redis string
	operate          func(order) orderDone

	snapshot *live.Snapshot
	events   []live.Event // the newest events, the oldest first
	all      []screenRow  // rows of the snapshot
	rows     []screenRow  // rows that pass the filter, sorted

	sort      sorting
	reverse   bool
	filter    string
	filtering bool // whether keys edit the filter

	selected rules.Key
	moved    bool // a person chose the selected key; otherwise the first row is selected
	cursor   int  // index of the selected key in rows
	offset   int  // index of the first visible row

	detail bool
	help   bool
	prompt *prompt
	result string // answer to the last order, or its error
	failed bool   // whether result is an error
	busy   bool   // whether an order is in flight

	width, height int
}

func newModel(namespace, redis string, operate func(order) orderDone) *model {
	return &model{namespace: namespace, redis: redis, operate: operate, snapshot: &live.Snapshot{Namespace: namespace}}
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case snapshotTaken:
		m.snapshot, m.events = msg.Snapshot, msg.events
		m.buildRows()
	case orderDone:
		m.busy, m.result, m.failed = false, msg.answer, msg.err != nil
		if msg.err != nil {
			m.result = msg.err.Error()
		}
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+c" {
			return m, tea.Quit
		}
		return m, m.press(msg)
	}
	return m, nil
}

// buildRows builds the rows of a new snapshot: its hot keys, and the keys with a control that has
// not expired.
func (m *model) buildRows() {
	s := m.snapshot
	controls := make(map[rules.Key]*published.Control, len(s.Controls))
	for i := range s.Controls {
		if s.Controls[i].Until.After(m.clock()) {
			controls[s.Controls[i].Key] = &s.Controls[i]
		}
	}
	m.all = make([]screenRow, 0, len(s.Hot)+len(controls))
	for i := range s.Hot {
		key := s.Hot[i].Key
		m.all = append(m.all, screenRow{key: key, hot: &s.Hot[i], control: controls[key]})
		delete(controls, key)
	}
	for key, c := range controls {
		m.all = append(m.all, screenRow{key: key, control: c})
	}
	for i := range m.all {
		m.all[i].lowered = strings.ToLower(m.all[i].key.String())
	}
	m.arrange()
}

// arrange filters and sorts the rows, and keeps the selected key.
func (m *model) arrange() {
	want := strings.ToLower(m.filter)
	m.rows = m.rows[:0]
	for _, r := range m.all {
		if strings.Contains(r.lowered, want) {
			m.rows = append(m.rows, r)
		}
	}
	slices.SortFunc(m.rows, func(a, b screenRow) int {
		c := m.compare(&a, &b)
		if m.reverse {
			c = -c
		}
		return cmp.Or(c, cmp.Compare(a.key.Rule, b.key.Rule), cmp.Compare(a.key.Text, b.key.Text))
	})
	if !m.moved {
		m.move(0)
		return
	}
	i := slices.IndexFunc(m.rows, func(r screenRow) bool { return r.key == m.selected })
	if i < 0 { // the key has cooled: select the one in its place
		i = max(0, min(m.cursor, len(m.rows)-1))
	}
	m.move(i)
}

// compare orders rows by the chosen sorting. By rate, ratio and time, keys that are not hot come
// last, or first if the order is reversed.
func (m *model) compare(a, b *screenRow) int {
	value := func(r *screenRow) (rate, ratio, since float64) {
		if r.hot == nil {
			return -1, -1, 0
		}
		return r.hot.Rate, r.hot.Ratio, float64(r.hot.Since.UnixMilli())
	}
	rate, ratio, since := value(a)
	otherRate, otherRatio, otherSince := value(b)
	switch m.sort {
	case byRatio:
		return cmp.Compare(otherRatio, ratio)
	case bySince:
		return cmp.Compare(otherSince, since)
	case byRule:
		return cmp.Or(cmp.Compare(a.key.Rule, b.key.Rule), cmp.Compare(otherRate, rate))
	case byKey:
		return cmp.Compare(a.key.Text, b.key.Text)
	}
	return cmp.Compare(otherRate, rate)
}

// move selects a row, and scrolls it into view.
func (m *model) move(to int) {
	if len(m.rows) == 0 {
		m.cursor, m.offset = 0, 0
		return
	}
	m.cursor = max(0, min(to, len(m.rows)-1))
	m.selected = m.rows[m.cursor].key
	page := m.page()
	m.offset = max(0, min(m.offset, len(m.rows)-page))
	m.offset = min(max(m.offset, m.cursor-page+1), m.cursor)
}

// choose selects a row for a person. The selection then survives a change in the order of the
// rows.
func (m *model) choose(to int) {
	m.move(to)
	m.moved = true
}

// current returns the selected row, or nil if there is none.
func (m *model) current() *screenRow {
	if m.cursor < len(m.rows) {
		return &m.rows[m.cursor]
	}
	return nil
}

// press handles a key.
func (m *model) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	switch {
	case m.prompt != nil:
		return m.answer(msg)
	case m.filtering:
		m.pressFilter(msg)
		return nil
	case m.help:
		m.help = false
		return nil
	}
	switch key {
	case "q":
		return tea.Quit
	case "esc", "backspace", "h", "left":
		switch {
		case m.detail:
			m.detail = false
		case key == "esc":
			m.filter, m.result = "", ""
			m.arrange()
		}
	case "?", "f1":
		m.help = true
	case "enter", "l", "right":
		m.detail = m.current() != nil
		m.moved = m.moved || m.detail
	case "/":
		m.filtering, m.detail = true, false
	case "s":
		m.sort = (m.sort + 1) % numSortings
		m.arrange()
	case "S", "shift+s":
		m.reverse = !m.reverse
		m.arrange()
	case "j", "down":
		m.choose(m.cursor + 1)
	case "k", "up":
		m.choose(m.cursor - 1)
	case "pgdown", "space", "ctrl+f", "ctrl+d":
		m.choose(m.cursor + m.page())
	case "pgup", "ctrl+b", "ctrl+u":
		m.choose(m.cursor - m.page())
	case "g", "home":
		m.move(0)
		m.moved = m.detail // in the list, the selection follows the first row again
	case "G", "shift+g", "end":
		m.choose(len(m.rows) - 1)
	case "p":
		m.openPrompt(published.ControlPin)
	case "b":
		m.openPrompt(published.ControlBlock)
	case "a":
		m.openPrompt(published.ControlAllow)
	case "r":
		m.openPrompt("")
	}
	return nil
}

func (m *model) pressFilter(msg tea.KeyPressMsg) {
	switch msg.String() {
	case "enter":
		m.filtering = false
	case "esc":
		m.filtering, m.filter = false, ""
	case "backspace":
		m.filter = withoutLastRune(m.filter)
	case "ctrl+u":
		m.filter = ""
	default:
		m.filter += msg.Text
	}
	m.arrange()
}

// paste adds pasted text to the prompt or the filter.
func (m *model) paste(text string) {
	text = termtext.Printable(strings.TrimSpace(text))
	switch {
	case m.prompt != nil:
		m.prompt.add(text)
	case m.filtering:
		m.filter += text
		m.arrange()
	}
}

// withoutLastRune returns text without its last character.
func withoutLastRune(text string) string {
	runes := []rune(text)
	return string(runes[:max(0, len(runes)-1)])
}

// clock estimates the time on Redis's clock, by which controls end. It advances between snapshots.
func (m *model) clock() time.Time {
	s := m.snapshot
	if s.Read.IsZero() {
		return time.Now()
	}
	return s.Clock.Add(time.Since(s.Read))
}
