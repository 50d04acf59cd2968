package doctor_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/cmd/internal/doctor"
	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis has a line for each connection that fails
	os.Exit(testenv.Main(m))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func client(t *testing.T, c hotkeys.ClientConfig) redis.UniversalClient {
	t.Helper()
	r, err := hotkeys.NewClientFrom(c)
	must(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

const text = `
namespace: shop
rules:
  - {id: terms, match: {route: "GET /search"}, by: [q], hot: 200/s, limit: 50/s}
  - {id: watch, match: {route: "GET /browse"}, by: [q], hot: 200/s}
`

func rulesOf(t *testing.T, text string) *rules.Rules {
	t.Helper()
	file, err := config.Parse("hotparam.yaml", []byte(text))
	must(t, err)
	return file.Rules
}

// fleet is a namespace with an aggregator and instances that only send heartbeats.
type fleet struct {
	t         *testing.T
	admin     redis.UniversalClient
	namespace string
}

// publish makes an aggregator publish that has received the heard instances.
func (f *fleet) publish(heard ...string) {
	f.t.Helper()
	p, err := hotkeys.NewPublisher(f.admin, hotkeys.PublisherConfig{Namespace: f.namespace, Owner: "statsd", Rules: []string{"terms", "watch"}})
	must(f.t, err)
	_, _, err = p.Adopt(f.t.Context())
	must(f.t, err)
	var instances []published.Instance
	for _, name := range heard {
		instances = append(instances, published.Instance{Name: name, Heard: time.Now()})
	}
	p.Instances(instances)
	f.run(p.Run)
	f.await("the publisher's heartbeat", func(ctx context.Context) bool {
		list, err := hotkeys.ListInstances(ctx, f.admin, f.namespace)
		return err == nil && len(list) == len(heard) && f.admin.PTTL(ctx, published.NewLayout(f.namespace).Beat).Val() > 0
	})
}

func (f *fleet) run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = run(ctx)
	}()
	f.t.Cleanup(func() { cancel(); <-done })
}

func (f *fleet) await(what string, condition func(context.Context) bool) {
	f.t.Helper()
	testenv.Eventually(f.t, what, func() bool { return condition(f.t.Context()) })
}

// suspect publishes keys as suspects.
func (f *fleet) suspect(keys ...string) {
	f.t.Helper()
	for _, key := range keys {
		must(f.t, f.admin.ZAdd(f.t.Context(), published.NewLayout(f.namespace).Suspects, redis.Z{Score: 1, Member: key}).Err())
	}
}

// members publishes these reports of the fleet's members.
func (f *fleet) members(members ...published.Member) {
	f.t.Helper()
	for _, m := range members {
		if m.Started.IsZero() {
			m.Started = time.Now().Add(-time.Hour)
		}
		h, err := hotkeys.NewHeartbeat(f.admin, hotkeys.HeartbeatConfig{Namespace: f.namespace, Every: 20 * time.Millisecond, Member: func() published.Member {
			own := m
			if own.Dropped > 0 { // a total that grows from heartbeat to heartbeat
				own.Dropped += time.Now().UnixMilli()
			}
			if own.Lost > 0 {
				own.Lost += time.Now().UnixMilli()
			}
			if own.Arrived > 0 {
				own.Arrived += time.Now().UnixMilli()
			}
			return own
		}})
		must(f.t, err)
		f.run(h.Run)
	}
	f.await("heartbeats", func(ctx context.Context) bool {
		list, err := hotkeys.ListMembers(ctx, f.admin, f.namespace)
		return err == nil && len(list) == len(members) && !slices.ContainsFunc(members, func(m published.Member) bool {
			return !slices.ContainsFunc(list, func(o published.Member) bool {
				return o.Name == m.Name && (m.Dropped == 0 || o.Dropped > 0) && (m.Lost == 0 || o.Lost > 0)
			})
		})
	})
}

