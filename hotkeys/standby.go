package hotkeys

// Standby reports whether another process holds the owner, with a lease or without: see
// [PublisherStats]. It costs less than [Publisher.Stats].
func (p *Publisher) Standby() bool {
	return p.stats.standby.Load() || p.stats.fencedBy.Load() != nil
}

// Publishes reports whether what this publisher records reaches Redis, as far as is known.
func (p *Publisher) Publishes() bool { return p.stats.connected.Load() && !p.Standby() }
