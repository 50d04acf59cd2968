# Counts searches for terms, by statsd:
#
#     python count_search.py localhost:8125 phone 'red shoes'
import sys
from urllib.parse import quote

from statsd import StatsClient


# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
def encode(value):
    return quote(value, safe="").replace("%", "%25").replace(".", "%2E")


address, *terms = sys.argv[1:]
host, port = address.split(":")

statsd = StatsClient(host, int(port), prefix="shop.search-terms.hot_param")
for term in terms:
    statsd.incr("GET%20/search?q=" + encode(term))
statsd.close()