// examined returns the statuses of a check, and the text of all its findings.
func examined(t *testing.T, c doctor.Config, check string) (statuses []doctor.Status, all string) {
	t.Helper()
	for _, f := range doctor.Examine(t.Context(), c) {
		all += fmt.Sprintf("%s %s: %s → %s\n", f.Status, f.Check, f.What, f.Mend)
		if f.Check == check {
			statuses = append(statuses, f.Status)
		}
		if f.Status == doctor.Problem && f.Mend == "" {
			t.Errorf("%s says not what to do: %s", f.Check, f.What)
		}
		checkMetrics(t, f)
	}
	return statuses, all
}

var metricName = regexp.MustCompile(`\bhotparam_[a-z_]+\b`)

// checkMetrics reports metrics in a finding that METRICS.md lacks, or that the finding's process
// does not have.
func checkMetrics(t *testing.T, f doctor.Finding) {
	t.Helper()
	documented, err := os.ReadFile("../../../METRICS.md")
	must(t, err)
	for _, name := range metricName.FindAllString(f.What+f.Mend, -1) {
		if !strings.Contains(string(documented), "| `"+name+"`") && !strings.Contains(string(documented), "| `"+name+"{") {
			t.Errorf("%s names %s, which METRICS.md does not have: %s", f.Check, name, f.Mend)
		}
		if strings.HasPrefix(name, "hotparam_app_") != strings.HasPrefix(f.What, "instance ") {
			t.Errorf("%s names %s, which is not a metric of whom it is about: %s", f.Check, name, f.What)
		}
	}
}

func instance(name, version string) published.Member {
	return published.Member{Name: name, Role: published.RoleInstance, RulesVersion: version}
}

