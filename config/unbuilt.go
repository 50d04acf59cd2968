package config

// Values that the design has but that this version cannot do are refused by name, with a hint
// on what works instead: a rule that silently did less than it says would be worse than none.

// unbuiltWords are such values of some fields, each with a hint.
var unbuiltWords = map[string]struct {
	words []string
	hint  string
}{
	"limit.scope": {
		[]string{"cluster"},
		"available scopes: exact, one limit over all instances; share, a part of it on each; instance",
	},
}
