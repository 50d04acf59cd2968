// Package benchmarks compares hotparam with its peers. It is a module of its own, so that no peer
// becomes a dependency of hotparam.
//
// Each benchmark is one task, and each of its parts is one way to do it, on the same stream of
// keys. The part "hotparam" is hotparam itself. Only ratios within one run are meaningful: see
// README.md.
package benchmarks
