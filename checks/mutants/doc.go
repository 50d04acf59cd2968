// Package mutants plants known faults in the product, one at a time, and shows which check finds
// each. A check that finds none of its faults is worthless, however long it passes. `make
// mutants` prints the table.
//
// A fault is a text of a source and its replacement ([Faults]). If the source has changed and no
// longer has the text, the fault fails instead of planting nothing. A fault is found if a named
// test fails with it and passes without it, and the code compiles. If one survives, the test must
// be sharpened, not the fault removed.
//
//	faults/      the faults, by subject
//	faults.go    reads them
//	run.go       runs the check of a fault and finds the failed test
package mutants
