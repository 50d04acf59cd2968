# Counts searches for terms, by datadog:
#
#     python count_search_datadog.py localhost:8125 phone 'red shoes'
import sys
from urllib.parse import quote

from datadog.dogstatsd import DogStatsd


# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
def encode(value):
    return quote(value, safe="").replace("%", "%25").replace(".", "%2E")


address, *terms = sys.argv[1:]
host, port = address.split(":")

statsd = DogStatsd(host, int(port), namespace="shop.search-terms.hot_param", disable_aggregation=False)
for term in terms:
    statsd.increment("GET%20/search?q=" + encode(term))
statsd.stop()
