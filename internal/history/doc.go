// Package history keeps what was hot, and how much, for days: in Redis, in small chunks.
//
//	detector ─► Writer ══► Redis ══► Store.Read ─► View ─► /api/v1/history, hotparam history
//
// Once a second a detector reports the keys of each rule that count most, and the rest. The writer of
// an owner keeps them as panes of a second. When a minute is over its panes become a chunk of 60
// columns. The columns are added up for chunks of 10 s, of a minute and of ten minutes, which are
// kept longer. A key has bounds in each column. A column of a coarser chunk in which a key was not
// among those that count most at all times has a higher upper bound.
//
// Chunks are named by owner, length of a column and start. Each column is written once, whoever
// writes it, so two writers add nothing up twice. An epoch fences off a writer that was replaced. A
// successor reads the panes and the open chunks, and continues.
//
// The history never takes the room that limits need: it is not written while the server's memory is
// nearly full, and the finest chunks are dropped first when it has its own bound.
//
//	chunk.go    amounts of a time, added up for coarser columns
//	codec.go parse.go  their bytes
//	store.go *.lua  their places in Redis · room.go the memory of the server
//	writer.go   what detectors report · office.go writing it · compact.go chunks of what is over
//	forget.go   the removal of a key
//	read.go     the chunks of a time · collect.go in columns and rows
//	view.go     the result · handler.go /api/v1/history
package history
