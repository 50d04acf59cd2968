package hotkeys

import (
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// That a key is usual or spared makes a change of its entry, which instances hear of
// as of any.
func TestUsualAndSparedAreTerms(t *testing.T) {
	var h, usual, spared rules.Hot
	usual.Usual, spared.Usual, spared.Spared = true, true, true
	if entryTermsOf(h) == entryTermsOf(usual) || entryTermsOf(usual) == entryTermsOf(spared) {
		t.Error("what is published does not change")
	}
}
