// Package termtext makes text fit to stand on a terminal.
//
//	printable.go  others' text without what moves the cursor
//	style.go      the colours
//	width.go      text of a given width
package termtext
