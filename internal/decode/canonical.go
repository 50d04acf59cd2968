package decode

import "github.com/hotparam/hotparam/rules"

// makeCanonical replaces the text of a count that another program wrote by the canonical text
// that instances use for the key.
func (d *Decoder) makeCanonical(c *Count) {
	start, changed := len(d.text), false
	d.text, changed = d.head.canonical.Append(d.text, c.Text)
	if !changed && d.encoding.Fits(c.Text) {
		return
	}
	if !changed {
		d.text = append(d.text, c.Text...) // the packet itself must not be modified
	}
	d.text = append(d.text[:start], d.encoding.Fit(d.text[start:])...)
	c.Text = d.text[start:]
	c.Hash = rules.Hash(c.Text)
	d.stats.Uncanonical.Add(1)
}
