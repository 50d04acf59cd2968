package limiter_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// A restored Memory decides like the one that was written.
func TestSnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		before, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64})
		after, clock := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64})
		took := map[string]limiter.Result{}
		ask := func(name string) (q rules.Quota, a limiter.Request) {
			q, a = quotasOfAll[name], drawAsk(rt)
			if a.Kind == limiter.Return {
				a.N, a.Mark = took[name].Taken, took[name].Mark
				delete(took, name)
			}
			return q, a
		}
		names := rapid.SliceOfN(rapid.SampledFrom(sortedQuotas), 1, 30).Draw(rt, "quotas")
		for _, name := range names {
			now.Add(rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(rt, "pause"))
			q, a := ask(name)
			if r := memoryDo(t, before, &q, name, a); r.Taken > 0 {
				took[name] = r
			}
		}
		clock.Store(now.Load())
		var b bytes.Buffer
		wrote, left, err := before.Snapshot(&b)
		if err != nil || left != 0 || int64(wrote) != before.Stats().Keys {
			rt.Fatalf("wrote %d of %+v, left %d, %v", wrote, before.Stats(), left, err)
		}
		read, left, err := after.Restore(iotest.OneByteReader(&b))
		if err != nil || read+left != wrote {
			rt.Fatalf("restored %d of %d, left %d, %v", read, wrote, left, err)
		}
		for _, name := range names {
			pause := rapid.Int64Range(0, int64(300*time.Millisecond)).Draw(rt, "pause")
			now.Add(pause)
			clock.Add(pause)
			q, a := ask(name)
			if q.Missing > 0 { // a full one may start short
				continue
			}
			got, want := memoryDo(t, after, &q, name, a), memoryDo(t, before, &q, name, a)
			got.Mark, want.Mark = 0, 0 // marks restart where a full key was dropped
			if got != want {
				rt.Fatalf("%s: %+v:\n got %+v\nwant %+v", name, a, got, want)
			}
		}
	})
}

var sortedQuotas = slices.Sorted(maps.Keys(quotasOfAll))

// snapshotOf returns a snapshot with one key of each quota.
func snapshotOf(t testing.TB) []byte {
	t.Helper()
	m, _ := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64})
	for _, name := range sortedQuotas {
		q := quotasOfAll[name]
		memoryDo(t, m, &q, name, limiter.Request{N: 2})
		memoryDo(t, m, &q, name, limiter.Request{N: 4})
	}
	var b bytes.Buffer
	if _, _, err := m.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshotLeavesOut(t *testing.T) {
	own := map[rules.Algorithm]limiter.Algorithm{"x_count": counting{}}
	m, _ := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64, Algorithms: own})
	q := &rules.Quota{Rate: perSecond5, Burst: 5}
	memoryDo(t, m, q, "kept", limiter.Request{N: 3})
	memoryDo(t, m, &rules.Quota{Algorithm: "x_count", Rate: perSecond5, Burst: 5}, "own", limiter.Request{N: 3})
	memoryDo(t, m, &rules.Quota{Algorithm: "x_count", Rate: perSecond5, Burst: 5, Penalty: 1}, "own, locked", limiter.Request{N: 3})
	var b bytes.Buffer
	if wrote, left, err := m.Snapshot(&b); err != nil || wrote != 1 || left != 2 {
		t.Fatalf("wrote %d, left %d, %v", wrote, left, err)
	}
	for name, c := range map[string]struct {
		maxKeys int
		use     string // a key that is already known
		later   time.Duration
		read    int
		left    int
	}{
		"restored":     {8, "", 0, 1, 0},
		"known":        {8, "kept", 0, 0, 1},
		"a full table": {1, "other", 0, 1, 0},
		"as good new":  {8, "", time.Second, 0, 1},
	} {
		m, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: c.maxKeys})
		now.Add(int64(c.later))
		if c.use != "" {
			memoryDo(t, m, q, c.use, limiter.Request{N: 5})
		}
		if read, left, err := m.Restore(bytes.NewReader(b.Bytes())); err != nil || read != c.read || left != c.left {
			t.Errorf("%s: restored %d, left %d, %v, want %d and %d", name, read, left, err, c.read, c.left)
		}
		if r := memoryDo(t, m, q, "kept", limiter.Request{Kind: limiter.Peek}); c.read == 1 && r.Remaining != 2 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Every truncation and every changed byte is found.
