package hotkeys

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// A writer that lacks any right backs off, logs little, names the missing right, and continues once
// it has it.
func TestMissingRights(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	_, commands := testenv.DocumentedRights(t, "hotparam-writer")
	type writer struct {
		user, lacks string
		p           *Publisher
		log         *testenv.LogBuffer
	}
	var writers []*writer
	rights := func(w *writer, commands []string) {
		words := []any{"ACL", "SETUSER", w.user, "on", ">PASSWORD", "~*", "resetchannels", "&*"}
		for _, command := range commands {
			words = append(words, command)
		}
		must(t, admin.Do(t.Context(), slices.Insert(words, 3, any("reset"))...).Err())
	}
	const trial = 3 * time.Second
	for i, command := range commands {
		w := &writer{user: fmt.Sprint("writer-", i), lacks: command, log: new(testenv.LogBuffer)}
		rights(w, slices.Delete(slices.Clone(commands), i, i+1))
		w.p = testPublisher(t, clientOf(t, userURL(t, server.URL(), w.user)), func(c *PublisherConfig) {
			c.Namespace, c.Logger, c.Timeout = w.user, loggerTo(w.log), 0
		})
		w.p.pruneEvery, w.p.trimEvery = time.Second, time.Second
		writers = append(writers, w)
	}
	for _, w := range writers {
		w.p.Publish(hots(hot(text(1), 100, 50)))
		testenv.Running(t, w.p.Run)
	}
	churn := func() { // all scripts run: there is work for each
		for range 10 {
			for _, w := range writers {
				w.p.Publish(hots(hot(text(2), 100, 50)))
				w.p.Publish(cools(hot(text(1), 100, 50)))
				w.p.Suspects(0, []published.Hot{hot(text(3), 10, 50)})
				w.p.Publish(hots(hot(text(1), 100, 50)))
				w.p.Suspects(0, nil)
			}
			time.Sleep(trial / 10)
		}
	}
	churn()
	lacking := 0
	for _, w := range writers {
		s, said := w.p.Stats(), w.log.Lines()
		if len(said) > 4*lineRate.Burst { // claims, whole sets, troubles and their ends
			t.Errorf("without %s: %d lines in %v:\n%s", w.lacks, len(said), trial, strings.Join(said, "\n"))
		}
		if !s.Connected && s.Failures > 12 {
			t.Errorf("without %s: %d failures in %v: it does not back off", w.lacks, s.Failures, trial)
		}
		if s.Trouble == "" {
			continue // needed only where Redis, or a value in it, is of another kind
		}
		lacking++
		if !strings.Contains(s.Trouble, "permission") {
			t.Errorf("without %s: %q does not say that a right is missing", w.lacks, s.Trouble)
		}
	}
	if lacking < 15 {
		t.Errorf("%d of %d writers lack something", lacking, len(writers))
	}
	for _, w := range writers {
		rights(w, commands)
	}
	deadline := time.Now().Add(patience)
	for _, w := range writers {
		want := hot(text(4), 100, 50)
		for w.p.Publish(hots(want)); ; time.Sleep(10 * time.Millisecond) {
			s := w.p.Stats()
			_, err := admin.ZScore(t.Context(), published.NewLayout(w.user).Hot, want.Key.String()).Result()
			if s.Connected && s.Trouble == "" && err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("with %s again: %+v, %v", w.lacks, s, err)
			}
		}
	}
}

// An outage ends when the call that failed succeeds. The claim succeeds throughout, which says
// nothing about the change that does not.
func TestOutageLastsUntilAWriteSucceeds(t *testing.T) {
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	words, commands := testenv.DocumentedRights(t, "hotparam-writer")
	allow(t, admin, words, slices.DeleteFunc(commands, func(c string) bool { return c == "+zadd" })...)
	log := new(testenv.LogBuffer)
	p := testPublisher(t, clientOf(t, userURL(t, server.URL(), "hotparam-writer")), func(c *PublisherConfig) { c.Logger = loggerTo(log) })
	p.Publish(hots(hot(text(1), 100, 50)))
	var waits []time.Duration
	for range 8 {
		err := p.resume(t.Context())
		if err == nil {
			t.Fatal("written without the right to")
		}
		if p.epoch == 0 {
			t.Fatal("the claim did not succeed: nothing is tested")
		}
		p.reclaim = true // as Run does
		waits = append(waits, p.recordFailure(err))
		if s := p.Stats(); s.Connected || s.Trouble == "" {
			t.Fatalf("%+v", s)
		}
	}
	for i, wait := range waits {
		full := min(minBackoff<<i, maxBackoff)
		if wait < full/2 || wait > full {
			t.Errorf("wait %d is %v, want half of %v or more", i, wait, full)
		}
	}
	begun := slices.DeleteFunc(log.Lines(), func(line string) bool { return !strings.Contains(line, "retrying") })
	if len(begun) != 1 {
		t.Errorf("%d lines of one outage: %q", len(begun), begun)
	}
	allow(t, admin, words, append(commands, "+zadd")...)
	must(t, p.resume(t.Context()))
	p.recordRecovery()
	if s := p.Stats(); !s.Connected || s.Trouble != "" {
		t.Errorf("with the right: %+v", s)
	}
}

// A flapping failure is logged a few times, and then rarely, with how often it was not logged. Its
// end is logged if its beginning was.
func TestFlappingIsLoggedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(testenv.LogBuffer)
		p := testPublisher(t, testClient(t, "redis://127.0.0.1:1"), func(c *PublisherConfig) { c.Logger = loggerTo(log) })
		const hour = 3600
		for range hour {
			p.recordFailure(errUnsettled)
			p.recordRecovery()
			time.Sleep(time.Second)
		}
		all := log.Lines()
		most := 2 * (lineRate.Burst + int(hour*time.Second/lineRate.Every))
		if len(all) > most || len(all) < most/2 {
			t.Errorf("%d lines in an hour, want %d at most", len(all), most)
		}
		begun := 0
		for _, line := range all {
			if strings.Contains(line, "retrying") {
				begun++
			}
		}
		if 2*begun != len(all) || !strings.Contains(all[len(all)-2], "unlogged=14") {
			t.Errorf("%d of %d lines are beginnings; the last: %s", begun, len(all), all[len(all)-2])
		}
	})
}
