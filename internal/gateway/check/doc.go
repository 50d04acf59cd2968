// Package check is the door for programs in any language: they ask by HTTP and JSON whether a
// request may pass.
//
// The way of a request:
//
//	door.go      who may ask, and how much
//	question.go  what a program asks
//	handle.go    the decision, and the end of a request that was held
//	result.go    what the program is told
//	problem.go   errors, as RFC 9457 has them
//	openapi.json the same for machines
package check
