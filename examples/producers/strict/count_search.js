// Counts searches for terms in a StatsD of another make, by hot-shots:
//
//     node count_search.js localhost:8125 phone 'red shoes'
const { StatsD } = require("hot-shots");

const [address, ...terms] = process.argv.slice(2);
const [host, port] = address.split(":");

const statsd = new StatsD({ host, port: Number(port), prefix: "shop.search-terms.hot_param" });
for (const term of terms) {
  statsd.increment("GET_20_2Fsearch_3Fq=" + strict(term));
}
statsd.close();

// What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key, and then what is not A-Z a-z 0-9 - _HH.
function strict(value) {
  const hex = mark => c => mark + c.charCodeAt(0).toString(16).toUpperCase();
  return encodeURIComponent(value).replace(/[!'()*]/g, hex("%")).replace(/[^A-Za-z0-9-]/g, hex("_"));
}
