package rulesfile

import (
	"fmt"
	"time"

	"github.com/hotparam/hotparam/internal/figure"
)

// Stats describe the rules in force and the state of their file.
type Stats struct {
	Version           string
	Rules             int
	Loaded            time.Time // time at which the rules in force took effect
	Reloads, Rejected int64
	Problem           string // reason why the present file cannot be used; "" if its rules are in force
}

// Words returns what /-/ready reports about the file, or "" if its rules are in force.
func (f *Stats) Words() string {
	if f.Problem == "" {
		return ""
	}
	return fmt.Sprintf("; the file cannot be used, rules of version %s stay in force: %s", f.Version, f.Problem)
}

// Figures are the metrics of a rules file.
var Figures = []figure.Figure[Stats]{
	figure.GaugesBy("rules_info", "1; the label is the version of the rules in force.", "version",
		func(f *Stats, emit func(string, float64)) { emit(f.Version, 1) }).
		Explain("1; the label is the version of the rules in force: a [hash](docs/RUNNING.md#which-rules-are-where) " +
			"of the deciding settings. Processes differ only while they read a change"),
	figure.Gauge("rules_loaded_timestamp_seconds", "When the rules in force took effect, in seconds since the Unix epoch.",
		func(f *Stats) float64 { return float64(f.Loaded.UnixMilli()) / 1000 }),
	figure.Counter("rules_reloads_total", "Files whose rules were put in force since the start.",
		func(f *Stats) int64 { return f.Reloads }),
	figure.Counter("rules_rejected_total", "Files that could not be used; the previous rules stayed in force.",
		func(f *Stats) int64 { return f.Rejected }).
		Explain("files that could not be used: the last good one stays in force. The log names the line and what to do"),
	figure.Flag("rules_refused", "1 while the present file is invalid.",
		func(f *Stats) bool { return f.Problem != "" }).
		Explain("1 while the present file is invalid, so the rules in force are not those of the file; `/-/ready` says why. **Alert on this**"),
}
