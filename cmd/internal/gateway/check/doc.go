// Package check implements the door for programs in any language. They ask over HTTP, in JSON,
// whether a request may pass.
//
// Files, in the order in which a request passes them:
//
//	door.go      authorization and limits
//	question.go  the JSON of requests
//	handle.go    the decision, and the end of held requests
//	result.go    the JSON of responses
//	problem.go   errors in the format of RFC 9457
//	openapi.json the API's description for tools
package check
