package chaos

import (
	"context"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisKinds are faults of Redis and of the values in it.
var redisKinds = []eventKind{
	{name: "kill-redis", weight: 2, scenarios: []string{"recovery"}, deployment: "single", exclusive: "redis", shortest: 200 * time.Millisecond, longest: 4 * time.Second, begin: killRedis},
	{name: "stop-redis", weight: 2, scenarios: []string{"recovery", "limits"}, deployment: "single", exclusive: "redis", shortest: 500 * time.Millisecond, longest: 6 * time.Second, begin: stopRedis},
	{name: "full-redis", weight: 2, scenarios: []string{"recovery", "limits"}, exclusive: "redis", shortest: 2 * time.Second, longest: 5 * time.Second, begin: fullRedis},
	{name: "readonly-redis", weight: 2, scenarios: []string{"recovery", "limits"}, deployment: "single", exclusive: "redis", shortest: 2 * time.Second, longest: 5 * time.Second, begin: readonlyRedis},
	{name: "no-replicas", weight: 1, scenarios: []string{"recovery", "limits"}, deployment: "single", exclusive: "redis", shortest: 2 * time.Second, longest: 5 * time.Second, begin: noReplicas},
	{name: "full-disk", weight: 1, scenarios: []string{"recovery", "limits"}, deployment: "single", exclusive: "redis", shortest: 2 * time.Second, longest: 5 * time.Second, begin: fullDisk},
	{name: "flush", weight: 1, scenarios: []string{"recovery", "limits"}, exclusive: "redis", begin: flush},
	{name: "flush-scripts", weight: 1, scenarios: []string{"limits"}, exclusive: "redis", begin: flushScripts},
	{name: "poison-limit", weight: 2, scenarios: []string{"limits"}, exclusive: "redis", shortest: 5 * time.Second, longest: 8 * time.Second, begin: poisonLimit},
	{name: "poison-published", weight: 3, scenarios: []string{"publishing"}, exclusive: "redis", begin: poisonPublished},
}

// outageEffect is the effect of an outage of Redis.
var outageEffect = effect{excuses: mayMissHotKeys | mayDecideLocally | mayMissChanges}

// lossEffect is the effect of an outage after which Redis has lost its data.
var lossEffect = effect{excuses: outageEffect.excuses | mayLoseGrants}

func killRedis(r *run, _ *plannedFault) func() {
	return r.during(lossEffect, r.redis.single.Kill, r.redis.single.Restart)
}

func stopRedis(r *run, _ *plannedFault) func() {
	return r.during(outageEffect, r.redis.single.Pause, r.redis.single.Resume)
}

// mustRun runs a command on all masters.
func (r *run) mustRun(args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := r.redis.do(ctx, args...); err != nil {
		r.Fatal(err)
	}
}

// refuseWrites makes Redis refuse writes between two commands.
func (r *run) refuseWrites(begin, end []any) func() {
	return r.during(outageEffect, func() { r.mustRun(begin...) }, func() { r.mustRun(end...) })
}

func fullRedis(r *run, _ *plannedFault) func() {
	r.mustRun("CONFIG", "SET", "maxmemory-policy", "noeviction")
	return r.refuseWrites([]any{"CONFIG", "SET", "maxmemory", "1"}, []any{"CONFIG", "SET", "maxmemory", "0"})
}

// readonlyRedis makes the server a replica of a server that does not exist, so it keeps its data.
func readonlyRedis(r *run, _ *plannedFault) func() {
	return r.refuseWrites([]any{"REPLICAOF", "127.0.0.1", "1"}, []any{"REPLICAOF", "NO", "ONE"})
}

func noReplicas(r *run, _ *plannedFault) func() {
	return r.refuseWrites([]any{"CONFIG", "SET", "min-replicas-to-write", "1"}, []any{"CONFIG", "SET", "min-replicas-to-write", "0"})
}

// fullDisk prevents Redis from writing files. It then refuses writes, since it cannot save them.
func fullDisk(r *run, _ *plannedFault) func() {
	if err := r.limitFiles("1"); err != nil {
		r.logf("         left out: %v", err)
		return nothing
	}
	return r.during(outageEffect, func() {
		r.mustRun("CONFIG", "SET", "save", "3600 1")
		r.mustRun("BGSAVE")
	}, func() {
		if err := r.limitFiles("unlimited"); err != nil {
			r.Fatal(err)
		}
		r.mustRun("CONFIG", "SET", "save", "")
	})
}

// limitFiles limits the size of the files that Redis writes.
func (r *run) limitFiles(size string) error {
	pid := strconv.Itoa(r.redis.single.PID())
	return exec.CommandContext(r.Context(), "prlimit", "--pid", pid, "--fsize="+size+":unlimited").Run()
}

func flush(r *run, _ *plannedFault) func() {
	end := r.judge.beginFault(effect{excuses: mayMissHotKeys | mayLoseGrants})
	r.mustRun("FLUSHALL")
	end()
	return nothing
}

func flushScripts(r *run, _ *plannedFault) func() {
	r.mustRun("SCRIPT", "FLUSH")
	return nothing
}

// poisonLimit puts a value of a wrong type in the key of one exact limit. The other limits must
// not notice.
func poisonLimit(r *run, e *plannedFault) func() {
	names := r.limitNames()
	name := names[e.rng().IntN(len(names))]
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	end := r.judge.beginFault(effect{excuses: mayDecideLocally | mayLoseGrants | mayMixGrants, unaffected: without(names, name)})
	key := r.limitKeys[name]
	r.logf("         the poisoned key is %s's", name)
	r.poison(ctx, key, "HSET", "not", "ours")
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = r.redis.onKey(ctx, "DEL", key) // absent if the limit healed
		end()
	}
}

// poisons are foreign values in keys of the published set.
var poisons = []struct {
	key   string
	value []any // a command without the key
}{
	{"hot", []any{"SET", "a string"}},
	{"info", []any{"SET", "a string"}},
	{"owners", []any{"SET", "a string"}},
	{"instances", []any{"SET", "a string"}},
	{"suspects", []any{"SET", "a string"}},
	{"beat", []any{"LPUSH", "a list"}},
	{"events", []any{"SET", "a string"}},
	{"invalidation", []any{"SET", "a string"}},
	{"version", []any{"HSET", "a", "hash"}},
	{"version", []any{"SET", "abcdefgh:9007199254740991"}},
	{"version", []any{"SET", "not a version"}},
}

func poisonPublished(r *run, e *plannedFault) func() {
	p := poisons[e.rng().IntN(len(poisons))]
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r.logf("         %s becomes %v", redisName(p.key), p.value)
	end := r.judge.beginFault(effect{excuses: mayMissHotKeys | mayRestartEpochs})
	r.poison(ctx, redisName(p.key), p.value...)
	end()
	return nothing
}

// poison puts a value in a key, by a command without the key. It tries again if a process has
// written its own value in between.
func (r *run) poison(ctx context.Context, key string, command ...any) {
	for {
		_ = r.redis.onKey(ctx, "DEL", key) // if this fails, so does the next command
		err := r.redis.onKey(ctx, slices.Insert(slices.Clone(command), 1, any(key))...)
		if err == nil {
			return
		}
		if !redis.HasErrorPrefix(err, "WRONGTYPE") {
			r.Fatal(err)
		}
	}
}
