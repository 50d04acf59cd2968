// Package rules defines the types that all of hotparam shares. They describe the parameters and
// keys of a request, the rules, limits and quotas of the rules file, and the resulting decisions
// and answers. The package depends on the standard library alone, starts no goroutines and sends
// nothing.
//
// A request becomes a [Key]: a rule's id and a canonical text such as "GET /search?b=2&q=1".
// Instances count keys and send the counts. A key whose count within a rule's [Window] reaches
// the rule's [Threshold] is hot. Each hot key then has a limiter of its own, which returns a
// [Decision].
//
// Files, in the order of the data:
//
//	param.go bodies.go client.go            sources of parameters
//	secrets.go redact.go                    parameters and values that never leave the process
//	key.go                                  a key's canonical text
//	rule.go route.go exception.go           which requests count
//	kind.go rate.go fraction.go             when a key is hot
//	limit.go quota.go                       limits of hot keys
//	onhot.go                                which requests of hot keys are answered together
//	validate.go validate_keys.go            errors of rules, in the form of fielderror.go
//	decision.go                             decisions, and the responses sent for them
package rules
