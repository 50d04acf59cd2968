// Counts searches for terms, by hot-shots:
//
//     node count_search.js localhost:8125 phone 'red shoes'
const { StatsD } = require("hot-shots");

const [address, ...terms] = process.argv.slice(2);
const [host, port] = address.split(":");

const statsd = new StatsD({ host, port: Number(port), prefix: "shop.search-terms.hot_param" });
for (const term of terms) {
  statsd.increment("GET%20/search?q=" + encode(term));
}
statsd.close();

// What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
function encode(value) {
  const hex = c => "%" + c.charCodeAt(0).toString(16).toUpperCase();
  return encodeURIComponent(value).replace(/[!'()*]/g, hex).replace(/[%.]/g, hex);
}
