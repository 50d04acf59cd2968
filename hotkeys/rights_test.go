package hotkeys

import (
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"slices"
	"strings"
	"testing"
)

// The lists equal those of docs/REDIS.md, which other tests show to be complete and minimal.
func TestRightsAreThoseOfTheDocument(t *testing.T) {
	for user, want := range map[string][]string{
		"hotparam-reader": published.ReaderCommands, "hotparam-writer": published.WriterCommands, "hotparam-limiter": published.LimiterCommands, "hotparam-operator": published.OperatorCommands,
		"hotparam-invalidator": published.InvalidatorCommands, "hotparam-historian": published.HistorianCommands, "hotparam-history": published.HistoryCommands,
	} {
		_, commands := testenv.DocumentedRights(t, user)
		for i := range commands {
			commands[i] = strings.TrimPrefix(commands[i], "+")
		}
		if !slices.Equal(slices.Sorted(slices.Values(commands)), slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: docs/REDIS.md has %q, rights.go %q", user, commands, want)
		}
	}
}
