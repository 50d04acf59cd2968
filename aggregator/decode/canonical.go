package decode

import "github.com/hotparam/hotparam"

// canonicalKeys are keys of other programs that were found to be canonical, so that
// those which come often are looked at once. They are known by their keyed hash, as
// cold keys are in a window; each has one place.
type canonicalKeys [1024]uint64

// place is where a key is known, and by what.
func (k *canonicalKeys) place(c *Count) (at *uint64, mark uint64) {
	mark = c.Hash ^ uint64(c.Rule+1)*0x9e3779b97f4a7c15
	return &k[mark%uint64(len(k))], mark
}

// has reports whether a key is known.
func (k *canonicalKeys) has(c *Count) bool {
	at, mark := k.place(c)
	return *at == mark
}

func (k *canonicalKeys) add(c *Count) {
	at, mark := k.place(c)
	*at = mark
}

// makeCanonical makes the text of a count of the head's rule, which another program has
// written, what instances count it as.
func (d *Decoder) makeCanonical(c *Count) {
	start, changed := len(d.text), false
	d.text, changed = d.head.of.AppendCanonical(d.text, c.Text, &d.params)
	if !changed && d.encoding.Fits(c.Text) {
		d.known.add(c)
		return
	}
	if !changed {
		d.text = append(d.text, c.Text...) // what stands in a packet is not cut there
	}
	d.text = append(d.text[:start], d.encoding.Fit(d.text[start:])...)
	c.Text = d.text[start:]
	c.Hash = hotparam.Hash(c.Text)
	d.stats.uncanonical.Add(1)
}
