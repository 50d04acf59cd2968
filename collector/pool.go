package collector

import "time"

// calmFor is how long a table lasts while no flood of new keys goes on.
const calmFor = 10 * time.Second

// pool holds tables that were replaced and can be used again. A flood replaces
// tables all the time, and would otherwise make garbage of hundreds of bytes for
// each new key.
//
// A table can be used again when no adder is inside. To know that, adders have to
// be counted, at twice the cost of an add; so only the tables of a flood are
// counted, from the first one on that replaces one which did not last, and when
// it is over they are replaced by others. Whether a table is counted never
// changes. An adder that comes to it late counts itself, sees that it is not the
// shard's table, and leaves: whatever the table is used for meanwhile, it is left
// alone.
type pool struct{ tables []*table }

// maxPooled bounds how many tables wait to be used again.
const maxPooled = 4

// table gives a table for so many keys.
func (p *pool) table(keys int, mark uint64, counted bool) *table {
	if counted {
		for i, t := range p.tables {
			if t.inside.Load() == 0 {
				last := len(p.tables) - 1
				p.tables[i], p.tables[last] = p.tables[last], nil
				p.tables = p.tables[:last]
				t.reset(mark)
				return t
			}
		}
	} else {
		p.tables = nil
	}
	t := newTable(keys, mark)
	t.counted = counted
	return t
}

// put takes a table that was replaced.
func (p *pool) put(t *table) {
	if t.counted && len(p.tables) < maxPooled {
		p.tables = append(p.tables, t)
	}
}
