// Package rules holds the words that all of hotparam shares: what a request says
// (parameters and keys), what the file says (rules, limits, quotas), and what is found and
// decided (hot keys, decisions, answers). It depends on the standard library alone, starts
// nothing and sends nothing.
//
// A request becomes a [Key] (a rule's id and a canonical text such as
// "GET /search?b=2&q=1"), keys are counted, counts travel, and a key whose count within a
// rule's [Window] reaches the rule's [Threshold] is [Hot]. Each hot key then has a limiter
// of its own, which gives a [Decision].
//
// Files, in the order of the data:
//
//	param.go params.go bodies.go client.go  where parameters come from
//	secrets.go mask.go redact.go            what of them never leaves the process
//	escape.go key.go hash.go                a parameter's and a key's canonical text
//	values.go combinations.go plain.go      keys of repeated and combined parameters
//	canonical.go                            keys that another program wrote
//	rule.go route.go exception.go           which requests count
//	kind.go rate.go fraction.go window.go   when a key is hot
//	limit.go limit_keys.go quota.go         what then holds it
//	validate.go validate_keys.go            what is wrong with rules, as fielderror.go says it
//	hot.go cause.go control.go member.go    what is found, and what people and members say
//	decision.go answer.go                   what is decided, and what is sent for it
package rules
