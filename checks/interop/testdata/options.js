// Counts a search for a term n times, by hot-shots with any options: node options.js OPTIONS N TERM
const net = require("net");
const { StatsD } = require("hot-shots");

const [json, n, term] = process.argv.slice(2);
const options = JSON.parse(json);
if (options.protocol === "stream") {
  options.stream = net.connect(options.path);
}

const statsd = new StatsD({ ...options, prefix: "shop.search-terms.hot_param" });
for (let i = 0; i < n; i++) {
  statsd.increment("GET%20/search?q=" + term);
}
statsd.close();
