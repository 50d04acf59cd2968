package top

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// prompt asks for the parts of an order, and then for confirmation.
type prompt struct {
	order
	step    promptStep
	length  string // text as typed, or the default
	typed   bool   // whether length was typed or changed
	problem string // problem with the typed text
}

type promptStep int

const (
	askLength promptStep = iota
	askWhy
	confirm
)

// openPrompt opens the prompt for the selected key. An empty action is a release.
func (m *model) openPrompt(action published.ControlAction) {
	row := m.current()
	if row == nil || m.busy {
		return
	}
	m.result, m.failed = "", false
	switch {
	case action == "" && row.control == nil:
		m.result = "there is nothing to release: no operator controls this key"
		return
	case action == published.ControlPin && row.hot != nil && row.hot.Limit.IsZero() && row.hot.Mode == rules.ModeWatch:
		m.result, m.failed = "its rule has no limit, so there is nothing to pin it to", true
		return
	}
	m.prompt = &prompt{order: order{key: row.key, action: action}, length: "10m"}
	if action == "" {
		m.prompt.step = confirm
	}
}

// add appends text to the current input.
func (p *prompt) add(text string) {
	p.problem = ""
	switch p.step {
	case askLength:
		if !p.typed {
			p.length, p.typed = "", true
		}
		p.length += text
	case askWhy:
		if len(p.why)+len(text) <= published.MaxControlWhy {
			p.why += text
		}
	case confirm:
	}
}

// answer handles a key while the prompt is open. Once the order is confirmed, it returns the
// command that carries it out.
func (m *model) answer(msg tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch key := msg.String(); {
	case key == "esc":
		m.prompt, m.result, m.failed = nil, "nothing was changed", false
	case p.step == confirm && (key == "y" || key == "Y" || key == "shift+y"):
		m.prompt, m.busy, m.result = nil, true, "asking Redis…"
		what, operate := p.order, m.operate
		return func() tea.Msg { return operate(what) }
	case p.step == confirm:
		m.prompt, m.result, m.failed = nil, "nothing was changed", false
	case key == "enter" && p.step == askLength:
		p.setLength()
	case key == "enter":
		p.step = confirm
	case key == "backspace" && p.step == askLength:
		p.length, p.problem, p.typed = withoutLastRune(p.length), "", true
	case key == "backspace":
		p.why = withoutLastRune(p.why)
	case key == "ctrl+u" && p.step == askLength:
		p.length, p.problem, p.typed = "", "", true
	case key == "ctrl+u":
		p.why = ""
	default:
		p.add(msg.Text)
	}
	return nil
}

// oneUnit matches a number with a single unit. More units, "10m5m", are more likely a typing
// error.
var oneUnit = regexp.MustCompile(`^\d+[smhd]$`)

// setLength parses the duration of the order.
func (p *prompt) setLength() {
	text := strings.TrimSpace(p.length)
	d, err := base.ParseDuration(text)
	switch {
	case err != nil || !oneUnit.MatchString(text):
		p.problem = "want a number and a unit: 90s, 10m, 2h"
	case d < time.Second || d > published.MaxControlTime:
		p.problem = fmt.Sprintf("want 1s to %v", published.MaxControlTime)
	default:
		p.order.length, p.step = d, askWhy
	}
}

// what describes the effect of an order in words.
func (p *prompt) what() string {
	key := termtext.Printable(p.key.String())
	switch p.action {
	case published.ControlPin:
		return "Pin " + key + " to its rule's limit"
	case published.ControlBlock:
		return "Block " + key + ": each request for it gets 403"
	case published.ControlAllow:
		return "Allow " + key + ": its rule does not limit it"
	}
	return "Release " + key
}

// lines returns the prompt's lines on the screen.
func (p *prompt) lines() []string {
	lines := []string{termtext.Bold.Render(" " + p.what())}
	line := " For how long? " + p.length
	switch p.step {
	case askLength:
		line += "█  " + termtext.Faint.Render("type another, Enter to continue, Esc to cancel")
	case askWhy:
		line = " Why? (others see it) " + termtext.Printable(p.why) + "█  " + termtext.Faint.Render("Enter to go on")
	case confirm:
		words := ""
		if p.action != "" {
			words = " for " + hotwords.Span(p.order.length)
			if p.why != "" {
				words += " (" + termtext.Printable(p.why) + ")"
			}
		}
		line = termtext.Warm.Render(" Do it" + words + "? y to do it, any other key to leave it")
	}
	if p.problem != "" {
		line += "  " + termtext.Alarm.Render(p.problem)
	}
	return append(lines, line)
}
