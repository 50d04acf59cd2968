package hotset

import (
	"testing"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// A pin makes an entry only for a key without one. Other entries show that they are pinned, and
// payloads stay.
func TestPins(t *testing.T) {
	made := 0
	var swapped []published.Hot
	s := New(func(h published.Hot, old *int, had bool) *int {
		if had {
			return old
		}
		made++
		return new(int)
	}, Config[*int]{OnSwap: func(_ string, hot []published.Hot) { swapped = hot }})
	key := rules.Key{Rule: "r", Text: "GET /s?q=1"}
	member := []byte(key.String())
	is := func(what string, found, local, pinned bool) {
		t.Helper()
		e := s.Lookup(rules.Hash(member), member)
		if (e != nil) != found || found && (e.Hot.Local != local || e.Hot.Pinned != pinned) || len(swapped) != len(s.All()) {
			t.Errorf("%s: %+v", what, e)
		}
	}
	pin := []published.Hot{{Key: key}}
	s.SetPins(pin)
	is("pinned", true, true, true)
	s.Update("1", published.Change{Hot: []published.Hot{{Key: key, Low: 1}}})
	is("published too", true, false, true)
	s.SetPins(nil)
	is("published", true, false, false)
	s.SetPins(pin)
	s.Mark(published.Hot{Key: key, Low: 2})
	s.Update("2", published.Change{Cool: []published.Hot{{Key: key}}})
	is("marked and pinned", true, true, true)
	s.SetPins(pin)
	s.SetPins(nil)
	is("marked", true, true, false)
	s.SetPins(pin)
	s.Unmark(key)
	is("pinned again", true, true, true)
	replace(s, "3", nil)
	is("still", true, true, true)
	if made != 1 {
		t.Errorf("%d payloads were made, want 1", made)
	}
	s.SetPins(nil)
	is("no more", false, false, false)
}
