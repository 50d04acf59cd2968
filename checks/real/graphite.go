package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Debian's packages need Debian's Python, whichever one is in PATH.
const (
	debianPython = "/usr/bin/python3"
	carbonCache  = "/usr/bin/carbon-cache"
)

// GraphiteServer is a real Graphite that belongs to one test: carbon, which writes counts to
// files, and graphite-web, which answers queries. It is configured by deploy/graphite. Its
// methods must be called from the test's own goroutine.
type GraphiteServer struct {
	tb          testing.TB
	dir         string // directory of all files
	line, query int    // carbon's ports, for counts and for points not written yet
	port        int    // port of graphite-web
	carbon, web *testenv.Process
}

// Graphite starts a Graphite 1.1 for the test and returns when both parts answer. It uses
// Debian's packages; without them the test is skipped (see the package).
func Graphite(tb testing.TB) *GraphiteServer {
	tb.Helper()
	if err := graphiteIsThere(tb.Context()); err != nil {
		testenv.Unavailable(tb, fmt.Sprintf("no Graphite (Debian: apt-get install --no-install-recommends graphite-carbon graphite-web gunicorn): %v", err))
	}
	g := &GraphiteServer{tb: tb}
	testenv.OnFreePorts(tb, "Graphite", func() error {
		g.dir = tb.TempDir()
		g.line, g.query, g.port = testenv.FreePort(tb), testenv.FreePort(tb), testenv.FreePort(tb)
		if err := g.configure(); err != nil {
			return err
		}
		return errors.Join(g.startCarbon(), g.startWeb())
	})
	return g
}

func graphiteIsThere(ctx context.Context) error {
	if _, err := os.Stat(carbonCache); err != nil {
		return err
	}
	return runIn(ctx, "/", debianPython, "-c", "import carbon, graphite, gunicorn, whisper")
}

// Carbon returns the host:port that takes lines of "name value time". It never changes.
func (g *GraphiteServer) Carbon() string { return testenv.Loopback(g.line) }

// URL returns the URL of graphite-web without a trailing slash. It never changes.
func (g *GraphiteServer) URL() string { return "http://" + testenv.Loopback(g.port) }

// File returns the path of the file in which carbon keeps a series.
func (g *GraphiteServer) File(series string) string {
	return filepath.Join(g.dir, "whisper", filepath.FromSlash(strings.ReplaceAll(series, ".", "/"))+".wsp")
}

// KillCarbon kills carbon (SIGKILL). Points that it has not written yet are lost.
func (g *GraphiteServer) KillCarbon() { killGroup(g.carbon) }

// KillWeb kills graphite-web (SIGKILL): connections break, and new ones are refused.
func (g *GraphiteServer) KillWeb() { killGroup(g.web) }

// StartCarbon restarts carbon after KillCarbon, with its former files. It returns when carbon
// takes counts.
func (g *GraphiteServer) StartCarbon() {
	g.tb.Helper()
	if err := g.startCarbon(); err != nil {
		g.tb.Fatalf("real: start carbon at %s: %v", g.Carbon(), err)
	}
}

// StartWeb restarts graphite-web after KillWeb. It returns when graphite-web answers.
func (g *GraphiteServer) StartWeb() {
	g.tb.Helper()
	if err := g.startWeb(); err != nil {
		g.tb.Fatalf("real: start graphite-web at %s: %v", g.URL(), err)
	}
}

// configure writes the files of deploy/graphite with this server's ports and directories.
func (g *GraphiteServer) configure() error {
	quoted := func(path string) string { return "'" + path + "'" } // in Python's syntax
	data := filepath.Join(g.dir, "whisper")
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	for name, values := range map[string]map[string]string{
		"graphite/carbon.conf": {
			"CONF_DIR": g.dir, "STORAGE_DIR": g.dir, "LOCAL_DATA_DIR": data, "LOG_DIR": g.dir, "PID_DIR": g.dir,
			"USER":               "", // the user of the tests
			"LINE_RECEIVER_PORT": strconv.Itoa(g.line),
			"CACHE_QUERY_PORT":   strconv.Itoa(g.query),
		},
		"graphite/storage-schemas.conf":     nil,
		"graphite/storage-aggregation.conf": nil,
		"graphite/local_settings.py": {
			"CONF_DIR": quoted(g.dir), "STORAGE_DIR": quoted(g.dir), "WHISPER_DIR": quoted(data), "LOG_DIR": quoted(g.dir),
			"CARBONLINK_HOSTS": fmt.Sprintf("[%q]", testenv.Loopback(g.query)),
		},
		"graphite/gunicorn.conf.py": {"bind": quoted(testenv.Loopback(g.port))},
	} {
		writeDeployed(g.tb, g.dir, name, values)
	}
	return nil
}

func (g *GraphiteServer) startCarbon() error {
	pid := filepath.Join(g.dir, "carbon.pid")
	_ = os.Remove(pid) // left by a killed process
	g.carbon = g.launch(carbonCache, "--config="+filepath.Join(g.dir, "carbon.conf"), "--pidfile="+pid, "--nodaemon", "start")
	ready := regexp.MustCompile(`CarbonReceiverFactory starting on ` + strconv.Itoa(g.line))
	if _, err := g.carbon.Await(g.tb.Context(), ready); err != nil {
		if g.carbon.HasExited() && (!testenv.IsFree(g.line) || !testenv.IsFree(g.query)) {
			return testenv.ErrPortTaken
		}
		return fmt.Errorf("carbon: %w; %s", err, g.carbon.Describe())
	}
	return nil
}

func (g *GraphiteServer) startWeb() error {
	g.web = g.launch("-m", "gunicorn", "-c", filepath.Join(g.dir, "gunicorn.conf.py"))
	listening := regexp.MustCompile(`Listening at: ` + regexp.QuoteMeta(g.URL()) + ` `)
	_, err := g.web.Await(g.tb.Context(), listening)
	if err == nil {
		// From here on, connections wait until a worker accepts them.
		_, err = g.render(g.tb.Context(), "nothing", time.Second)
	}
	if err != nil {
		if !g.web.HasExited() || testenv.IsFree(g.port) {
			return fmt.Errorf("graphite-web: %w; %s", err, g.web.Describe())
		}
		return testenv.ErrPortTaken
	}
	return nil
}

// launch starts a Python program in a process group of its own.
func (g *GraphiteServer) launch(arguments ...string) *testenv.Process {
	cmd := exec.Command(debianPython, arguments...)
	cmd.Dir = g.dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+g.dir) // Debian: /etc/graphite
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := testenv.Start(g.tb, cmd)
	// Kill it, since on a request to end it would first finish its work, which is not needed.
	g.tb.Cleanup(func() { killGroup(p) })
	return p
}

// killGroup kills a process that leads its group, and all its children, since graphite-web's
// workers would hold its port for a while.
func killGroup(p *testenv.Process) {
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // fails only if all have already ended
	p.Kill()
}
