package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
)

// inLogs reports whether a log may have parameters of a source.
func inLogs(s rules.Source) bool {
	return s == rules.Query || s == rules.Path || s == rules.Header || s == rules.Cookie || s == rules.Addr
}

// showNotInLogs reports what a rule needs and no access log contains.
func showNotInLogs(w io.Writer, r *rules.Rule) {
	for _, p := range r.Named() {
		if !inLogs(p.Source) {
			fmt.Fprintf(w, "rule %q names %s:%s, which an access log does not contain: no request has it\n", r.ID, p.Source, p.Name)
		}
	}
	if r.Count == rules.Units {
		fmt.Fprintf(w, "rule %q counts %s, which an access log does not contain: it finds no keys\n", r.ID, r.Count)
	}
}

// logForm returns the log's format and fields according to the flags. The fields are nil if no
// flag sets them.
func (f *replayFlags) logForm() (accesslog.Format, *accesslog.Fields, error) {
	format, err := accesslog.ParseFormat(f.format)
	if err != nil {
		return format, nil, usageError(err)
	}
	fields, err := f.logFields()
	return format, fields, err
}

// logFields returns the fields of the flags, or nil if there are none.
func (f *replayFlags) logFields() (*accesslog.Fields, error) {
	if f.fields == "" {
		if f.clock != "" {
			return nil, usageError(errors.New("--time-format needs --fields"))
		}
		return nil, nil
	}
	fields, err := accesslog.ParseFields(f.fields, f.clock)
	if err != nil {
		return nil, usageError(fmt.Errorf("--fields: %w", err))
	}
	return fields, nil
}

func showBadLines(w io.Writer, stats accesslog.Stats) {
	for _, bad := range stats.BadLines {
		fmt.Fprintf(w, "%s:%d: skipped: %s: %s\n", bad.File, bad.Line, bad.Reason, bad.Excerpt)
	}
	if more := stats.Bad - int64(len(stats.BadLines)); more > 0 {
		fmt.Fprintf(w, "… and %d more lines skipped\n", more)
	}
}

// showDisorder reports the requests that came later than standard input was sorted for.
func showDisorder(w io.Writer, reorder time.Duration, d accesslog.Disorder) {
	if d.Late == 0 {
		return
	}
	verb := hotwords.Plural(int(d.Late), "request") + " came"
	fmt.Fprintf(w, "%s out of order, up to %s late: hot keys and times may differ from those of the sorted log; ", verb, d.By)
	if d.Full && d.By <= reorder {
		fmt.Fprintln(w, "the buffer is too small for so many requests: save the log to a file, which is sorted as a whole")
		return
	}
	enough := d.By.Truncate(time.Second)
	if enough < d.By {
		enough += time.Second
	}
	fmt.Fprintf(w, "give --reorder %s, or save the log to a file, which is sorted as a whole\n", enough)
}

// showNoBytes reports that a rule counts bytes while lines of the log have none.
func showNoBytes(w io.Writer, ruleset *rules.Rules, s replay.Summary) {
	const hint = `they are the number behind the status in combined format, "bytes" or "body_bytes_sent" in JSON lines`
	i := slices.IndexFunc(ruleset.Rules, func(r rules.Rule) bool { return r.Count == rules.Bytes })
	switch {
	case i < 0 || s.NoBytes == 0:
	case s.NoBytes == s.Requests:
		fmt.Fprintf(w, "rule %q counts bytes, which no line of the log has: it finds nothing; %s\n", ruleset.Rules[i].ID, hint)
	default:
		fmt.Fprintf(w, "rule %q counts bytes, which %d of %d requests lack: these count as 0; %s\n",
			ruleset.Rules[i].ID, s.NoBytes, s.Requests, hint)
	}
}

// showNotTold reports all other fields that rules need and no line of the log has.
func showNotTold(w io.Writer, ruleset *rules.Rules, s replay.Summary) {
	if s.Requests == 0 {
		return
	}
	for i := range ruleset.Rules {
		r := &ruleset.Rules[i]
		if r.Count == rules.Millis && s.NoTime {
			fmt.Fprintf(w, "rule %q counts milliseconds, and no line of the log has a duration: it finds nothing; name the field by --fields duration_ms=…\n", r.ID)
		}
		for _, p := range r.Named() {
			if name := p.Source.String() + ":" + p.Name; slices.Contains(strings.Split(s.NotTold, ","), name) {
				fmt.Fprintf(w, "rule %q names %s, which no line of the log has; have the server log it, or name its field by --fields %s=…\n", r.ID, name, name)
			}
		}
	}
}
