package semaphore

// keyTable is a hash table of the keys of a stripe. It finds, adds and removes a key in a few
// nanoseconds, while a map hashes the name again for each of the three.
type keyTable struct {
	heads []*keyState // a power of two
	len   int
}

const minHeads = 16

// head returns the head of the chain of a hash. It is chosen by the bits above those that
// choose the stripe.
func (t *keyTable) head(hash uint64) **keyState {
	return &t.heads[hash/stripeCount&uint64(len(t.heads)-1)]
}

func (t *keyTable) findKey(hash uint64, name string) *keyState {
	if t.heads == nil {
		return nil
	}
	k := *t.head(hash)
	for k != nil && (k.hash != hash || k.name != name) {
		k = k.next
	}
	return k
}

func (t *keyTable) add(k *keyState) {
	if t.len >= len(t.heads) {
		t.resize(max(2*len(t.heads), minHeads))
	}
	t.push(k)
	t.len++
}

func (t *keyTable) push(k *keyState) {
	head := t.head(k.hash)
	k.next, *head = *head, k
}

func (t *keyTable) remove(k *keyState) {
	link := t.head(k.hash)
	for *link != k {
		link = &(*link).next
	}
	*link, k.next = k.next, nil
	if t.len--; len(t.heads) > minHeads && t.len < len(t.heads)/8 {
		t.resize(len(t.heads) / 4)
	}
}

func (t *keyTable) resize(heads int) {
	old := t.heads
	t.heads = make([]*keyState, heads)
	for _, k := range old {
		for k != nil {
			next := k.next
			t.push(k)
			k = next
		}
	}
}

func (t *keyTable) each(f func(*keyState)) {
	for _, k := range t.heads {
		for ; k != nil; k = k.next {
			f(k)
		}
	}
}