func TestEachFaultIsFound(t *testing.T) {
	server := testenv.Redis(t)
	admin := client(t, hotkeys.ClientConfig{URL: server.URL()})
	ruleset := rulesOf(t, text)
	version := ruleset.Version
	aggregator := published.Member{Name: "agg-1", Role: published.RoleAggregator, RulesVersion: version, MemoryUsed: 1 << 20, MemoryMax: 64 << 20}
	control := func(f *fleet, key rules.Key, action published.ControlAction, span time.Duration) {
		_, err := hotkeys.CarryOut(f.t.Context(), f.admin, f.namespace, hotkeys.ControlOrder{Key: key, Action: action, For: span})
		must(f.t, err)
	}
	for name, test := range map[string]struct {
		make  func(*fleet)
		check string
		want  doctor.Status
		says  string
	}{
		"all is well": {func(f *fleet) {
			f.publish("api-1", "api-2")
			f.members(aggregator, instance("api-1", version), instance("api-2", version))
		}, "counts", doctor.OK, "receives counts of 2 instances"},
		"no aggregator": {func(*fleet) {}, "publisher", doctor.Problem, "no aggregator publishes"},
		"nobody is heard": {func(f *fleet) {
			f.publish()
		}, "counts", doctor.Problem, "no instance sends counts"},
		"one is not heard": {func(f *fleet) {
			f.publish("api-1")
			f.members(aggregator, instance("api-1", version), instance("api-2", version))
		}, "counts", doctor.Problem, "instance api-2 runs, but its counts do not reach the aggregator"},
		"old rules": {func(f *fleet) {
			f.publish("api-1")
			f.members(aggregator, instance("api-1", "0123456789ab"))
		}, "rules", doctor.Problem, "0123456789ab at instance api-1"},
		"another file": {func(f *fleet) {
			f.publish("api-1")
			f.members(instance("api-1", "0123456789ab"))
		}, "rules", doctor.Problem, "all members have rules 0123456789ab"},
		"a refused file": {func(f *fleet) {
			m := instance("api-1", version)
			m.Problem = "hotparam.yaml:3:1: unknown field"
			f.publish("api-1")
			f.members(m)
		}, "rules", doctor.Problem, "unknown field"},
		"clock": {func(f *fleet) {
			m := instance("api-1", version)
			m.Offset, m.OffsetKnown = -5*time.Second, true
			f.publish("api-1")
			f.members(m)
		}, "clocks", doctor.Problem, "5s behind that of Redis's"},
		"dropped": {func(f *fleet) {
			m := instance("api-1", version)
			m.Dropped = 7
			f.publish("api-1")
			f.members(m)
		}, "losses", doctor.Problem, "instance api-1 dropped"},
		"lost": {func(f *fleet) {
			m := aggregator
			m.Lost = 7
			f.publish("api-1")
			f.members(m)
		}, "losses", doctor.Problem, "packets to aggregator agg-1 in the last minute, "},
		"few lost": {func(f *fleet) {
			m := aggregator
			m.Lost, m.Arrived = 7, 1<<50
			f.publish("api-1")
			f.members(m)
		}, "losses", doctor.Warning, "were lost"},
		"an aggregator drops": {func(f *fleet) {
			m := aggregator
			m.Dropped = 7
			f.publish("api-1")
			f.members(m)
		}, "losses", doctor.Problem, "aggregator agg-1 dropped"},
		"memory full": {func(f *fleet) {
			m := aggregator
			m.MemoryUsed, m.Floor = 64<<20, 12
			f.publish("api-1")
			f.suspect("terms GET /search?q=a", "terms GET /search?q=b")
			f.members(m)
		}, "memory", doctor.Problem, "counts up to 12 have no counter of their own; of 2 keys it is not known"},
		"memory full of what matters not": {func(f *fleet) {
			m := aggregator
			m.MemoryUsed, m.Floor = 64<<20, 12
			f.publish("api-1")
			f.members(m)
		}, "memory", doctor.Warning, "counts up to 12"},
		"no places left": {func(f *fleet) {
			m := aggregator
			m.Waiting = 200
			f.publish("api-1")
			f.members(m)
		}, "places", doctor.Problem, "200 hot keys of aggregator agg-1 are limited nowhere"},
		"a limit without places": {func(f *fleet) {
			m := published.Member{Name: "api-1", Role: published.RoleInstance, Started: time.Now(), Displaced: 70}
			f.publish("api-1")
			f.members(m)
		}, "tables", doctor.Warning, "instance api-1: limits found no place for 70 keys"},
		"a control ends": {func(f *fleet) {
			control(f, rules.Key{Rule: "terms", Text: "GET /search?q=a"}, published.ControlBlock, time.Minute)
		}, "controls", doctor.Warning, "block of GET /search?q=a by terms ends in"},
		"a control is refused": {func(f *fleet) {
			control(f, rules.Key{Rule: "watch", Text: "GET /browse?q=a"}, published.ControlPin, time.Hour)
		}, "controls", doctor.Problem, "has no limit to hold the key to"},
		"a control of no rule": {func(f *fleet) {
			control(f, rules.Key{Rule: "gone", Text: "GET /browse?q=a"}, published.ControlBlock, time.Hour)
		}, "controls", doctor.Problem, "has no such rule"},
		"a control is in force": {func(f *fleet) {
			control(f, rules.Key{Rule: "terms", Text: "GET /search?q=a"}, published.ControlPin, time.Hour)
		}, "controls", doctor.OK, "1 control in force"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fleet{t, admin, strings.ReplaceAll(name, " ", "-")}
			test.make(f)
			statuses, all := examined(t, doctor.Config{Client: admin, Namespace: f.namespace, Rules: ruleset, Where: "redis"}, test.check)
			if !slices.Contains(statuses, test.want) || !strings.Contains(all, test.says) {
				t.Errorf("%s: %s, want %s and %q; all:\n%s", test.check, statuses, test.want, test.says, all)
			}
			if name == "all is well" && strings.Contains(all, "problem") {
				t.Errorf("a fleet that is well:\n%s", all)
			}
		})
	}
}

func TestNamespacesThatExistAreNamed(t *testing.T) {
	server := testenv.Redis(t)
	admin := client(t, hotkeys.ClientConfig{URL: server.URL()})
	(&fleet{t, admin, "prod"}).publish("api-1")
	if _, all := examined(t, doctor.Config{Client: admin, Namespace: "shop"}, "publisher"); !strings.Contains(all, `no aggregator publishes for namespace "shop"; there are prod`) {
		t.Errorf("all:\n%s", all)
	}
}

