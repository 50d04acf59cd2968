// Package hotparam holds the words that all of hotparam shares: parameters,
// keys, rules, windows, hot keys and decisions. It depends on the standard
// library alone, starts nothing and sends nothing.
//
// hotparam finds which parameter values of an API are hot right now, over all
// instances, and limits just those. Data flows one way:
//
//	middleware ─► collector ══► aggregator ══► hotkeys ─► middleware ─► limiter
//
// A request becomes a [Key] (a rule's id and a canonical text such as
// "GET /search?b=2&q=1"), keys are counted, counts travel, and a key whose
// count within a rule's [Window] reaches the rule's [Threshold] is [Hot]. Each
// hot key then has a limiter of its own, which gives a [Decision].
package hotparam
