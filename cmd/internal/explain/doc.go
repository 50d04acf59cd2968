// Package explain explains how the rules treat one request: the rules that match, the keys that
// they make, which of them are hot, and the decision.
//
//	RequestJSON ─► HTTP ─► middleware.Explain ─► Document
//	              rules, hot keys from Redis (Facts)
//
// The command explains by the rules of a file, and a daemon by its rules in force ([NewHandler],
// called by [Ask]). Both return the same [Document].
//
// request.go a request as JSON · facts.go the state in Redis, and the rules of a file ·
// document.go the explanation · why.go onhot.go text.go in words · handler.go ask.go the requests to a
// daemon
package explain
