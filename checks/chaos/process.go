package chaos

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// child is a process of the run, over all its lives. Only the run's own goroutine may kill or
// stop it; the rest is safe for concurrent use.
type child struct {
	f       *processFleet
	name    string
	addr    string // address of its HTTP server
	config  string // path of its file
	command func() *exec.Cmd
	ready   string // the line that it logs once it is up
	begin   func() // called before each life

	mu      sync.Mutex
	process *testenv.Process
	stdin   io.Closer
	lives   atomic.Int64
}

// start starts the process and returns when it is up.
func (p *child) start() {
	p.lives.Add(1)
	if p.begin != nil {
		p.begin()
	}
	cmd := p.command()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		p.f.Fatal(err)
	}
	process := testenv.Start(p.f.scope, cmd)
	process.WaitFor(p.ready)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process, p.stdin = process, stdin
}

func (p *child) current() *testenv.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

func (p *child) kill() {
	p.current().Kill()
	p.stdin.Close()
}

func (p *child) stop()   { p.current().Signal(syscall.SIGSTOP) }
func (p *child) resume() { p.current().Signal(syscall.SIGCONT) }

func (p *child) exited() bool { return p.current().HasExited() }

// lines returns the number of lines that it has logged in this life.
func (p *child) lines() int {
	process := p.current()
	return strings.Count(process.Stderr(), "\n") + strings.Count(process.Stdout(), "\n")
}

// api is an instance with the relays through which it reaches the others.
type api struct {
	child
	index   int
	redis   *tcpRelay
	counts  []*udpRelay // a relay to each aggregator
	variant atomic.Int64
}

// redisTimeout is the time-out of an instance's calls to Redis. It is longer than the default,
// since an answer may take 30 ms on a busy machine.
const redisTimeout = 250 * time.Millisecond

func (f *processFleet) newAPI(index int) *api {
	a := &api{index: index, redis: f.newRedisRelay(uint64(index))}
	for _, g := range f.aggregators {
		a.counts = append(a.counts, newUDPRelay(f.scope, g.listen, steadyKey))
	}
	a.child = child{
		f: f, name: fmt.Sprintf("api-%d", index+1), addr: f.freeAddr(), ready: "instance is up",
		config: filepath.Join(f.dir, fmt.Sprintf("api-%d.yaml", index+1)),
	}
	a.command = func() *exec.Cmd {
		cmd := exec.Command(f.c.Programs.Instance, "-listen", a.addr, "-config", a.config, "-name", a.name, "-redis-timeout", redisTimeout.String())
		cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
		return cmd
	}
	a.writeConfig(0)
	return a
}

// writeConfig writes the instance's file with the limits of a variant.
func (a *api) writeConfig(variant int) {
	var targets []string
	for _, relay := range a.counts {
		targets = append(targets, relay.Addr())
	}
	a.variant.Store(int64(variant))
	a.f.writeConfig(a.config, processConfig{relay: a.redis, targets: targets, admin: "127.0.0.1:0", variant: variant})
}

// aggregator is an aggregator process.
type aggregator struct {
	child
	listen string
	redis  *tcpRelay
}

func (f *processFleet) newAggregator(name string) *aggregator {
	g := &aggregator{listen: f.freeAddr(), redis: f.newRedisRelay(uint64(len(f.aggregators)) + 100)}
	g.child = child{
		f: f, name: name, addr: f.freeAddr(), ready: "aggregator is up", config: filepath.Join(f.dir, name+".yaml"),
	}
	g.command = func() *exec.Cmd { return exec.Command(f.c.Programs.Hotparam, "aggregator", "--config", g.config) }
	f.writeConfig(g.config, processConfig{relay: g.redis, admin: g.addr, listen: g.listen})
	return g
}
