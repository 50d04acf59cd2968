package history

import (
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"sync"
	"testing"
	"time"
)

// contains returns the hashes of Redis that have a text in some field, deflated or not.
func contains(t *testing.T, s *Store, text string) (where []string) {
	t.Helper()
	for _, hash := range s.client.Keys(t.Context(), "*").Val() {
		for field, value := range s.client.HGetAll(t.Context(), hash).Val() {
			if len(value) > 0 && value[0] == format {
				raw, err := io.ReadAll(flate.NewReader(strings.NewReader(value[1:])))
				must(t, err)
				if c, err := parseChunk([]byte(value)); err == nil { // keys share their beginnings
					for _, r := range c.rules {
						for _, k := range r.keys {
							raw = append(raw, k.text+"\n"...)
						}
					}
				}
				value = string(raw)
			}
			if strings.Contains(value, text) {
				where = append(where, hash+" "+field)
			}
		}
	}
	return where
}

// A key that is forgotten is in no chunk, whatever the writer does at that time: not in those that are
// written and added up meanwhile, not in those that its writer or a successor has in memory, and it
// does not come back although its requests go on.
func TestForgetWhileChunksAreWritten(t *testing.T) {
	s, f := testStore(t), newTraffic(6)
	w := testWriter(s, nil)
	from := time.Now().Unix() - 1500 // the writer is alive
	w.Mark(Mark{At: from + 10, Kind: MarkHot, Rule: "search", Text: "GET /search?q=3", Words: "hot"})
	f.run(t, w, from, 650)
	if where := contains(t, s, "q=3"); len(where) < 10 {
		t.Fatalf("it is in %v alone", where)
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	at := from + 650
	writing.Go(func() {
		for ; at < from+1490; at++ {
			select {
			case <-stop:
				return
			default:
			}
			w.Add(f.second(at))
			w.step(t.Context())
			w.retry = time.Time{}
		}
		<-stop
	})
	done, err := s.Forget(t.Context(), "q=3", MaxSpan)
	close(stop)
	writing.Wait()
	if err != nil || done.Writers != 1 || done.Removed < 10 {
		t.Fatalf("%+v, %v", done, err)
	}
	if where := contains(t, s, "q=3"); len(where) > 0 {
		t.Fatalf("it is still in %v", where)
	}
	f.run(t, w, at, 200)
	next := testWriter(s, nil) // it has the seconds of a standby in memory
	for i := range int64(30) {
		next.Add(f.second(at + 200 + i))
	}
	next.step(t.Context())
	f.run(t, next, at+230, 100)
	if where := contains(t, s, "q=3"); len(where) > 0 {
		t.Fatalf("it came back in %v", where)
	}
	v := read(t, s, from, at+330, 1000)
	if len(v.Rows) != 5 || len(v.Marks) != 0 {
		t.Errorf("%d rows, marks %v", len(v.Rows), v.Marks)
	}
}

// A chunk in memory from before the key was forgotten is not written.
func TestForgottenKeyIsNotWrittenBack(t *testing.T) {
	s, f := testStore(t), newTraffic(4)
	w := testWriter(s, nil)
	from := int64(epoch0)
	f.run(t, w, from, 130)
	for i := range int64(70) {
		w.Add(f.second(from + 130 + i))
	}
	if _, err := s.Forget(t.Context(), "GET /search?q=2", MaxSpan); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.step(t.Context())
		w.retry = time.Time{}
	}
	f.run(t, w, from+200, 300) // until the seconds of the refused write are in chunks alone
	if where := contains(t, s, "q=2"); len(where) > 0 {
		t.Errorf("it is in %v", where)
	}
	if v := read(t, s, from, from+500, 1000); len(v.Gaps) != 0 || len(v.Rows) != 3 {
		t.Errorf("gaps %v, %d rows", v.Gaps, len(v.Rows))
	}
}

// A key is forgotten by its whole text, its parameters or one of them, and no other is.
func TestForgottenParts(t *testing.T) {
	for words, want := range map[string]bool{
		"GET /search?page=2&q=phone": true, "page=2&q=phone": true, "q=phone": true, "page=2": true,
		"q=phon": false, "phone": false, "GET /search": false, "GET /search?q=phone": false,
	} {
		f := forgetting{hashes: map[string]bool{hashOf(words): true}}
		if got := f.names("search", "GET /search?page=2&q=phone"); got != want {
			t.Errorf("%s: %v", words, got)
		}
	}
}

// A chunk that cannot be read may have the key, so it goes.
func TestForgetDropsUnreadableChunks(t *testing.T) {
	s, f := testStore(t), newTraffic(2)
	f.run(t, testWriter(s, nil), epoch0, 10)
	must(t, s.client.HSet(t.Context(), s.panes("statsd"), epoch0, bytes.Repeat([]byte{format}, 20)).Err())
	if v := read(t, s, epoch0, epoch0+10, 0); len(v.Rows) != 2 {
		t.Errorf("%d rows beside a chunk that cannot be read", len(v.Rows))
	}
	done, err := s.Forget(t.Context(), "q=1", MaxSpan)
	must(t, err)
	if n := s.client.HLen(t.Context(), s.panes("statsd")).Val(); n != 9 || done.Removed < 2 {
		t.Errorf("%d panes left, %+v", n, done)
	}
}

// Until the command has removed a forgotten key from the chunks, a writer reads some that still have
// it. What it writes then does not.
func TestWriterCleansWhatItReads(t *testing.T) {
	s, f := testStore(t), newTraffic(4)
	w := testWriter(s, nil)
	f.run(t, w, epoch0, 130)
	must(t, s.client.HSet(t.Context(), s.forgotten, hashOf("q=2"), "0").Err())
	must(t, s.client.HIncrBy(t.Context(), s.forgotten, "version", 1).Err())
	f.run(t, w, epoch0+130, 70)
	for _, where := range contains(t, s, "q=2") {
		if !strings.HasPrefix(where, s.chunks(0, "statsd")) { // of the minutes before
			t.Errorf("it is in %s", where)
		}
	}
}
