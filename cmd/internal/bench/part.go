package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Parts read JSON values from standard input and write their answers to standard output. The
// first value is their configuration. They end when their input ends.

// parts holds the parts by name. A lean build has no broker.
var parts = map[string]func(context.Context, *link) error{
	"receiver":          configured(runReceiver),
	"sender":            configured(runSender),
	"aggregator":        configured(runAggregator),
	"instance":          configured(runInstance),
	"pipeline-instance": configured(runPipelineInstance),
	"redis":             configured(runRedis),
}

// configured returns a part that reads its configuration before it runs.
func configured[C any](run func(context.Context, *link, C) error) func(context.Context, *link) error {
	return func(ctx context.Context, l *link) error {
		var c C
		ok, err := l.receive(&c)
		if err == nil && !ok {
			err = errors.New("no configuration on standard input: this is started by the other commands of bench")
		}
		if err != nil {
			return err
		}
		return run(ctx, l, c)
	}
}

// RunPart runs the part called name, in a process of its own, until in ends. Signals do not end
// it: a terminal sends them to all processes at once, and the process that started the part ends
// it in order.
func RunPart(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	run, ok := parts[name]
	if !ok {
		return fmt.Errorf("bench: there is no part %q", name)
	}
	if err := run(context.WithoutCancel(ctx), &link{dec: json.NewDecoder(in), enc: json.NewEncoder(out)}); err != nil {
		return fmt.Errorf("bench: %s: %w", name, err)
	}
	return nil
}

// link is the part's connection to the process that started it.
type link struct {
	dec *json.Decoder
	enc *json.Encoder
}

// receive waits for the next value. It reports false if the input has ended.
func (l *link) receive(v any) (bool, error) {
	switch err := l.dec.Decode(v); {
	case err == nil:
		return true, nil
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		return false, nil
	default:
		return false, err
	}
}

func (l *link) send(v any) error { return l.enc.Encode(v) }

// untilEnd returns when the input has ended.
func (l *link) untilEnd() error {
	for {
		var ignored json.RawMessage
		if ok, err := l.receive(&ignored); !ok || err != nil {
			return err
		}
	}
}

// partProcess is a running part, as seen by the process that started it.
type partProcess struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	dec    *json.Decoder
	enc    *json.Encoder
	stderr head
	end    func() error // closes in and waits for the part to end
}

// partGrace is the time that a part has to end after its input has ended.
const partGrace = 5 * time.Second

// startPart starts the part called name with command, the program and the arguments that precede
// the name. The part ends with ctx.
func startPart(ctx context.Context, command []string, name string, config any) (*partProcess, error) {
	p := &partProcess{name: name}
	p.cmd = exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], name)...)
	p.cmd.Stderr = &p.stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, p.withStderr(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, p.withStderr(err)
	}
	p.in, p.dec, p.enc = in, json.NewDecoder(out), json.NewEncoder(in)
	p.cmd.Cancel = in.Close
	p.cmd.WaitDelay = partGrace
	if err := p.cmd.Start(); err != nil {
		return nil, p.withStderr(err)
	}
	p.end = sync.OnceValue(func() error {
		_ = in.Close() // the end of the context may have closed it
		kill := time.AfterFunc(partGrace, func() { _ = p.cmd.Process.Kill() })
		defer kill.Stop()
		_, _ = io.Copy(io.Discard, out) // otherwise a part that still writes would not end
		return p.cmd.Wait()
	})
	if err := p.send(config); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// send sends a value to the part.
func (p *partProcess) send(v any) error {
	if err := p.enc.Encode(v); err != nil {
		return p.withStderr(err)
	}
	return nil
}

// receive waits for the part's next answer.
func (p *partProcess) receive(v any) error {
	err := p.dec.Decode(v)
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended early")
		if wait := p.end(); wait != nil {
			err = wait
		}
	}
	return p.withStderr(err)
}

// last closes the part's input and receives its last answer.
func (p *partProcess) last(v any) error {
	if err := p.in.Close(); err != nil {
		return p.withStderr(err)
	}
	return p.receive(v)
}

// stop ends the part in any state, and waits for its end.
func (p *partProcess) stop() error {
	if err := p.end(); err != nil {
		return p.withStderr(err)
	}
	return nil
}

func (p *partProcess) withStderr(err error) error {
	if said := p.stderr.String(); said != "" {
		return fmt.Errorf("bench: %s: %w: %s", p.name, err, said)
	}
	return fmt.Errorf("bench: %s: %w", p.name, err)
}

// head keeps the beginning of a part's output. Parts write nothing until they fail, and a panic
// begins with its reason. It is safe for concurrent use.
type head struct {
	mu    sync.Mutex
	begin []byte
}

const headSize = 1 << 10

// Write implements [io.Writer].
func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begin = append(h.begin, p[:min(len(p), headSize-len(h.begin))]...)
	return len(p), nil
}

// String returns the first line that is not empty.
func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	line, _, _ := bytes.Cut(bytes.TrimSpace(h.begin), []byte{'\n'})
	return strings.TrimPrefix(string(bytes.TrimSpace(line)), "hotparam: ")
}
