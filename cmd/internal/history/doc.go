// Package history keeps the amounts of hot keys in Redis for days, in small chunks.
//
//	detector ─► Writer ══► Redis ══► Store.Read ─► View ─► /api/v1/history, hotparam history
//
// Once a second a detector reports the largest keys of each rule, and the rest. The writer of an owner
// keeps them as panes of a second. After a minute its panes become a chunk of 60 columns. The columns
// are added up for chunks of 10 s, of a minute and of ten minutes, which are kept longer. A key has
// bounds in each column. If it was not always among the largest, its columns in coarser chunks have a
// higher upper bound.
//
// Chunks are named by owner, length of a column and start. Each column is written once, whoever
// writes it, so two writers add nothing up twice. An epoch fences off a writer that was replaced. A
// successor reads the panes and the open chunks, and continues.
//
// The history leaves the server's memory to limits. It is not written while that memory is nearly
// full. Beyond its own bound the finest chunks are dropped first.
//
//	chunk.go    amounts of a time, added up for coarser columns
//	codec.go parse.go  their bytes
//	store.go *.lua  their places in Redis · room.go the memory of the server
//	writer.go   what detectors report · office.go writing it · compact.go chunks of what is over
//	forget.go   the removal of a key
//	read.go     the chunks of a time · collect.go in columns, with bits.go the seconds that they
//	            cover · rows.go the rows with the most · amounts.go sums of bounds
//	check.go    what hotparam doctor asks
//	view.go     the result · handler.go /api/v1/history
package history
