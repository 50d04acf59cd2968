package collector

import "time"

// calmFor is how long a table lasts, at least, if there is no flood of new keys.
const calmFor = 10 * time.Second

// pool holds replaced tables to be used again. A flood of new keys replaces tables all the
// time; new tables would make garbage of hundreds of bytes for each key.
//
// A table can be used again when no add is inside it. To know that, adds have to be counted,
// which doubles their cost. So only the tables of a flood are counted: those that replace a
// table which did not last for calmFor. After the flood they are replaced by tables that
// are not. Whether a table is counted never changes. A late add counts itself first, and
// then sees that the table is no longer the shard's and does not touch it, whatever it is
// used for.
type pool struct{ tables []*table }

// maxPooled bounds how many tables wait to be used again.
const maxPooled = 4

// table returns an empty table for so many keys.
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

// put adds a replaced table to the pool, if it is counted and there is room.
func (p *pool) put(t *table) {
	if t.counted && len(p.tables) < maxPooled {
		p.tables = append(p.tables, t)
	}
}
