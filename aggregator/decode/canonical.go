package decode

import "github.com/hotparam/hotparam"

// makeCanonical makes the text of a count of the head's rule, which another program has
// written, what instances count it as.
func (d *Decoder) makeCanonical(c *Count) {
	start, changed := len(d.text), false
	d.text, changed = d.head.canonical.Append(d.text, c.Text)
	if !changed && d.encoding.Fits(c.Text) {
		return
	}
	if !changed {
		d.text = append(d.text, c.Text...) // what stands in a packet is not cut there
	}
	d.text = append(d.text[:start], d.encoding.Fit(d.text[start:])...)
	c.Text = d.text[start:]
	c.Hash = hotparam.Hash(c.Text)
	d.stats.Uncanonical.Add(1)
}
