# Counts a search for a term n times, by a client of statsd with any options:
# python options.py CLIENT OPTIONS N TERM
import json
import sys

import statsd

client, options, n, term = sys.argv[1:]

statsd = getattr(statsd, client)(**json.loads(options), prefix="shop.search-terms.hot_param")
with statsd.pipeline() as pipeline:
    for i in range(int(n) // 2):
        pipeline.incr("GET%20/search?q=" + term)
for i in range(int(n) - int(n) // 2):
    statsd.incr("GET%20/search?q=" + term)
statsd.close()
