// Package top shows the hot keys of a namespace on a live screen, from which an operator can act.
//
//	top.go       runs the screen: snapshots and keys in, the terminal out
//	model.go     the content of the screen, and the effect of each key
//	prompt.go    the questions before an order
//	operator.go  carries out orders
//	view.go      the table of keys, the head and the foot
//	quiet.go     what is seen when nothing is hot
//	detail.go    the details of one key
//	lines.go     a key's rate over time
package top
