package chaos

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config configures a run. The same seed, scenario and deployment make the same events.
type Config struct {
	Seed     uint64
	Duration time.Duration // duration of the events; starting takes some seconds more
	Scenario string        // a name of Scenarios
	Redis    string        // single, sentinel or cluster
	Counts   string        // statsd or kafka
	Programs Programs
	Log      io.Writer // events and violations as they come; nil discards them
	// Until ends the run at the first violation of an invariant with this prefix, such as "I1".
	// If it is empty, violations do not end the run.
	Until string
	// Only lists the kinds of events, in order, that replace the seeded ones.
	Only []string

	begun func(*run, context.Context, *sync.WaitGroup) // starts more work in addition to the load
}

// Deployments that a Config can name.
var (
	RedisDeployments = []string{"single", "sentinel", "cluster"}
	CountTransports  = []string{"statsd", "kafka"}
)

func (c *Config) validate() error {
	if c.Log == nil {
		c.Log = io.Discard
	}
	for _, field := range []struct {
		name, value string
		known       []string
	}{
		{"scenario", c.Scenario, Scenarios()},
		{"redis", c.Redis, RedisDeployments},
		{"counts", c.Counts, CountTransports},
	} {
		if !slices.Contains(field.known, field.value) {
			return fmt.Errorf("chaos: %s %q: must be one of %s", field.name, field.value, strings.Join(field.known, ", "))
		}
	}
	for _, name := range c.Only {
		k, ok := kindNamed(name)
		if !ok {
			return fmt.Errorf("chaos: no event %q: known are %s", name, strings.Join(kindNames(), ", "))
		}
		if !k.isPossible(c) {
			return fmt.Errorf("chaos: event %s: only with %s", name, k.deployment)
		}
	}
	if c.Scenario != "calm" && len(c.kinds()) == 0 {
		return fmt.Errorf("chaos: scenario %s: no events with redis %s and counts %s", c.Scenario, c.Redis, c.Counts)
	}
	return nil
}

// Replay returns the command that makes the same events again.
func (c *Config) Replay() string {
	command := fmt.Sprintf("go run ./checks/chaos/cmd/chaos -seed %d -duration %v -scenario %s -redis %s -counts %s", c.Seed, c.Duration, c.Scenario, c.Redis, c.Counts)
	if len(c.Only) > 0 {
		command += " -only " + strings.Join(c.Only, ",")
	}
	return command
}
