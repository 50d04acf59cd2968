package replay

import (
	"fmt"
	"io"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
)

// WriteText writes the explanation as text.
func (x *Explanation) WriteText(w io.Writer) error {
	unit := x.Source.Count
	clock := newClock(x.First, x.Last)
	fmt.Fprintf(w, "%s\n%s\n\n", x.Key, hotwords.Rule(x.Source))
	fmt.Fprintf(w, "Counted %s from %s to %s UTC", hotwords.Count(x.Counted, unit), clock.time(x.First), clock.time(x.Last))
	switch {
	case x.Allowed:
		fmt.Fprint(w, "; never hot, because an exception allows it.\n")
	case x.Hot == 0 && len(x.Listings) == 0:
		fmt.Fprint(w, "; never hot.\n")
	case x.Hot == 0:
		fmt.Fprint(w, "; hot, but never listed.\n")
	default:
		fmt.Fprintf(w, "; listed %s, for %s in all; %s limited.\n", times(x.Hot), hotwords.Seconds(x.Seconds), hotwords.Plural(int(x.Limited), "request"))
	}
	for _, s := range few(x.Listings) {
		if s.Decision == "" {
			fmt.Fprintln(w, "  ⋮")
			continue
		}
		fmt.Fprintf(w, "  %s  %s\n", clock.time(s.Time), listingWords(&s))
	}
	for i := range x.Thresholds {
		t := &x.Thresholds[i]
		fmt.Fprintln(w)
		if len(x.Thresholds) > 1 {
			fmt.Fprintf(w, "Hot %s\n", hotwords.When(t.Source, unit))
		}
		if t.Source.Kind == rules.Cost {
			fmt.Fprintln(w, "  not explained here: no count of the key decides on its cost")
			continue
		}
		for _, s := range few(t.Steps) {
			if s.Decision == "" {
				fmt.Fprintln(w, "  ⋮")
				continue
			}
			fmt.Fprintf(w, "  %s  %s\n", clock.time(s.Time), stepWords(&s, t.Source, unit))
		}
		if len(t.Steps) == 0 && !x.Allowed {
			fmt.Fprintf(w, "  %s\n", fellShort(t, clock, unit))
		}
		fmt.Fprintln(w)
		if err := paneTable(w, t, clock); err != nil {
			return err
		}
	}
	return nil
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// few returns at most a dozen steps. An empty step marks where others were left out.
func few(steps []Step) []Step {
	const head, tail = 7, 4
	if len(steps) <= head+tail+1 {
		return steps
	}
	return append(append(append([]Step{}, steps[:head]...), Step{}), steps[len(steps)-tail:]...)
}

func listingWords(s *Step) string {
	switch s.Decision {
	case "explained":
		return "not listed from here on: " + s.By + " explains its traffic"
	case "usual":
		return "usual: its count is as high as always"
	case "unusual":
		return "usual no longer"
	case "spared":
		return "not limited: listed hot keys explain its unusual count"
	case "unspared":
		return "limited again"
	}
	return "listed: its traffic is its own"
}

// stepWords describes one decision: the count and the value that it was compared with.
func stepWords(s *Step, t *rules.Threshold, unit rules.Unit) string {
	count := hotwords.Count(s.Low, unit)
	if s.High == nil {
		count += " or more"
	} else if *s.High > s.Low {
		count += " to " + hotwords.Count(*s.High, unit)
	}
	count += " within " + hotwords.Span(t.Rate.Per)
	if s.Decision == "left" {
		return fmt.Sprintf("cool  %s is below %s", count, hotwords.Count(s.Against, unit))
	}
	words := fmt.Sprintf("hot   %s reached %s%s", count, hotwords.Count(s.Against, unit), against(t))
	if s.Hold != nil && t.Hold > 0 {
		words += "; held until " + s.Hold.Format("15:04:05.0")
	}
	return words
}

// against describes the reference of a threshold's required count, or returns "" if there is
// none.
func against(t *rules.Threshold) string {
	if compared := t.Compared(); compared != "" {
		return ", " + compared
	}
	return ""
}

// fellShort describes how close a key that was never hot came to its threshold.
func fellShort(t *Trial, c timeLayout, unit rules.Unit) string {
	var best *Pane
	unknown := false
	for i := range t.Panes {
		p := &t.Panes[i]
		unknown = unknown || p.Enter == nil
		if p.Enter != nil && (best == nil || float64(p.Low)*float64(*best.Enter) > float64(best.Low)*float64(*p.Enter)) {
			best = p
		}
	}
	switch {
	case best == nil && unknown:
		return "its reference was not known yet"
	case best == nil:
		return "never hot"
	}
	return fmt.Sprintf("its maximum was at %s, with %s of the required %s within %s%s",
		c.time(best.Time), hotwords.Count(best.Low, unit), hotwords.Count(*best.Enter, unit), hotwords.Span(t.Source.Rate.Per), against(t.Source))
}

// timeLayout formats times of day, with the date if the log has more than one day.
type timeLayout struct{ layout string }

func newClock(first, last time.Time) timeLayout {
	if first.YearDay() == last.YearDay() && last.Sub(first) < 24*time.Hour {
		return timeLayout{"15:04:05.000"}
	}
	return timeLayout{"2006-01-02 15:04:05.000"}
}

func (c timeLayout) time(t time.Time) string { return t.UTC().Format(c.layout) }
