package history

import (
	"context"
	"slices"
	"time"
)

// batch is what one call writes.
type batch struct {
	set    map[field][]byte
	drop   []field
	saved  []*pane // panes in set
	before int64   // Writer.before without it
	chunks int
}

// prepare returns the batch to write: changed panes, and the chunks of past minutes.
func (w *Writer) prepare(ctx context.Context) (b batch, err error) {
	w.mu.Lock()
	w.placeMarks()
	newest := w.newest
	b.set, b.before = make(map[field][]byte), w.before
	for second, p := range w.panes {
		if p.unsaved || p.refused && second%refusedEvery == newest%refusedEvery {
			b.set[field{0, second}] = p.encode()
			p.unsaved, p.refused = false, false // a later change sets them again
			b.saved = append(b.saved, p)
		}
	}
	minutes := w.minutesOver(newest)
	w.mu.Unlock()
	for _, minute := range minutes {
		changed, err := w.compact(ctx, minute)
		if err != nil {
			return b, err
		}
		for level, c := range changed {
			b.set[field{1 + level, c.start}] = c.encode()
			b.chunks++
		}
		for second := minute; second < minute+steps[0].span; second++ {
			delete(b.set, field{0, second})
			if _, exists := w.sizes[field{0, second}]; exists {
				b.drop = append(b.drop, field{0, second})
			}
		}
	}
	b.drop = append(b.drop, w.toDrop(b.set, newest)...)
	for _, f := range b.drop {
		delete(b.set, f)
	}
	return b, nil
}

// confirm forgets the panes that are in chunks.
func (w *Writer) confirm(b batch) {
	w.stats.Change(func(s *Stats) { s.Panes += int64(len(b.saved)); s.Chunks += int64(b.chunks) })
	w.mu.Lock()
	defer w.mu.Unlock()
	for second := range w.panes {
		if second < w.before {
			delete(w.panes, second)
		}
	}
}

// undo makes a batch due again.
func (w *Writer) undo(b batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = b.before
	for _, p := range b.saved {
		p.unsaved = true
	}
}

// minutesOver returns the minutes whose panes are complete, and ends them. The caller holds the lock.
func (w *Writer) minutesOver(newest int64) (minutes []int64) {
	span := steps[0].span
	for second := range w.panes {
		minute := floor(second, span)
		if minute+span+settle <= newest && !slices.Contains(minutes, minute) {
			minutes = append(minutes, minute)
		}
	}
	slices.Sort(minutes)
	if len(minutes) > 0 {
		w.before = max(w.before, minutes[len(minutes)-1]+span)
	}
	return minutes
}

func floor(t, span int64) int64 { return t - t%span }

func ceil(t, span int64) int64 { return floor(t+span-1, span) }

// compact makes the chunk of a minute from its panes, and adds its columns to the chunks of the other
// levels. It returns the chunks that changed, by level.
func (w *Writer) compact(ctx context.Context, minute int64) (changed map[int]*chunk, err error) {
	fine := newChunk(minute, 1, int(steps[0].span))
	w.mu.Lock()
	for column := range fine.known {
		if p := w.panes[minute+int64(column)]; p != nil {
			fine.fold(p.chunk, 0, 0, column)
		}
	}
	w.mu.Unlock()
	fine.prune()
	w.startAt(0, minute)
	changed = map[int]*chunk{0: fine}
	for level := 1; level < levels; level++ {
		step := steps[level].step
		from := fine
		if level == levels-1 { // a column of it is longer than a minute
			if (minute+steps[0].span)%step != 0 {
				break
			}
			from = changed[1]
		}
		to, err := w.chunkAt(ctx, level, floor(minute, steps[level].span))
		if err != nil {
			return nil, err
		}
		perColumn := int(max(1, step/from.step))
		begin, end := max(from.start, floor(minute, step)), minute+steps[0].span
		for t := begin; t < end; t += step {
			first := int((t - from.start) / from.step)
			if column := int((t - to.start) / step); !to.known[column] { // each column is written once
				to.fold(from, first, min(first+perColumn, len(from.known))-1, column)
			}
		}
		to.prune()
		w.startAt(level, max(begin, w.first[1])) // a column may begin before the first second
		w.open[level], changed[level] = to, to
	}
	return changed, nil
}

// startAt records that a level has something from a time on.
func (w *Writer) startAt(level int, t int64) {
	if w.first[level] == 0 || t < w.first[level] {
		w.first[level] = t
	}
}

// chunkAt returns the chunk of a level that begins at a time: the open one, that of an earlier writer,
// or a new one.
func (w *Writer) chunkAt(ctx context.Context, level int, start int64) (*chunk, error) {
	if c := w.open[level]; c != nil && c.start == start {
		return c, nil
	}
	fresh := newChunk(start, steps[level].step, int(steps[level].span/steps[level].step))
	if _, exists := w.sizes[field{1 + level, start}]; !exists {
		return fresh, nil
	}
	found, unreadable, err := w.cfg.Store.read(ctx, w.cfg.Store.chunks(level, w.cfg.Owner), []int64{start})
	if err != nil {
		return nil, err
	}
	w.stats.Change(func(s *Stats) { s.Dropped.Unreadable += int64(unreadable) })
	if c := found[0]; c != nil && c.start == start && c.step == fresh.step && len(c.known) == len(fresh.known) {
		w.mu.Lock()
		defer w.mu.Unlock()
		c.forget(w.forget.names) // it may have been read before it was removed there
		return c, nil
	}
	return fresh, nil
}

// toDrop returns the fields that are too old, and the oldest of the finest level while the owner has
// more than its part of the memory.
func (w *Writer) toDrop(set map[field][]byte, newest int64) (drop []field) {
	total := int64(0)
	var all []field
	seen := func(f field, size int64) {
		total += size + fieldCost
		all = append(all, f)
	}
	for f, size := range w.sizes {
		if _, replaced := set[f]; !replaced {
			seen(f, size)
		}
	}
	for f, value := range set {
		seen(f, int64(len(value)))
	}
	slices.SortFunc(all, func(a, b field) int {
		if a.hash != b.hash {
			return a.hash - b.hash
		}
		return int(a.start - b.start)
	})
	budget := max(w.cfg.Memory/int64(max(1, w.owners)), w.cfg.Memory-w.others)
	for _, f := range all {
		if f.hash == 0 {
			if f.start < w.before-maxPanes { // of a minute that no writer compacted
				drop = append(drop, f)
			}
			continue
		}
		level := f.hash - 1
		keep := steps[level].keep
		if keep == 0 || keep > w.cfg.Keep {
			keep = w.cfg.Keep
		}
		isOpen := w.open[level] != nil && w.open[level].start == f.start
		isOld := f.start+steps[level].span < newest-int64(keep/time.Second)
		if !isOld && (isOpen || total <= budget) {
			continue
		}
		size := w.sizes[f]
		if value, replaced := set[f]; replaced {
			size = int64(len(value))
		}
		total -= size + fieldCost
		drop = append(drop, f)
		w.first[level] = max(w.first[level], f.start+steps[level].span)
	}
	return drop
}
