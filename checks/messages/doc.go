// Package messages keeps the text that the product prints, logs, serves or returns as an error
// in one file, messages.txt, so that a change of wording is seen in review, and all of it can be
// read from top to bottom.
//
// A text is a string of the product's Go code, or of the page's scripts, with at least two words.
// Adapters, examples and checks are left out. After a change of wording:
//
//	go test ./checks/messages -update
package messages
