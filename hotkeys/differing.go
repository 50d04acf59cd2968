package hotkeys

import (
	"log/slog"
	"time"
)

// differing logs when members of a fleet have had different rules for a while, and when they
// agree again. It is not safe for concurrent use.
type differing struct {
	since  time.Time // start of the difference; zero if there is none
	logged bool
}

// differingPatience is how long versions may differ before that is logged: they do while a file
// is rolled out.
const differingPatience = 5 * time.Second

// compare records the versions of the rules that members have now.
func (d *differing) compare(log *slog.Logger, ownVersion string, versions []string, now time.Time) {
	if len(versions) < 2 {
		if d.logged {
			log.Info("instances and aggregators have the same rules again", "version", ownVersion)
		}
		*d = differing{}
		return
	}
	if d.since.IsZero() {
		d.since = now
	}
	if !d.logged && now.Sub(d.since) >= differingPatience {
		d.logged = true
		log.Warn("instances and aggregators have different rules: give all the same file; hotparam list --instances shows them",
			"own", ownVersion, "versions", versions[:min(len(versions), 10)])
	}
}
