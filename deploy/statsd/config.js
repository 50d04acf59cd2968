/*
 * StatsD for counts of hot parameters: the original (npm statsd@0.9.0), as it stands
 * between the middleware and carbon on the same machine.
 *
 *   npm install --omit=optional statsd@0.9.0
 *   node node_modules/statsd/stats.js config.js
 *
 * Node 18 to 22: StatsD 0.9 calls util.log, which newer ones do not have.
 */
{
  // Where the middleware sends its counts. With instances on other machines: their
  // network's address here, and nobody else's: StatsD asks for no password.
  address: "127.0.0.1",
  port: 8125,
  mgmt_address: "127.0.0.1",
  mgmt_port: 8126,

  // Each second is a point. With StatsD's own 10 s a flash crowd would be seen ten
  // seconds late. Carbon's finest retention must be the same (storage-schemas.conf).
  flushInterval: 1000,

  // Keys come and go by the thousand. Without this, each that was ever seen is sent
  // as 0 at every flush for as long as StatsD runs. What StatsD tells of itself is
  // sent all the same; by that hotparam knows that a second is complete.
  deleteIdleStats: true,

  backends: ["./backends/graphite"],
  graphiteHost: "127.0.0.1",
  graphitePort: 2003,
  graphite: {
    // Counts are stats_counts.NAME, as in section 3.1 of the article and by StatsD's
    // default. With false they are stats.counters.NAME.count: then say so in the
    // rules file (graphite.series) and in storage-aggregation.conf.
    legacyNamespace: true,
  },

  // A file that is half written when it is read again would end StatsD.
  automaticConfigReload: false,
}
