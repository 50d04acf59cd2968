# Counts a search for a term n times, by datadog with any options:
# python options_datadog.py OPTIONS N TERM
import json
import sys

from datadog.dogstatsd import DogStatsd

options, n, term = sys.argv[1:]

statsd = DogStatsd(**json.loads(options), namespace="shop.search-terms.hot_param")
for i in range(int(n)):
    statsd.increment("GET%20/search?q=" + term)
statsd.event("_e: deploy.hot_param.", "a:1|c|#b\nshop.search-terms.hot_param.x:1|c")
statsd.service_check("shop.search-terms.hot_param.up", DogStatsd.OK, message="x:1|c")
statsd.stop()
