// Package explain says what the rules make of one request: which match, the keys that they
// make, which of these are hot, and what is decided.
//
//	Request ─► HTTP ─► middleware.Explain ─► Document
//	              rules, hot keys from Redis (Facts)
//
// The command explains by a file, and a daemon by the rules that it has in force
// ([NewHandler], asked by [Ask]). Both have the same [Document].
//
// request.go a request as JSON · rules.go rules of a file · facts.go what is in Redis · document.go what is said ·
// why.go text.go in words · handler.go ask.go the way to a daemon
package explain
