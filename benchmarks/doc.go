// Package benchmarks holds hotparam beside its peers. It is a module of its own,
// so that no peer comes into anybody's build.
//
// Each benchmark is one task, each of its parts one way to do it, on the same
// stream of keys; the part "hotparam" is ours. Only ratios within one run mean
// anything: see README.md.
package benchmarks
