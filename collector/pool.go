package collector

import "time"

// calmFor is the minimum time that a table lasts without a flood of new keys.
const calmFor = 10 * time.Second

// pool holds replaced tables for reuse. A flood of new keys replaces tables all the time, and
// new tables would make garbage of hundreds of bytes for each key.
//
// A table can be reused when no add is inside it. To determine that, adds have to be counted,
// which doubles their cost. So only the tables of a flood are counted: the tables that replace
// one that did not last for calmFor. After the flood they are replaced by uncounted tables.
// Whether a table is counted never changes. A late add first counts itself. Then it sees that
// the table is no longer the shard's, and does not touch it, whatever the table is used for.
type pool struct{ tables []*keyTable }

// maxPooled bounds the number of tables in the pool.
const maxPooled = 4

// table returns an empty table for the given number of keys.
func (p *pool) table(keys int, urgentCount uint64, counted bool) *keyTable {
	if counted {
		for i, t := range p.tables {
			if t.inside.Load() == 0 {
				last := len(p.tables) - 1
				p.tables[i], p.tables[last] = p.tables[last], nil
				p.tables = p.tables[:last]
				t.reset(urgentCount)
				return t
			}
		}
	} else {
		p.tables = nil
	}
	t := newTable(keys, urgentCount)
	t.counted = counted
	return t
}

// put adds a replaced table to the pool, if it is counted and there is room.
func (p *pool) put(t *keyTable) {
	if t.counted && len(p.tables) < maxPooled {
		p.tables = append(p.tables, t)
	}
}
