// Package top is a live screen of what is hot in a namespace, from which an operator acts.
//
//	top.go       runs the screen: snapshots in, keys in, the terminal out
//	model.go     what is on the screen, and what each key does
//	prompt.go    the questions before an order
//	operator.go  carries orders out
//	view.go      the table of keys, the head and the foot
//	detail.go    everything known of one key
//	lines.go     a key's rate over time
package top