func TestRedisThatDoesNotAnswer(t *testing.T) {
	none := client(t, hotkeys.ClientConfig{URL: fmt.Sprintf("redis://127.0.0.1:%d/0", testenv.FreePort(t))})
	statuses, all := examined(t, doctor.Config{Client: none, Namespace: "shop", Where: "redis://x"}, "redis")
	if !slices.Equal(statuses, []doctor.Status{doctor.Problem}) || !strings.Contains(all, "start Redis") || !strings.Contains(all, "unknown controls") {
		t.Errorf("no server:\n%s", all)
	}
	server := testenv.Redis(t)
	admin := client(t, hotkeys.ClientConfig{URL: server.URL()})
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "hotparam", "on", ">right", "~*", "&*", "+@all").Err())
	t.Setenv("TEST_DOCTOR_PASSWORD", "geheim")
	wrong := client(t, hotkeys.ClientConfig{URL: server.URL(), Username: "hotparam", PasswordEnv: "TEST_DOCTOR_PASSWORD"})
	statuses, all = examined(t, doctor.Config{Client: wrong, Namespace: "shop"}, "redis")
	if !slices.Equal(statuses, []doctor.Status{doctor.Problem}) || !strings.Contains(all, "WRONGPASS") || !strings.Contains(all, "password_file") || strings.Contains(all, "geheim") {
		t.Errorf("wrong password:\n%s", all)
	}
}

// A right that is missing is named by its command.
func TestMissingRightsAreNamed(t *testing.T) {
	server := testenv.Redis(t)
	admin := client(t, hotkeys.ClientConfig{URL: server.URL()})
	t.Setenv("TEST_DOCTOR_PASSWORD", "geheim")
	exact := rulesOf(t, "namespace: shop\nrules: [{id: a, match: {route: '*'}, limit: {rate: 1/s, scope: exact}}]\n")
	examine := func(user string, rules *rules.Rules, commands []string, more ...string) ([]doctor.Status, string) {
		args := []any{"ACL", "SETUSER", user, "reset", "on", ">geheim", "~hotparam:{shop}:*", "&hotparam:{shop}:changed"}
		for _, command := range commands {
			args = append(args, "+"+command)
		}
		for _, command := range more {
			args = append(args, command)
		}
		must(t, admin.Do(t.Context(), args...).Err())
		own := client(t, hotkeys.ClientConfig{URL: server.URL(), Username: user, PasswordEnv: "TEST_DOCTOR_PASSWORD"})
		return examined(t, doctor.Config{Client: own, Namespace: "shop", Rules: rules}, "rights")
	}
	without := func(commands []string, command string) []string {
		return slices.DeleteFunc(slices.Clone(commands), func(s string) bool { return s == command })
	}
	for _, role := range []struct {
		user     string
		commands []string
	}{{"reader", published.ReaderCommands}, {"writer", published.WriterCommands}} {
		if statuses, all := examine(role.user, nil, role.commands); !slices.Equal(statuses, []doctor.Status{doctor.OK}) {
			t.Errorf("%s with all rights:\n%s", role.user, all)
		}
		for _, command := range role.commands {
			statuses, all := examine(role.user, nil, without(role.commands, command))
			if command == "time" && slices.Equal(statuses, nil) {
				continue
			}
			if !slices.Equal(statuses, []doctor.Status{doctor.Problem}) || !strings.Contains(all, "it lacks +"+command+" → ACL SETUSER "+role.user+" +"+command) {
				t.Errorf("%s without %s:\n%s", role.user, command, all)
			}
		}
	}
	both := slices.Concat(published.ReaderCommands, published.LimiterCommands)
	if statuses, all := examine("limiter", exact, both); !slices.Equal(statuses, []doctor.Status{doctor.OK}) {
		t.Errorf("an instance that asks Redis:\n%s", all)
	}
	if statuses, all := examine("limiter", exact, without(both, "getrange")); !slices.Contains(statuses, doctor.Problem) || !strings.Contains(all, "scope: share, fleet or exact do: it lacks +getrange") {
		t.Errorf("an instance that asks Redis without getrange:\n%s", all)
	}
	if statuses, all := examine("writer", exact, published.WriterCommands); !slices.Equal(statuses, []doctor.Status{doctor.OK}) {
		t.Errorf("an aggregator whose instances ask Redis:\n%s", all)
	}
	if _, all := examine("reader", nil, published.ReaderCommands, "resetchannels"); !strings.Contains(all, "may not subscribe to hotparam:{shop}:changed") {
		t.Errorf("without the channel:\n%s", all)
	}
	if left, err := admin.Keys(t.Context(), "*doctor*").Result(); err != nil || len(left) > 0 {
		t.Errorf("left in Redis: %q (%v)", left, err)
	}
}

