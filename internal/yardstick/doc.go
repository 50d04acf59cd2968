// Package yardstick has what the command bench and the comparisons with peers measure by. It draws
// values by Zipf's law ([Zipf]), does the least work that counting takes ([SortTwo], [CutLine]),
// and measures how instances hold one limit together ([Fleet]), by policies of ours and of others.
package yardstick
