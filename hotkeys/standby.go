package hotkeys

// Standby reports whether another process holds the owner, with a lease or without: see
// [PublisherStats]. It costs less than [Publisher.Stats].
func (p *Publisher) Standby() bool {
	s := p.stats.Load()
	return s.Standby || s.FencedBy != ""
}

// Publishes reports whether changes recorded by this publisher reach Redis, as far as is known.
func (p *Publisher) Publishes() bool { return p.stats.Load().Connected && !p.Standby() }
