package explain

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
)

// WriteText writes the explanation of q as text.
func (d *Document) WriteText(w io.Writer, q RequestJSON) error {
	var b strings.Builder
	if q.Resource == "" {
		fmt.Fprintf(&b, "%s %s\n", q.Method, q.URL)
	} else {
		b.WriteString(q.Resource)
		for _, name := range slices.Sorted(maps.Keys(q.Params)) {
			for _, value := range q.Params[name] {
				fmt.Fprintf(&b, " %s=%s", name, value)
			}
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "by the rules of namespace %s, version %s\n\n", d.Namespace, d.Version)
	fmt.Fprintf(&b, "matches   %s\n", cmp.Or(strings.Join(d.Matches, ", "), "no rule"))
	keys := "keys"
	if len(d.Keys) == 0 && len(d.Limits) == 0 && len(d.Matches) > 0 {
		fmt.Fprintf(&b, "keys      none\n")
	}
	for i := range d.Keys {
		k := &d.Keys[i]
		fmt.Fprintf(&b, "%-9s %s   by %s\n", keys, k.Key, k.Rule)
		fmt.Fprintf(&b, "          %s\n", keyWords(k))
		keys = ""
	}
	for _, l := range d.Limits {
		fmt.Fprintf(&b, "%-9s all requests together   by %s\n          %s\n", keys, l.Rule, l.Limit)
		keys = ""
	}
	fmt.Fprintf(&b, "decision  %s\n", decisionWords(d))
	for _, line := range d.Why {
		fmt.Fprintf(&b, "          %s\n", line)
	}
	if a := d.Answer; a != nil {
		fmt.Fprintf(&b, "answer    %d %s\n", a.Status, http.StatusText(a.Status))
		for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
			for _, value := range a.Headers[name] {
				fmt.Fprintf(&b, "          %s: %s\n", name, value)
			}
		}
		if a.Body != "" {
			fmt.Fprintf(&b, "          %s\n", a.Body)
		}
	}
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		out.WriteString(termtext.Printable(strings.TrimRight(line, " \n")) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// keyWords describes the state of a key.
func keyWords(k *KeyExplanation) string {
	var words []string
	if c := k.Control; c != nil {
		control := fmt.Sprintf("%s until %s", c.Action, c.Until.Local().Format("15:04:05"))
		if c.By != "" {
			control += " by " + c.By
		}
		words = append(words, control)
	}
	switch {
	case k.Exception == "allow":
		words = append(words, "allowed by an exception of the rule, not counted")
	case k.Exception == "block":
		words = append(words, "blocked by an exception of the rule")
	case k.Always:
	case k.Hot == nil:
		words = append(words, "whether it is hot is not known")
	case !*k.Hot:
		words = append(words, "not hot")
	case k.Spared:
		words = append(words, "hot and usual, spared")
	default:
		hot := "hot"
		if k.Rate > 0 {
			hot += fmt.Sprintf(", %.1f/s now", k.Rate)
		}
		if k.Since != nil {
			hot += ", since " + k.Since.Local().Format("15:04:05")
		}
		if k.Hold != "" {
			hot += ", by its cost, " + k.Hold
		}
		words = append(words, hot)
	}
	if k.Limit != "" {
		words = append(words, k.Limit)
	}
	return strings.Join(words, "; ")
}

func decisionWords(d *Document) string {
	switch d.Decision {
	case Pass:
		return "pass"
	case Limit:
		return "limit: it passes within the limit, and is refused over it"
	case Unknown:
		return "unknown"
	}
	return "refuse"
}