// With on_hot an instance needs the rights to invalidate: commands, the key and the channel. The check
// itself writes nothing to the stream.
func TestMissingRightsToInvalidate(t *testing.T) {
	server := testenv.Redis(t)
	admin := client(t, hotkeys.ClientConfig{URL: server.URL()})
	t.Setenv("TEST_DOCTOR_PASSWORD", "geheim")
	const (
		stream  = "hotparam:{shop}:invalidation"
		reads   = "%R~hotparam:{shop}:* ~hotparam:{shop}:members:* &hotparam:{shop}:changed"
		key     = " ~" + stream
		channel = " &" + stream
	)
	onHot := rulesOf(t, "namespace: shop\nrules: [{id: a, match: {route: '*'}, hot: 9/s, limit: {rate: 1/s, scope: instance}, on_hot: {cache: 1s}}]\n")
	instance := slices.Concat(published.ReaderCommands, published.InvalidatorCommands)
	for name, test := range map[string]struct {
		rights   string
		commands []string
		lacks    string // the command to try without
		says     string // the only problem
	}{
		"all":                  {reads + key + channel, instance, "", ""},
		"publish":              {reads + key + channel, instance, "publish", "invalidate answers of other instances, as rules with on_hot do: it lacks +publish → ACL SETUSER user +publish"},
		"del":                  {reads + key + channel, instance, "del", "it lacks +del → ACL SETUSER user +del"},
		"xadd":                 {reads + key + channel, instance, "xadd", "it lacks +xadd → ACL SETUSER user +xadd"},
		"the stream":           {reads + channel, instance, "", "may not write " + stream + ", so answers that on_hot keeps at other instances last to their end → ACL SETUSER user '~" + stream + "'"},
		"another stream":       {reads + channel + " ~hotparam:{shop}:control", instance, "", "may not write " + stream},
		"the channel":          {reads + key, instance, "", "may not use the channel " + stream + ", so invalidations of answers that on_hot keeps arrive by a poll alone → ACL SETUSER user '&" + stream + "'"},
		"those of aggregators": {reads, published.WriterCommands, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, admin.FlushAll(t.Context()).Err())
			must(t, admin.XAdd(t.Context(), &redis.XAddArgs{Stream: stream, Values: []string{"f", "1"}}).Err())
			args := []any{"ACL", "SETUSER", "user", "reset", "on", ">geheim"}
			for word := range strings.FieldsSeq(test.rights) {
				args = append(args, word)
			}
			for _, command := range test.commands {
				if command != test.lacks {
					args = append(args, "+"+command)
				}
			}
			must(t, admin.Do(t.Context(), args...).Err())
			own := client(t, hotkeys.ClientConfig{URL: server.URL(), Username: "user", PasswordEnv: "TEST_DOCTOR_PASSWORD"})
			want := []doctor.Status{doctor.OK}
			if test.says != "" {
				want = append(want, doctor.Problem)
			}
			statuses, all := examined(t, doctor.Config{Client: own, Namespace: "shop", Rules: onHot}, "rights")
			if !slices.Equal(statuses, want) || !strings.Contains(all, test.says) {
				t.Errorf("%v, want %v and %q; all:\n%s", statuses, want, test.says, all)
			}
			if n := admin.XLen(t.Context(), stream).Val(); n != 1 {
				t.Errorf("%d entries in the stream, want 1", n)
			}
		})
	}
}

