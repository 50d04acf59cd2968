package config

// What the design knows and this version cannot do is refused by name, with
// what works instead: a rule that silently did less than it says would be worse
// than none.

// unbuiltFields are fields, wherever they stand, and what works today.
var unbuiltFields = map[string]string{
	"concurrency": "what works today: rate and burst",
	"wait":        "what works today: on_limit: reject refuses at once and tells when to retry",
	"priority":    "what works today: a rule for each kind of request, with limits of their own",
	"penalty":     "what works today: rate and burst; a hot key stays limited for at least hot.hold",
	"warm_up":     "what works today: a bucket begins full, with burst tokens",
	"redact":      "what works today: names in secrets.extra never leave the process",
}

// unbuiltWords are values of some fields, and what works today.
var unbuiltWords = map[string]struct {
	words []string
	hint  string
}{
	"limit.scope": {
		[]string{"share", "cluster", "exact"},
		"what works today: scope: instance, a bucket of its own on each instance",
	},
	"limit.on_limit": {
		[]string{"wait", "serve"},
		"what works today: on_limit: reject or shadow",
	},
	"limit.algorithm": {
		[]string{"leaky_bucket", "gcra", "fixed", "fixed_window", "sliding_log", "sliding_blocks", "sliding_window", "concurrency"},
		"what works today: algorithm: token_bucket",
	},
}
