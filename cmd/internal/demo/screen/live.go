package screen

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/hotparam/hotparam/cmd/internal/demo"
	"github.com/hotparam/hotparam/internal/base"
)

// frameEvery is the update interval of the live view.
const frameEvery = 200 * time.Millisecond

// Live runs the demo with a live view on the terminal, and leaves a summary there.
func Live(ctx context.Context, cfg Config) error {
	var warnings lastLine
	d, err := demo.New(ctx, cfg.Transport, newLog(&warnings))
	if err != nil {
		return err
	}
	ctx, cancel := runFor(ctx, cfg.Length)
	defer cancel()
	d.Compare()
	began := time.Now()
	shown := screenText{
		transport: d.Transport(),
		redis:     tryRedis(d),
		curl:      func(text string) []string { return tryCurl(d, text) },
		warning:   warnings.String,
	}
	if cfg.Length > 0 {
		shown.ends = began.Add(cfg.Length)
	}
	program := tea.NewProgram(model{view: shown, stop: cancel, crowd: d},
		tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithEnvironment(os.Environ()),
		tea.WithoutSignalHandler(), // a signal ends ctx
		tea.WithFPS(int(2*time.Second/frameEvery)),
	)
	var parts sync.WaitGroup
	parts.Go(func() {
		err = d.Run(ctx)
		program.Send(endedMsg{})
	})
	parts.Go(func() { follow(ctx, d, program.Send) })
	last, failed := program.Run()
	if failed != nil {
		cancel()
		parts.Wait()
		return failed
	}
	if last.(model).impatient {
		return ErrImpatient // return at once: exiting the process ends the remaining parts
	}
	parts.Wait()
	writeSummary(cfg.Out, d.Result(), time.Since(began))
	if w := warnings.String(); w != "" {
		_, _ = cfg.Err.Write([]byte(w + "\n"))
	}
	return err
}

// ErrImpatient is returned by [Live] if a person asks twice to quit. Parts of the demo still run
// then, and the process should exit.
var ErrImpatient = errors.New("asked twice to quit")

// follow sends snapshots until ctx ends.
func follow(ctx context.Context, d *demo.Demo, send func(tea.Msg)) {
	for range base.Ticks(ctx, frameEvery) {
		if now, err := snapshot(ctx, d); err == nil { // an error means that the demo is ending
			send(snapshotMsg(now))
		}
	}
}

// Messages to the program.
type (
	snapshotMsg demo.Moment
	endedMsg    struct{}
)

// crowdStarter is the part of the demo that the key f controls.
type crowdStarter interface {
	StartCrowd(length time.Duration)
	StopCrowd()
}

// model is the view and the handling of its keys.
type model struct {
	view          screenText
	width, height int
	stop          func() // asks the demo to end
	crowd         crowdStarter
	ending        bool
	impatient     bool // asked twice to quit
}

// Init implements [tea.Model].
func (m model) Init() tea.Cmd { return nil }

// Update implements [tea.Model].
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case snapshotMsg:
		m.view.update(demo.Moment(msg))
	case endedMsg:
		return m, tea.Quit
	case tea.KeyPressMsg:
		switch key := msg.String(); {
		case key == "f" && !m.ending:
			if m.view.now.CrowdLeft > 0 {
				m.crowd.StopCrowd()
			} else {
				m.crowd.StartCrowd(demo.CrowdLength)
			}
		case key != "q" && key != "ctrl+c":
		case !m.ending:
			m.ending, m.view.ending = true, true
			m.stop()
		case key == "ctrl+c":
			m.impatient = true
			return m, tea.Quit
		}
	}
	return m, nil
}

// View implements [tea.Model].
func (m model) View() tea.View {
	v := tea.NewView(m.view.render(m.width, m.height))
	v.AltScreen = true
	v.WindowTitle = "hotparam demo"
	return v
}

// lastLine is a writer that keeps the last line. Logging to the terminal would garble the screen.
type lastLine struct {
	mu   sync.Mutex
	line []byte
}

// Write implements [io.Writer].
func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = append(l.line[:0], bytes.TrimSpace(p)...)
	return len(p), nil
}

func (l *lastLine) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.line)
}