func TestRedisWithoutMemory(t *testing.T) {
	server := testenv.Redis(t)
	admin := client(t, hotkeys.ClientConfig{URL: server.URL()})
	must(t, admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
	statuses, all := examined(t, doctor.Config{Client: admin, Namespace: "shop"}, "memory")
	if !slices.Contains(statuses, doctor.Problem) || !strings.Contains(all, "Redis refuses to write") {
		t.Errorf("full:\n%s", all)
	}
}

// A history needs rights of its own, room, and an aggregator that writes it.
func TestHistory(t *testing.T) {
	server := testenv.Redis(t)
	admin := client(t, hotkeys.ClientConfig{URL: server.URL()})
	t.Setenv("TEST_DOCTOR_PASSWORD", "geheim")
	store := func(c redis.UniversalClient) *history.Store {
		s, err := history.NewStore(c, "shop")
		must(t, err)
		return s
	}
	check := func(name string, c redis.UniversalClient, own bool, memory int64, want doctor.Status, says string) {
		t.Helper()
		h := &doctor.History{Store: store(c), Client: c, Memory: memory, Own: own}
		statuses, all := examined(t, doctor.Config{Client: c, Namespace: "shop", History: h}, "history")
		if !slices.Equal(statuses, []doctor.Status{want}) || !strings.Contains(all, says) {
			t.Errorf("%s: %v, want %s and %q\n%s", name, statuses, want, says, all)
		}
	}
	const memory = 64 << 20
	check("no aggregator", admin, true, memory, doctor.OK, "the history has 0.0 MiB of at most 64.0 MiB")
	f := &fleet{t: t, admin: admin, namespace: "shop"}
	f.publish("api-1")
	check("never written", admin, true, memory, doctor.Problem, "no aggregator has written a history → restart the aggregators")
	written := func(ago time.Duration) {
		must(t, admin.HSet(t.Context(), "hotparam-history:{shop}:owners", "statsd", fmt.Sprintf(`{"bytes":1048576,"until":%d}`, time.Now().Add(-ago).Unix())).Err())
	}
	written(time.Hour)
	check("not written any more", admin, true, memory, doctor.Problem, "the history was last written 1h0m")
	written(0)
	check("all is well", admin, true, memory, doctor.OK, "the history has 1.0 MiB of at most 64.0 MiB")
	must(t, admin.ConfigSet(t.Context(), "maxmemory", "40mb").Err())
	check("little room", admin, true, memory, doctor.Warning, "the history will stop before it has 64.0 MiB")
	must(t, admin.ConfigSet(t.Context(), "maxmemory", "1200kb").Err())
	check("no room", admin, true, memory, doctor.Problem, "the history has stopped")
	must(t, admin.ConfigSet(t.Context(), "maxmemory", "0").Err())

	as := func(keys string, commands []string) redis.UniversalClient {
		args := []any{"ACL", "SETUSER", "user", "reset", "on", ">geheim", keys, "~hotparam:{shop}:*", "&*"}
		for _, command := range commands {
			args = append(args, "+"+command)
		}
		must(t, admin.Do(t.Context(), args...).Err())
		return client(t, hotkeys.ClientConfig{URL: server.URL(), Username: "user", PasswordEnv: "TEST_DOCTOR_PASSWORD"})
	}
	const keys = "~hotparam-history:{shop}:*"
	check("an instance", as("~x", published.ReaderCommands), false, memory, doctor.OK, "may not read the history, as is right for an instance")
	check("an aggregator without the keys", as("~x", slices.Concat(published.WriterCommands, published.HistorianCommands)), false, memory, doctor.Problem, "may not write the history: it lacks '"+keys+"' → ACL SETUSER user '"+keys+"'; docs/REDIS.md")
	for _, command := range published.HistorianCommands {
		commands := slices.DeleteFunc(slices.Concat(published.ReaderCommands, published.HistorianCommands), func(s string) bool { return s == command })
		check("without "+command, as(keys, commands), true, memory, doctor.Problem, "it lacks +"+command+" → ACL SETUSER user +"+command)
	}
	if left, err := admin.Keys(t.Context(), "*doctor*").Result(); err != nil || len(left) > 0 {
		t.Errorf("left in Redis: %q (%v)", left, err)
	}
}
