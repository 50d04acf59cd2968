package chaos

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/clock"
	"github.com/hotparam/hotparam/internal/testenv"
)

// instances is the number of API processes of a run.
const instances = 3

// steadyKey is the key that is always hot, as encoded in a StatsD line.
const steadyKey = "q=steady"

// processFleet holds everything that a run starts.
type processFleet struct {
	*scope
	c     *Config
	dir   string
	begun time.Time
	// origin is the beginning on the clock of all processes, read just before begun.
	origin time.Duration

	redis       *redisServers
	kafka       *kafkaServer
	aggregators []*aggregator
	apis        []*api
	lease       bool // all aggregators get all counts, and one of them publishes
}

// now returns the time since the run began.
func (f *processFleet) now() time.Duration { return time.Since(f.begun) }

// newFleet prepares a fleet and starts the servers; see start.
func newFleet(s *scope, c *Config) *processFleet {
	f := &processFleet{scope: s, c: c, dir: s.TempDir(), lease: c.Seed%2 == 0}
	f.origin, f.begun = clock.Now(), time.Now()
	f.redis = startRedis(s, c)
	if c.Counts == "kafka" {
		f.kafka = startKafka(f)
	}
	names := []string{"aggregator-1"}
	if f.lease || f.kafka != nil {
		names = append(names, "aggregator-2")
	}
	for _, name := range names {
		f.aggregators = append(f.aggregators, f.newAggregator(name))
	}
	for i := range instances {
		f.apis = append(f.apis, f.newAPI(i))
	}
	return f
}

// start starts the processes.
func (f *processFleet) start() {
	for _, g := range f.aggregators {
		g.start()
	}
	for _, a := range f.apis {
		a.start()
	}
}

func (f *processFleet) freeAddr() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePort(f.scope)))
}

// newRedisRelay returns a process's relay to a single Redis, or nil if there are several servers.
func (f *processFleet) newRedisRelay(number uint64) *tcpRelay {
	if f.redis.single == nil {
		return nil
	}
	return newTCPRelay(f.scope, f.redis.single.Addr(), f.c.Seed<<8|number, nil)
}

// processConfig holds the configuration of a process.
type processConfig struct {
	relay   *tcpRelay // see fleet.newRedisRelay
	targets []string  // addresses that an instance sends its counts to
	admin   string
	listen  string // address of an aggregator for counts
	variant int    // of the limits
}

// writeConfig writes the configuration file of a process.
func (f *processFleet) writeConfig(path string, c processConfig) {
	var b strings.Builder
	fmt.Fprintf(&b, "namespace: %s\naggregator: {redis: %q, http: %q, memory: 16MB", namespace, f.redis.url(c.relay), c.admin)
	switch {
	case f.kafka != nil:
		fmt.Fprintf(&b, ", source: kafka}\nkafka: {brokers: [\"%s\"], topic: %s, acks: \"1\", session: %v, timeout: %v}", f.kafka.relay.Addr(), kafkaTopic, kafkaSession, kafkaTimeout)
	default:
		if c.listen != "" {
			fmt.Fprintf(&b, ", listen: %q", c.listen)
		}
		fmt.Fprintf(&b, ", lease: %v}", f.lease)
		if len(c.targets) > 0 {
			spread := "hash"
			if f.lease {
				spread = "all"
			}
			fmt.Fprintf(&b, "\nstatsd: {addresses: [\"%s\"], spread: %s}", strings.Join(c.targets, `", "`), spread)
		}
	}
	b.WriteString(rulesText(c.variant))
	testenv.WriteFile(f, path, b.String())
}

// ask sends a request and returns the status.
func ask(ctx context.Context, client *http.Client, method, url string) (status int, err error) {
	res, _, err := fetch(ctx, client, method, url)
	if err != nil {
		return 0, err
	}
	return res.StatusCode, nil
}

// fetch sends a request and returns the answer, whose body it has read and closed, and the body.
func fetch(ctx context.Context, client *http.Client, method, url string) (res *http.Response, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	res, err = client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}
