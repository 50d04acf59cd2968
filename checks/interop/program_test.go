package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/testenv"
)

// The clients under test.
const (
	kafkaPython    = "kafka-python==3.0.12"
	confluentKafka = "confluent-kafka==2.16.1"
	hotShots       = "hot-shots@17.1.1"
	statsdPython   = "statsd==4.0.1"
	datadogPython  = "datadog==0.56.0"
)

// program is a command: the words that run a file, then the file and its arguments.
type program struct {
	words []string
	env   []string // NAME=value
}

func node(t *testing.T) program {
	path, modules := real.Node(t, hotShots)
	return program{[]string{path}, []string{"NODE_PATH=" + modules}}
}

func java(t *testing.T, classpath string) program {
	return program{words: []string{real.Java(t), "-XX:TieredStopAtLevel=1", "-cp", classpath}}
}

func dogJava(t *testing.T) program { return java(t, real.DogStatsDClasspath(t)) }

func statsdClients(t *testing.T) program {
	return program{words: []string{real.Python(t, statsdPython, datadogPython)}}
}

// netcat runs scripts that call nc.
func netcat(t *testing.T) program {
	real.Netcat(t)
	return program{words: []string{"sh"}}
}

func bash(*testing.T) program { return program{words: []string{"bash"}} }

// run runs a file of testdata or an example with arguments, with stdin as its input, and returns its
// output. A minute is more than it takes on a busy machine.
func (p program) run(t *testing.T, file, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command(p.words[0], slices.Concat(p.words[1:], []string{file}, args)...)
	cmd.Env = append(plainEnvironment(), p.env...)
	cmd.Stdin = strings.NewReader(stdin)
	running := testenv.Start(t, cmd)
	select {
	case <-running.Exited():
	case <-time.After(time.Minute):
		t.Fatal("it runs for a minute already")
	}
	if code := running.Wait(); code != 0 {
		t.Fatalf("%v: exit code %d", cmd.Args, code)
	}
	return running.Stdout()
}

// plainEnvironment returns the environment without the variables that Datadog's clients obey. Its
// locale makes Java read its arguments as UTF-8.
func plainEnvironment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DD_") && !strings.HasPrefix(variable, "DATADOG_") {
			env = append(env, variable)
		}
	}
	return append(env, "LC_ALL=C.UTF-8")
}

// example returns the path of an example.
func example(name string) string { return filepath.Join("..", "..", "examples", "producers", name) }
