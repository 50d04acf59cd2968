package config

import "github.com/hotparam/hotparam/rules"

const onHotExample = "for example on_hot: {cache: 500ms, stale: 2s, vary: [\"header:accept-language\"]}"

// onHotFields are the fields of on_hot.
type onHotFields struct {
	rules.OnHot
	alone bool // coalesce: false; the default is true, and a setting that is left out stays false here
}

func onHotSettings(o *onHotFields) settings {
	return settings{
		{"coalesce", isWord(&o.alone, "false", "true", "false"), "", "Identical requests join the one under way. Default: true"},
		{"cache", milli(&o.Cache, "500ms"), "", "How long an answer is fresh. Default: none is kept"},
		{"stale", milli(&o.Stale, "2s"), "", "How long after cache has passed a stale answer is used, while it is refreshed or while the handler fails"},
		{"wait", milli(&o.Wait, "300ms"), "", "How long a request waits for the one that it joined. Default: 300ms"},
		{"max", byteCount(&o.Max, "for example 1MiB", "a size of at least 1, such as 512KiB or 1MiB", 1), "", "The largest answer. Default: 1MiB"},
		{"total", byteCount(&o.Total, "for example 1MiB", "a size of at least 1, such as 512KiB or 1MiB", 1), "", "Memory of all answers of the rule in a process. Default: 64MiB"},
		{"vary", as(&o.Vary, schemaSome(schemaWord), (*decoder).texts), "", "Headers and cookies that identify an answer: header:accept-language, cookie:currency. The handler sees no others"},
		{"status", as(&o.Status, schemaSome(schemaWhole(200, 499)), (*decoder).statuses), "", "Statuses of answers that are shared. Default: [200]"},
	}
}

// onHot reads how requests of hot keys are answered. It returns nil if the node is no such section.
func (d *decoder) onHot(n *fileNode, what string) *rules.OnHot {
	var o onHotFields
	if v := d.settings(n, what, onHotExample, onHotSettings(&o)); v == nil {
		return nil
	}
	o.Coalesce = !o.alone
	all := o.OnHot.WithDefaults()
	return &all
}

// statuses reads a list of statuses. A text that is no number becomes invalid, which the
// validation of the rules rejects.
func (d *decoder) statuses(n *fileNode, what string) (all []int) {
	for _, item := range d.list(n, what) {
		all = append(all, d.status(item, what))
	}
	return all
}
