package hotkeys

import (
	"testing"

	"github.com/hotparam/hotparam/internal/published"
)

// Marking a key as usual or spared changes its entry, so instances receive it like any other
// change.
func TestUsualAndSparedAreTerms(t *testing.T) {
	var h, usual, spared published.Hot
	usual.Usual, spared.Usual, spared.Spared = true, true, true
	if entryTermsOf(h) == entryTermsOf(usual) || entryTermsOf(usual) == entryTermsOf(spared) {
		t.Error("what is published does not change")
	}
}