func TestSnapshotBroken(t *testing.T) {
	whole := snapshotOf(t)
	restore := func(b []byte) error {
		m, _ := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64})
		_, _, err := m.Restore(bytes.NewReader(b))
		return err
	}
	if err := restore(whole); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(whole); i += 5 {
		if err := restore(whole[:i]); !errors.Is(err, limiter.ErrSnapshot) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
		changed := bytes.Clone(whole)
		changed[i] ^= 0x10
		if err := restore(changed); !errors.Is(err, limiter.ErrSnapshot) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
	}
	broken := errors.New("broken")
	m, _ := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64})
	if _, _, err := m.Restore(io.MultiReader(bytes.NewReader(whole[:40]), iotest.ErrReader(broken))); !errors.Is(err, broken) || errors.Is(err, limiter.ErrSnapshot) {
		t.Errorf("a reader that breaks: %v", err)
	}
	if _, _, err := m.Snapshot(brokenWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("a writer that breaks: %v", err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// FuzzRestore feeds records without their checksums, and adds these.
func FuzzRestore(f *testing.F) {
	whole := snapshotOf(f)
	const header = "hotparam limits 1\n"
	var records []byte
	for line := range bytes.Lines(whole[len(header):]) {
		records = append(records, line[len("00000000 "):]...)
	}
	f.Add(records)
	f.Fuzz(func(t *testing.T, records []byte) {
		b := []byte(header)
		for record := range bytes.Lines(records) {
			b = limiter.AppendSnapshotLine(b, bytes.TrimSuffix(record, []byte("\n")))
		}
		m, now := memoryAt(t, limiter.MemoryConfig{MaxKeys: 64})
		read, _, err := m.Restore(bytes.NewReader(b))
		if err != nil && !errors.Is(err, limiter.ErrSnapshot) {
			t.Fatal(err)
		}
		if int64(read) != m.Stats().Keys+int64(m.Stats().Evicted) {
			t.Fatalf("%d were restored, but %+v are held", read, m.Stats())
		}
		// Any restored state can be asked, written and forgotten.
		for i, ask := range []limiter.Request{{N: 1}, {Kind: limiter.Reserve, N: 1, Within: time.Hour}, {Kind: limiter.Charge, N: 3}, {Kind: limiter.Return, N: 2}} {
			now.Add(int64(i) * int64(time.Second))
			for _, name := range sortedQuotas {
				q := quotasOfAll[name]
				if r := memoryDo(t, m, &q, name, ask); r.RetryAfter < 0 || r.ResetAfter < 0 || r.Delay < 0 {
					t.Fatalf("%s: %+v: %+v", name, ask, r)
				}
			}
		}
		if _, _, err := m.Snapshot(io.Discard); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleMemory_Snapshot() {
	clock := func() time.Duration { return 0 }
	quota := &rules.Quota{Rate: rules.Rate{N: 1, Per: time.Minute}, Burst: 5}
	before, _ := limiter.NewMemory(limiter.MemoryConfig{Clock: clock})
	_, _ = before.Do(context.Background(), limiter.Op{Name: "login", Key: "ann", Quota: quota, Request: limiter.Request{N: 3}})

	var file bytes.Buffer
	wrote, _, _ := before.Snapshot(&file)

	after, _ := limiter.NewMemory(limiter.MemoryConfig{Clock: clock})
	_, _, _ = after.Restore(&file)
	r, _ := after.Do(context.Background(), limiter.Op{Name: "login", Key: "ann", Quota: quota, Request: limiter.Request{Kind: limiter.Peek}})
	fmt.Printf("%d key, %d permits left\n", wrote, r.Remaining)
	// Output: 1 key, 2 permits left
}
