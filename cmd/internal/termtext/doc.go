// Package termtext prepares text for a terminal.
//
//	printable.go  others' text without characters that move the cursor
//	style.go      colours
//	width.go      text of a given width
package termtext
