// Package mutants plants known faults in the product, one at a time, and shows which
// check finds each: a check that finds none of the faults that it is there for is
// worth nothing, however long it passes. `make mutants` prints the table.
//
// A fault is a text of a source and what takes its place ([Faults]), so it fails when
// the source has changed so much that the text is gone, instead of planting nothing.
// It is found if a named test fails with it, passes without it, and it compiles. Where
// one survives, the test is to be sharpened, not the fault to be taken out.
//
//	faults*.go   the faults, by package
//	run.go       a fault, its check, and which test failed
package mutants
