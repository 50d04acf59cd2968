package config

// What the design knows and this version cannot do is refused by name, with
// what works instead: a rule that silently did less than it says would be worse
// than none.

// unbuiltWords are values of some fields, and what works today.
var unbuiltWords = map[string]struct {
	words []string
	hint  string
}{
	"limit.scope": {
		[]string{"cluster"},
		"what works today: scope: exact, one limit over all instances; share, a part of it on each; instance",
	},
}
